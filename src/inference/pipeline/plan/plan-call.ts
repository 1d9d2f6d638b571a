import type { LlmKeyCaller } from "../../../identity/keys/caller.ts";
import { brandHeader } from "../../../platform/kernel/brand.ts";
import { badField, GatewayError } from "../../../platform/kernel/errors.ts";
import { providerIdIn, type CatalogModel, type CatalogSnapshot } from "../../catalog/model.ts";
import { CredentialChoice } from "../credentials/credential-choice.ts";
import type { Execution, InferenceDependencies } from "../execution.ts";
import type { GenerationDetail } from "../../../insights/generation-record.ts";
import { namedSession, Affinity, type Session } from "../../routing/affinity.ts";
import type { InferenceCall } from "../inference-call.ts";
import {
  type Candidate,
  type LeftOut,
  notServable,
  unservedRules,
} from "../../routing/candidate.ts";
import { planRoute, type PlanFacts, type RoutePlan } from "../../routing/plan-route.ts";
import { providerFilter, type ProviderFilter } from "../../routing/provider-preferences.ts";
import { needsOf } from "../../dialects/shared/requirements.ts";
import type { AliasFacts } from "../../routing/model-aliases.ts";
import {
  expandedId,
  hasNames,
  isModelAllowed,
  resolveModel,
  type ResolvedModel,
} from "../../routing/resolve-models.ts";
import { unpricedError, withoutUnpriced, type Unpriced } from "./unpriced-extras.ts";
import { noPrivacy, type Privacy } from "../../../identity/workspaces/privacy.ts";

/** The candidates that may serve a call, in order. */
export interface CallPlan {
  /** The canonical id of the requested model. */
  requestedModel: string;
  /** Whether the requested model is a routing preset, so that no member counts as a fallback. */
  viaRouter: boolean;
  /** The estimated input tokens. */
  inputTokens: number;
  /** At least one. */
  candidates: readonly Candidate[];
  leftOut: readonly LeftOut[];
  /** Whether the caller prefers a refusal to a lost parameter (`provider.require_parameters`). */
  losesNothing: boolean;
}

/** Refuses models that the key's allowlists exclude, before anything is planned. */
function assertModelAllowed({ key }: LlmKeyCaller, model: CatalogModel): void {
  if (isModelAllowed(key.allowedModels, model)) return;
  const why = model.router === undefined ? "do not list it" : "list none of its members";
  throw new GatewayError(
    "forbidden",
    `This key may not use ${model.id}; its allowed_models ${why}.`,
    { param: "model" },
  );
}

/**
 * Refuses forced providers of which the catalog knows none: that is a mistake of the caller, not a
 * temporary condition.
 */
function assertAnyKnown(catalog: CatalogSnapshot, names: readonly string[]): void {
  if (names.some((name) => providerIdIn(catalog, name) !== undefined)) return;
  const header = brandHeader("Provider");
  const message = `${header} names no provider of the catalog: ${names.join(", ")}. GET /providers lists them.`;
  throw new GatewayError("unknown_provider", message, { param: header });
}

/**
 * The most characters of a model id. No catalog has longer ones, and unknown ids are repeated in
 * errors and logs.
 */
const modelIdLengthMax = 256;

