import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { providerIdIn, type CatalogModel, type CatalogSnapshot } from "../catalog/model.ts";
import { CredentialChoice } from "./provider-credentials.ts";
import type { InferenceDependencies } from "./execution.ts";
import type { InferenceCall } from "./inference-call.ts";
import {
  type Candidate,
  type LeftOut,
  type ProviderFilter,
  notServable,
} from "../routing/candidate.ts";
import { planRoute, type PlanFacts, type RoutePlan } from "../routing/plan-route.ts";
import { providerFilter } from "../routing/provider-preferences.ts";
import { needsOf } from "../dialects/requirements.ts";
import { isModelAllowed, resolveModel, type ResolvedModel } from "../routing/resolve-models.ts";
import type { Session } from "../routing/sticky-sessions.ts";
import { noPrivacy, type Privacy } from "../../identity/workspaces/privacy.ts";

/** Who may serve a call, in order. */
export interface CallPlan {
  /** Canonical id of the model that was asked for. */
  requestedModel: string;
  /** The model that was asked for is a routing preset: whichever member serves is no fallback. */
  viaRouter: boolean;
  /** The estimate of the input. */
  inputTokens: number;
  /** At least one. */
  candidates: readonly Candidate[];
  leftOut: readonly LeftOut[];
  /** The caller would rather be refused than lose a parameter (`provider.require_parameters`). */
  losesNothing: boolean;
}

/** Allow-lists of the key: models that it may not use are refused before anything is planned. */
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
 * Backends named by header of which the catalog knows none are a mistake, not a condition that
 * does not occur.
 */
function assertAnyKnown(catalog: CatalogSnapshot, names: readonly string[]): void {
  if (names.some((name) => providerIdIn(catalog, name) !== undefined)) return;
  const header = brandHeader("Provider");
  const message = `${header} names no provider of the catalog: ${names.join(", ")}. GET /providers lists them.`;
  throw new GatewayError("unknown_provider", message, { param: header });
}

/**
 * Characters that a model id may have: no catalog has longer ones, and unknown ids are repeated in
 * errors and logs.
 */
const modelIdLengthMax = 256;