function assertPlausibleId(id: string): void {
  if (id.length <= modelIdLengthMax) return;
  const message = `Model ids have at most ${modelIdLengthMax} characters; this one has ${id.length}.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}

/**
 * Resolves a model id for a caller on a surface. Throws `GatewayError` where the caller may not ask
 * for it here, or it does not exist.
 */
export function modelFor(
  deps: Pick<InferenceDependencies, "catalog">,
  { id, caller, assertServes }: Pick<InferenceCall, "caller" | "assertServes"> & { id: string },
): ResolvedModel {
  assertPlausibleId(id);
  const resolved = resolveModel(deps.catalog(caller.workspace.id), id);
  assertModelAllowed(caller, resolved.model);
  assertServes(resolved.model);
  return resolved;
}

/** Resolves a fallback model. Its error names its place in `models`. */
function fallbackFor(
  deps: PlanDependencies,
  { id, call }: { id: string; call: InferenceCall },
): ResolvedModel {
  const { body, caller, assertServes } = call;
  try {
    return modelFor(deps, { id, caller, assertServes });
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { models } = body;
    const place = Array.isArray(models) ? models.indexOf(id) : -1;
    const param = place < 0 ? "model" : `models[${place}]`;
    throw new GatewayError(error.code, error.message, { param, metadata: error.metadata });
  }
}

/** A plan with everything that led to it, even where no candidate is left. */
export interface PlanTrail extends RoutePlan {
  /** The requested ids, in order. */
  ids: readonly string[];
  requestedModel: string;
  viaRouter: boolean;
  losesNothing: boolean;
  inputTokens: number;
  /** What no remaining candidate has a price for; undefined where that left out none. */
  unpriced: Unpriced | undefined;
}

/** The dependencies of planning, which asks no database and no provider. */
export type PlanDependencies = Pick<
  InferenceDependencies,
  "catalog" | "privacyOf" | "providerKeys" | "isServable" | "health" | "random" | "sessions"
>;

/** Returns the models that a request names, each once. */
function modelIdsOf({ model, models }: InferenceCall["body"]): readonly string[] {
  const first = String(model);
  return Array.isArray(models) ? [...new Set([first, ...(models as string[])])] : [first];
}

/**
 * Returns the models that a request asks for, with the operator's names replaced. A fallback that
 * such a name adds and that the key may not use does not count.
 */
function askedIds(deps: PlanDependencies, call: InferenceCall): readonly string[] {
  const { caller, body } = call;
  const catalog = deps.catalog(caller.workspace.id);
  const named = modelIdsOf(body);
  if (!hasNames(catalog)) return named;
  const facts = (): AliasFacts => ({
    key: caller.key,
    headerOf: (name) => call.headerOf?.(name) ?? null,
    body,
    conversation: conversationNameOf(call),
    random: deps.random,
    mayUse: (id) => isUsable(deps, { id, caller }),
  });
  const ids = named.flatMap((id, place) => {
    const expanded = expandedId(catalog, id, facts);
    if (expanded.alias === undefined) return expanded.ids;
    if (place === 0) call.requestedAs = expanded.alias;
    const usable = expanded.ids.filter((one) => isUsable(deps, { id: one, caller }));
    return usable.length === 0 ? expanded.ids.slice(0, 1) : usable;
  });
  return [...new Set(ids)];
}

const conversationNameOf = (call: InferenceCall): string | undefined => {
  const session = namedSession(call);
  return session && `${session.workspaceId} ${session.id}`;
};

/** Returns whether the catalog has a model that the key may use. */
function isUsable(
  deps: PlanDependencies,
  { id, caller }: { id: string; caller: LlmKeyCaller },
): boolean {
  try {
    const { model } = resolveModel(deps.catalog(caller.workspace.id), id);
    return isModelAllowed(caller.key.allowedModels, model);
  } catch {
    return false;
  }
}

/** Plans a call as far as possible. Throws `GatewayError` when it may not be served at all. */
export function trailOf(deps: PlanDependencies, call: InferenceCall): PlanTrail {
  const { body, requirements } = call;
  checkTrace(body["trace"]);
  if (call.forcedProviders !== undefined) assertAnyKnown(deps.catalog(), call.forcedProviders);
  const { caller, assertServes } = call;
  const ids = askedIds(deps, call);
  const resolved = ids.map((id, place) =>
    place === 0 ? modelFor(deps, { id, caller, assertServes }) : fallbackFor(deps, { id, call }),
  );
  const first = resolved[0];
  const written = withPrivacy(
    providerFilter({
      provider: providerWithAliases(body["provider"], body),
      suffixSort: first?.sort,
      suffixMinContext: first?.minContext,
      forcedProviders: call.forcedProviders,
    }),
    deps.privacyOf(call.caller),
  );
  const preferences = call.sort === undefined ? written : { ...written, sort: call.sort };
  const losesNothing = preferences.requireParameters === true;
  const inputTokens = requirements.estimateInputTokens();
  const choice = CredentialChoice.of(deps, { workspaceId: call.caller.workspace.id, preferences });
  const plan = planRoute(
    {
      models: resolved.map(({ model }) => model),
      // The credential that is tried first is chosen below.
      preferences: choice === undefined ? preferences : { ...preferences, allowFallbacks: true },
      needsTools: requirements.needsTools,
      parameters: losesNothing ? requirements.parameters() : [],
      maxOutputTokens: requirements.neededOutputTokens,
      wishedOutputTokens: requirements.wishedOutputTokens,
      wishedParameters: requirements.wishedParameters,
      inputTokens,
      needs: () => requirements.needs?.() ?? needsOf(body),
      allowedModels: call.caller.key.allowedModels,
      affinity: affinityOf(call),
      mediaAt: requirements.mediaAt,
    },
    choice === undefined ? deps : withKeysOf(choice, deps),
  );
  const { candidates, leftOut, unpriced } = withoutUnpriced(
    choice === undefined ? plan : withCredentials(plan, choice),
    requirements,
  );
  return {
    candidates: inDialects(candidates, call),
    leftOut,
    emptiedBy: plan.emptiedBy,
    moved: plan.moved,
    unpriced,
    ids,
    losesNothing,
    inputTokens,
    requestedModel: first?.model.id ?? "",
    viaRouter: first?.isRouter === true,
  };
}

/** Returns the candidates, each with its route in the dialect that suits the request. */
function inDialects(
  candidates: readonly Candidate[],
  { routeFor }: InferenceCall,
): readonly Candidate[] {
  const hasChoice = candidates.some(({ route }) => route.secondDialect !== undefined);
  if (routeFor === undefined || !hasChoice) return candidates;
  return candidates.map((candidate) => {
    const route = routeFor(candidate.route);
    return route === candidate.route
      ? candidate
      : { ...candidate, route, reason: candidate.reason };
  });
}

const withKeysOf = (
  { hasKey, hasOwnKey }: CredentialChoice,
  { health, random, isServable, sessions }: PlanDependencies,
): PlanFacts => ({ health, random, isServable, sessions, hasKey, hasOwnKey });

const withCredentials = (plan: RoutePlan, choice: CredentialChoice): RoutePlan => ({
  ...plan,
  candidates: choice.candidates(plan.candidates),
  leftOut: [
    ...plan.leftOut.map((left) => {
      const rule = unservedRules.has(left.rule) ? choice.ruleFor(left.provider) : undefined;
      return rule === undefined ? left : { ...left, rule };
    }),
    ...choice.platformLeftOut(plan.candidates),
  ],
});

/**
 * Plans which candidates may serve a call. Throws `GatewayError` when it may not or cannot be
 * served.
 */
export function planCall(deps: PlanDependencies, call: InferenceCall): CallPlan {
  const trail = trailOf(deps, call);
  if (trail.candidates.length === 0) throw noRoute(trail);
  return trail;
}

function affinityOf(call: InferenceCall): Affinity | undefined {
  if (call.affinity !== undefined) return call.affinity;
  const named = namedSession(call);
  return named && new Affinity(undefined, { workspaceId: named.workspaceId, named });
}

/**
 * Returns the session whose provider is to be kept, as far as it is known; undefined where the
 * request belongs to none.
 */
export const sessionOf = (call: InferenceCall): Session | undefined =>
  call.affinity === undefined ? namedSession(call) : call.affinity.session;

/**
 * Rules whose refusal is a matter of permission (contract: 403 where zero data retention leaves no
 * route).
 */
const permissionRules: ReadonlySet<string> = new Set([
  "zdr",
  "blocked_providers",
  "allowed_models",
]);

/** The most providers that an error names. */
const namedMax = 3;

/** Says which keys the gateway lacks, and how they are added. */
function lackingKeys(leftOut: PlanTrail["leftOut"]): string {
  const providers = [...new Set(leftOut.map(({ provider }) => provider))];
  const further = providers.length - namedMax;
  const named =
    providers.slice(0, namedMax).join(", ") + (further > 0 ? ` or ${further} more` : "");
  return (
    `: the gateway has no key of ${named}. The operator starts it with one, such as OPENAI_API_KEY; a workspace adds its own with ` +
    "POST /auth/byok. GET /models lists what can be called"
  );
}

/** Builds the error of a request that no candidate can serve. */
export function noRoute({ ids, leftOut, emptiedBy, unpriced }: PlanTrail): GatewayError {
  if (unpriced !== undefined) return unpricedError(unpriced, ids);
  // The model is served and will be again: tomorrow, or when the operator raises the budget.
  const spent = emptiedBy === "budget_exhausted";
  const code = spent
    ? "service_unavailable"
    : emptiedBy !== undefined && permissionRules.has(emptiedBy)
      ? "forbidden"
      : "no_upstream";
  const rules = [...new Set(leftOut.map(({ rule }) => rule))];
  const why =
    rules.length === 0
      ? ": no provider offers it here"
      : rules.every((rule) => rule === notServable)
        ? lackingKeys(leftOut)
        : ` under these conditions (left out by: ${rules.join("; ")})`;
  return new GatewayError(code, `No provider can serve ${ids.join(", ")}${why}.`, {
    param: "model",
    metadata: { left_out: leftOut.slice(0, 20).map(({ provider, rule }) => ({ provider, rule })) },
  });
}

/**
 * Merges a request's demands on providers with those of its workspace and its key: each can tighten
 * them, and none can relax them.
 */
export function withPrivacy(filter: ProviderFilter, privacy: Privacy): ProviderFilter {
  if (privacy === noPrivacy) return filter;
  return { ...filter, zdr: privacy.zdr || filter.zdr, blocked: privacy.blockedProviders };
}

/**
 * Members of a request that are aliases of members of its `provider` object (contract:
 * PresetConfig).
 */
interface Aliases {
  require_params?: unknown;
  min_context?: unknown;
}

function requireParamsOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((entry) => typeof entry === "string" && entry !== ""))
    return value as string[];
  throw new GatewayError("bad_request", "require_params must be an array of parameter names.", {
    param: "require_params",
  });
}

function minContextOf(value: unknown): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === "number" && value >= 0) return value;
  throw new GatewayError("bad_request", "min_context must be a number of tokens.", {
    param: "min_context",
  });
}

/**
 * Merges the top-level aliases into a request's `provider` object: lists of parameters are joined,
 * and the higher minimum counts. Mistakes inside `provider` itself are left to its own check.
 */
function providerWithAliases(provider: unknown, aliases: Aliases): unknown {
  const params = requireParamsOf(aliases.require_params);
  const minContext = minContextOf(aliases.min_context);
  if (params.length === 0 && minContext === 0) return provider;
  const own = (typeof provider === "object" && provider !== null ? provider : {}) as {
    require_params?: unknown;
    min_context?: unknown;
  };
  return {
    ...own,
    ...(params.length === 0 ? {} : { require_params: mergedParams(own.require_params, params) }),
    ...(minContext === 0
      ? {}
      : {
          min_context:
            typeof own.min_context === "number"
              ? Math.max(own.min_context, minContext)
              : (own.min_context ?? minContext),
        }),
  };
}

const mergedParams = (own: unknown, params: readonly string[]): unknown =>
  own === undefined || own === null
    ? params
    : Array.isArray(own)
      ? [...new Set([...own, ...params])]
      : own;

/** The most characters of `trace` as JSON: many times what its five names need. */
const traceCharactersMax = 8_192;

/**
 * Refuses a `trace` that cannot be kept. It is stored with the record of the charge, so one that is
 * too large to be written would keep its request from being charged. The nesting depth of a body
 * was bounded before.
 */
export function checkTrace(trace: unknown): void {
  if (trace === undefined || trace === null) return;
  if (JSON.stringify(trace).length <= traceCharactersMax) return;
  throw badField(
    "trace",
    `may have at most ${traceCharactersMax} characters of JSON. Send ids and names, not payloads.`,
  );
}

/**
 * The most entries of each kind in a record: enough to see why, few enough to write with every
 * request.
 */
const entriesMax = 8;

/**
 * Returns why a request was routed as it was, for its record; undefined where there was only one
 * route.
 */
export function routingTrail(
  execution: Pick<Execution, "candidates" | "leftOut" | "heldBack">,
): GenerationDetail["routing"] {
  const { candidates, heldBack } = execution;
  const leftOut = heldBack.length === 0 ? execution.leftOut : [...heldBack, ...execution.leftOut];
  if (candidates.length <= 1 && leftOut.length === 0) return undefined;
  const order = candidates
    .slice(0, entriesMax)
    .map(({ route, model, reason }) => `${route.provider.id} ${model.id}: ${reason}`);
  if (leftOut.length === 0) return { order };
  return { order, leftOut: leftOut.slice(0, entriesMax).map(textOf) };
}

/**
 * Texts of routes that lack a credential. They are left out of every request alike, and are the
 * same objects for as long as a catalog lives.
 */
const knownTexts = new WeakMap<LeftOut, string>();

function textOf(left: LeftOut): string {
  const isUnserved = unservedRules.has(left.rule);
  const known = isUnserved ? knownTexts.get(left) : undefined;
  if (known !== undefined) return known;
  const text = `${left.provider} ${left.model}: ${left.rule}`;
  if (isUnserved) knownTexts.set(left, text);
  return text;
}