function assertPlausibleId(id: string): void {
  if (id.length <= modelIdLengthMax) return;
  const message = `Model ids have at most ${modelIdLengthMax} characters; this one has ${id.length}.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}

/**
 * The model that an id means to a caller on a surface. Throws `GatewayError` when there is none
 * that it may ask for here.
 */
export function modelFor(
  deps: Pick<InferenceDependencies, "catalog">,
  { id, caller, assertServes }: Pick<InferenceCall, "caller" | "assertServes"> & { id: string },
): ResolvedModel {
  assertPlausibleId(id);
  const resolved = resolveModel(deps.catalog(), id);
  assertModelAllowed(caller, resolved.model);
  assertServes(resolved.model);
  return resolved;
}

/**
 * A fallback model that may be asked for here; its error names its place in
 * `models`.
 */
function fallbackFor(
  deps: PlanDependencies,
  { id, call }: { id: string; call: InferenceCall },
): ResolvedModel {
  const { body, caller, assertServes } = call;
  try {
    return modelFor(deps, { id, caller, assertServes });
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const param = `models[${(body["models"] as string[]).indexOf(id)}]`;
    throw new GatewayError(error.code, error.message, { param, metadata: error.metadata });
  }
}

/** A plan with everything that led to it, even where no candidate is left. */
export interface PlanTrail extends RoutePlan {
  /** Ids as they were asked for, in order. */
  ids: readonly string[];
  requestedModel: string;
  viaRouter: boolean;
  losesNothing: boolean;
  inputTokens: number;
}

/** What planning looks at; it asks no database and no provider. */
export type PlanDependencies = Pick<
  InferenceDependencies,
  "catalog" | "privacyOf" | "providerKeys" | "isServable" | "health" | "random" | "sessions"
>;

/** The models that a request names, each once. */
function modelIdsOf({ model, models }: InferenceCall["body"]): readonly string[] {
  const first = String(model);
  return Array.isArray(models) ? [...new Set([first, ...(models as string[])])] : [first];
}

/**
 * Plans a call as far as it can be planned. Throws `GatewayError` when it may not be served at all.
 */
export function trailOf(deps: PlanDependencies, call: InferenceCall): PlanTrail {
  const { body, requirements } = call;
  checkTrace(body["trace"]);
  if (call.forcedProviders !== undefined) assertAnyKnown(deps.catalog(), call.forcedProviders);
  const { caller, assertServes } = call;
  const ids = modelIdsOf(body);
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
      // Which credential is the first to be tried is chosen below.
      preferences: choice === undefined ? preferences : { ...preferences, allowFallbacks: true },
      needsTools: requirements.needsTools,
      parameters: losesNothing ? requirements.parameters() : [],
      maxOutputTokens: requirements.neededOutputTokens,
      wishedOutputTokens: requirements.wishedOutputTokens,
      wishedParameters: requirements.wishedParameters,
      inputTokens,
      needs: () => needsOf(body),
      allowedModels: call.caller.key.allowedModels,
      session: sessionOf(call),
    },
    choice === undefined ? deps : withKeysOf(choice, deps),
  );
  const { candidates, leftOut, emptiedBy, moved } =
    choice === undefined ? plan : withCredentials(plan, choice);
  return {
    candidates,
    leftOut,
    emptiedBy,
    moved,
    ids,
    losesNothing,
    inputTokens,
    requestedModel: first?.model.id ?? "",
    viaRouter: first?.isRouter === true,
  };
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
      const rule = left.rule === notServable ? choice.ruleFor(left.provider) : undefined;
      return rule === undefined ? left : { ...left, rule };
    }),
    ...choice.platformLeftOut(plan.candidates),
  ],
});

/**
 * Plans a call: which candidates may serve it. Throws `GatewayError` when it may not or cannot be
 * served.
 */
export function planCall(deps: PlanDependencies, call: InferenceCall): CallPlan {
  const trail = trailOf(deps, call);
  if (trail.candidates.length === 0) throw noRoute(trail);
  return trail;
}

/** The session whose provider is to be kept; undefined where the request belongs to none. */
export const sessionOf = ({ sessionId, caller }: InferenceCall): Session | undefined =>
  sessionId === undefined ? undefined : { workspaceId: caller.workspace.id, id: sessionId };

/**
 * Rules whose refusal is a matter of permission (contract: 403 where zero data retention leaves no
 * route).
 */
const permissionRules: ReadonlySet<string> = new Set([
  "zdr",
  "blocked_providers",
  "allowed_models",
]);

/** The error of a request that no candidate can serve. */
export function noRoute({ ids, leftOut, emptiedBy }: PlanTrail): GatewayError {
  // The model is served, and will be again: tomorrow, or when the operator allows more.
  const spent = emptiedBy === "budget_exhausted";
  const code = spent
    ? "service_unavailable"
    : emptiedBy !== undefined && permissionRules.has(emptiedBy)
      ? "forbidden"
      : "no_upstream";
  const rules = [...new Set(leftOut.map(({ rule }) => rule))].join("; ");
  const why =
    rules === ""
      ? ": no provider offers it here"
      : ` under these conditions (left out by: ${rules})`;
  return new GatewayError(code, `No provider can serve ${ids.join(", ")}${why}.`, {
    param: "model",
    metadata: { left_out: leftOut.slice(0, 20).map(({ provider, rule }) => ({ provider, rule })) },
  });
}

/**
 * What a request asks of providers, with what its workspace and its key demand: each can ask for
 * more, and none for less.
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
 * The `provider` object of a request with the top-level aliases merged in: parameter lists are
 * unioned, the higher minimum counts. What is wrong inside `provider` itself is left for its own
 * check.
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

/** Characters that `trace` may have as JSON: its five names fit many times over. */
const traceCharactersMax = 8_192;

/**
 * Refuses a `trace` that cannot be kept. It is stored with the record of the charge, so one that is
 * too large to be written would keep its request from being charged at all. How deep a body may be
 * nested is bounded before.
 */
export function checkTrace(trace: unknown): void {
  if (trace === undefined || trace === null) return;
  if (JSON.stringify(trace).length <= traceCharactersMax) return;
  throw new GatewayError(
    "bad_request",
    `trace: may have at most ${traceCharactersMax} characters of JSON. Send ids and names, not payloads.`,
    { param: "trace" },
  );
}
