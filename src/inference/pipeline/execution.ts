import type { AttemptRecord, GenerationRecord } from "../../insights/generation-record.ts";
import { GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";
import type { MeteredUsage, ModelFallback } from "../canonical/response.ts";
import type { Loss } from "../canonical/request.ts";
import type { ContentPort } from "./keep-content.ts";
import type { FailedAttempt } from "./failure-error.ts";
import type { AdaptedRoute, InferenceCall, Adapter } from "./inference-call.ts";
import type { SealMemory } from "./credentials/seal-memory.ts";
import type { CallSignatures } from "./stream/call-signatures.ts";
import { boundOrEstimated } from "../canonical/answer-meter.ts";
import type { WholeAnswer } from "../dialects/shared/exchange.ts";
import type { RelayedBytes } from "./stream/relayed-bytes.ts";
import type { RelayedStream } from "./stream/relayed-stream.ts";
import type { KeepAliveTicker } from "./stream/keep-alive-ticker.ts";
import { sessionOf, modelFor, trailOf } from "./plan-call.ts";
import type { ProviderFiles } from "./provider-files/provider-files.ts";
import { holdOfLeg, planForLeg } from "./batches/batch-leg.ts";
import type { Candidate, LeftOut } from "../routing/candidate.ts";
import { planOrRecord, type Settled } from "./settle.ts";
import { takeHold, outputCapFor, type Allowance } from "./hold/take-hold.ts";
import { expectedUse, holdCeiling } from "./hold/hold-ceiling.ts";
import { AbortScope } from "../upstream/abort-scope.ts";
import type { ProviderKeys } from "../../byok/provider-keys.ts";
import type { Admission } from "../../billing/ledger/hold-rule.ts";
import { assertServed } from "../../billing/customers/customer-book.ts";
import type { LedgerPort } from "../../billing/ledger/ledger-port.ts";
import type { UncollectedCharges } from "../../billing/ledger/uncollected-charges.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { Privacy } from "../../identity/workspaces/privacy.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CatalogModel, CatalogSnapshot, UpstreamRoute } from "../catalog/model.ts";
import { chatDialectOf } from "./adapt.ts";
import { upstreamDialects } from "../dialects/index.ts";
import { namesIds, withScopedIds } from "../dialects/shared/end-user-ids.ts";
import { prefixName, type Session } from "../routing/affinity.ts";
import type { HealthWindows } from "../routing/health/health-windows.ts";
import {
  isAtPlace,
  isSamePlace,
  type SessionPlace,
  type StickySessions,
} from "../routing/sticky-sessions.ts";
import type { OpenedRoutes } from "./credentials/opened-routes.ts";
import type { TargetLookup } from "./upstream-targets.ts";
import type { UpstreamClient } from "../upstream/upstream-client.ts";

/** The facts that accompany every answer, whole or streamed. */
export interface Served {
  candidate: Candidate;
  /**
   * The parts that the translation to the upstream's dialect dropped or changed and, for a whole
   * answer, those that the client's dialect cannot carry.
   */
  losses: readonly Loss[];
  attempts: readonly AttemptRecord[];
  /** The balance at admission, in nano-USD; undefined for a request that costs no credits. */
  balanceAtAdmissionNano: bigint | undefined;
  fallback: ModelFallback | undefined;
  /** The cap that replaced a larger one, which the caller cannot afford; undefined where none was. */
  outputCap: number | undefined;
  /** Whether this session was served by another provider before. */
  sessionMoved: boolean;
  timing: Omit<RequestTiming, "settledMs">;
}

/** A whole answer, settled. */
export interface ServedWhole extends Served {
  kind: "whole";
  answer: WholeAnswer;
  settled: Settled;
  metered: MeteredUsage;
}

/** A stream whose first content has come. */
export interface ServedStream extends Served {
  kind: "stream";
  stream: RelayedStream;
}

/** An answer of bytes, of which the first have come. */
export interface ServedBytes extends Served {
  kind: "bytes";
  bytes: RelayedBytes;
}

/** Joins the losses of a request and of its answer in one list. */
export const joinLosses = (
  asked: readonly Loss[],
  answered: readonly Loss[] | undefined,
): readonly Loss[] =>
  answered === undefined || answered.length === 0 ? asked : [...asked, ...answered];

/** The state that one execution carries from step to step. */
export interface Execution {
  deps: InferenceDependencies;
  call: InferenceCall;
  requestedModel: string;
  /** Whether the requested model is a routing preset. */
  viaRouter: boolean;
  /** Whether the caller prefers a refusal to a lost parameter (`provider.require_parameters`). */
  losesNothing: boolean;
  inputTokens: number;
  abortScope: AbortScope;
  candidates: readonly Candidate[];
  leftOut: readonly LeftOut[];
  failed: FailedAttempt[];
  /** The last candidate whose model failed to answer, with the usage that its provider reported. */
  consumed: { candidate: Candidate; metered: MeteredUsage } | undefined;
  /** Candidates that were not called because their providers have no retry budget left. */
  heldBack: LeftOut[];
  /**
   * Why candidates were not called: their dialect cannot express the request, the caller cannot
   * afford them, or nothing is left of the quota of their key.
   */
  notCalled: GatewayError[];
  balanceAtAdmissionNano: bigint | undefined;
  /**
   * The largest context window, in tokens, that the prompt overflowed; undefined while no provider
   * has reported an overflow.
   */
  overflownTokens: number | undefined;
  /**
   * The amount that the request may use, where its worst case was too expensive to be held whole.
   */
  allowance: Allowance | undefined;
  firstSendMs: number;
  /** Whether a provider has answered with success, so that it may charge for the input. */
  accepted: boolean;
}

/**
 * Returns the fallback that a client sees: only where another model than the requested one serves.
 */
export function fallbackOf(
  execution: Execution,
  candidate: Candidate,
  attempts: readonly AttemptRecord[],
): ModelFallback | undefined {
  if (candidate.model.id === execution.requestedModel || execution.viaRouter) return undefined;
  const reason =
    execution.failed.find(({ record }) => record.model === execution.requestedModel)?.failure
      .reason ?? "not_attempted";
  return { requestedModel: execution.requestedModel, reason, attempts };
}

/**
 * Remembers which provider serves the request's session. Returns true when another provider did
 * before.
 */
export function noteSession(
  { deps, call, requestedModel }: Execution,
  candidate: Candidate,
): boolean {
  const session = sessionOf(call);
  if (session === undefined) return false;
  const moved = deps.sessions.recordServed(session, { requestedModel, candidate });
  // A caller that names no session is not informed of moves.
  return moved && session.by !== prefixName;
}

/**
 * Plans a request and takes its hold. Throws `GatewayError` when the request is not allowed, cannot
 * be served, or needs no provider. Returns a promise only where processes share the ledger or
 * sessions.
 */
export const beginExecution = (
  deps: InferenceDependencies,
  call: InferenceCall,
): Execution | Promise<Execution> =>
  call.admission === undefined
    ? openExecution(deps, call)
    : openWhileAdmitted(deps, call, call.admission);

/**
 * Prepares a request while its rate windows are counted. A refusal by a rate window takes
 * precedence over any other, and leaves no hold.
 */
async function openWhileAdmitted(
  deps: InferenceDependencies,
  call: InferenceCall,
  { counted }: Admission,
): Promise<Execution> {
  const opening = (async () => openExecution(deps, call))();
  const [opened, admission] = await Promise.allSettled([opening, counted]);
  if (admission.status === "rejected") {
    deps.ledger.void(call.generationId);
    throw admission.reason;
  }
  if (opened.status === "rejected") throw opened.reason;
  return opened.value;
}

function openExecution(
  deps: InferenceDependencies,
  call: InferenceCall,
): Execution | Promise<Execution> {
  if (deps.chargesStall()) throw stallRefusal();
  assertServed(deps.ledger, call);
  if (!deps.sessions.isShared) return planExecution(deps, call);
  const named = sessionOf(call);
  if (named === undefined) return planByPrefix(deps, call);
  const { model } = modelFor(deps, { ...call, id: String(call.body["model"]) });
  return planWhileRecalling(deps, call, { session: named, modelId: model.id });
}

/**
 * Plans a request and takes its hold while the gateway learns where other gateways served its
 * session. The hold covers all candidates in any order. Rejects as `beginExecution` does.
 */
async function planWhileRecalling(
  deps: InferenceDependencies,
  call: InferenceCall,
  asked: AskedSession,
): Promise<Execution> {
  const before = deps.sessions.lastPlace(asked.session, asked.modelId);
  const recalling = deps.sessions.recall(asked.session, asked.modelId);
  const execution = await planExecution(deps, call);
  await recalling;
  return movedToPlace(execution, { ...asked, before });
}

/**
 * Plans a request that names no session. Other gateways are asked only where the plan had to look
 * for the session of its cached prefix.
 */
function planByPrefix(
  deps: InferenceDependencies,
  call: InferenceCall,
): Execution | Promise<Execution> {
  const planning = planExecution(deps, call);
  const isNeeded = sessionOf(call) !== undefined;
  return isNeeded ? recallAfter(planning) : planning;
}

async function recallAfter(planning: Execution | Promise<Execution>): Promise<Execution> {
  const execution = await planning;
  const { deps, call, requestedModel: modelId } = execution;
  const session = sessionOf(call);
  if (session === undefined) return execution;
  const before = deps.sessions.lastPlace(session, modelId);
  await deps.sessions.recall(session, modelId);
  return movedToPlace(execution, { session, modelId, before });
}

/** A session, and the id of the model that it asks for. */
interface AskedSession {
  session: Session;
  modelId: string;
}

/** Returns an execution with the candidate first that other gateways know to serve the session. */
function movedToPlace(
  execution: Execution,
  { session, modelId, before }: AskedSession & { before: SessionPlace | undefined },
): Execution {
  const { deps, call } = execution;
  const place = deps.sessions.lastPlace(session, modelId);
  if (place === undefined || (before !== undefined && isSamePlace(place, before))) return execution;
  const [first] = trailOf(deps, call).candidates;
  if (first === undefined || !isAtPlace(first, place)) return execution;
  const held = execution.candidates.find((candidate) => isAtPlace(candidate, place));
  if (held === undefined) return execution;
  const others = execution.candidates.filter((candidate) => candidate !== held);
  execution.candidates = [{ ...held, reason: first.reason }, ...others];
  return execution;
}

/**
 * Returns what `beginExecution` would find for a request, without serving it and without leaving a
 * hold. Throws as `beginExecution` does.
 */
export async function tryOut(deps: InferenceDependencies, call: InferenceCall): Promise<Execution> {
  const execution = await beginExecution(deps, call);
  deps.ledger.void(call.generationId);
  return execution;
}

function planExecution(
  deps: InferenceDependencies,
  call: InferenceCall,
): Execution | Promise<Execution> {
  const { leg } = call;
  const plan = leg === undefined ? planOrRecord(deps, call) : planForLeg(deps, call, leg);
  const execution: Execution = {
    deps,
    call,
    requestedModel: plan.requestedModel,
    viaRouter: plan.viaRouter,
    losesNothing: plan.losesNothing,
    inputTokens: plan.inputTokens,
    candidates: plan.candidates,
    leftOut: plan.leftOut,
    failed: [],
    heldBack: [],
    notCalled: [],
    abortScope: new AbortScope(call.signalOf, { aborts: deps.disconnect === "abort" }),
    balanceAtAdmissionNano: undefined,
    overflownTokens: undefined,
    consumed: undefined,
    allowance: undefined,
    firstSendMs: 0,
    accepted: false,
  };
  if (leg?.kind === "gather") {
    leg.ceilingNano = holdCeiling(execution.candidates, expectedUse(execution));
    return execution;
  }
  const holding = leg === undefined ? takeHold(execution) : holdOfLeg(deps.ledger, call, leg);
  return holding === undefined ? execution : holding.then(() => execution);
}

/** Builds the refusal while the database takes no charges: an answer would cost the operator. */
const stallRefusal = (): GatewayError =>
  new GatewayError(
    "service_unavailable",
    "The gateway's database takes no charges at the moment, so no provider was asked. Try again in a few seconds.",
    { retryAfterSeconds: 2 },
  );

/** A request as it is sent to one candidate. */
export interface AdaptedRequest {
  adapter: Adapter;
  /** The output cap in it that replaces a larger one; undefined where none was lowered. */
  outputCap: number | undefined;
}

/** Adapts the request to a candidate; undefined, and noted, where that is impossible or too dear. */
export function adapterFor(execution: Execution, candidate: Candidate): AdaptedRequest | undefined {
  const { call, losesNothing, notCalled } = execution;
  try {
    const outputCap = outputCapFor(execution, candidate);
    const { model, route } = candidate;
    const adapter = call.adapt(outputCap === undefined ? candidate : { model, route, outputCap });
    if (!losesNothing || adapter.losses.length === 0)
      return { adapter: scoped(execution, { candidate, adapter }), outputCap };
    notCalled.push(wouldLose(candidate, adapter.losses));
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    notCalled.push(error);
  }
  return undefined;
}

/** Scopes the ids of the caller's users by workspace, where the platform's credential serves. */
function scoped(
  execution: Execution,
  { candidate, adapter }: { candidate: Candidate; adapter: Adapter },
): Adapter {
  if (candidate.credential !== undefined) return adapter;
  const { pieces } = adapter;
  if (pieces !== undefined) {
    const each = pieces.each.map((piece) => scoped(execution, { candidate, adapter: piece }));
    return { ...adapter, pieces: { ...pieces, each } };
  }
  const { deps, call } = execution;
  const { route } = candidate;
  const { id } = call.caller.workspace;
  if (adapter.withEndUser !== undefined)
    return adapter.withEndUser((endUserId) => deps.scopedId(`${id} ${endUserId}`));
  if (!namesIds(call.body)) return adapter;
  const options = {
    inMetadata:
      call.surface === "chat" && upstreamDialects[chatDialectOf(route)].userInMetadata === true,
    scope: (endUserId: string) => deps.scopedId(`${id} ${endUserId}`),
  };
  const edited = withScopedIds(adapter.requestText, options);
  return edited === undefined
    ? adapter
    : { ...adapter, requestText: edited.text, requestParts: edited.parts };
}

function wouldLose({ route }: Candidate, losses: readonly Loss[]): GatewayError {
  const fields = [...new Set(losses.map(({ field }) => field))];
  const message =
    "No provider takes every parameter of this request, as provider.require_parameters asks; " +
    `${route.provider.name} does not support: ${fields.slice(0, 10).join(", ")}.`;
  return new GatewayError("no_upstream", message, {
    param: fields[0] ?? "model",
    metadata: {
      translation_loss: losses.slice(0, 20).map(({ field, reason }) => ({ field, reason })),
    },
  });
}

/**
 * The context window, in tokens, that is assumed where the catalog names none: that of the largest
 * models.
 */
const windowTokensDefault = 2_000_000;

/** Returns how many tokens a candidate can take in and generate in one request. */
export const windowTokensOf = ({ route, model }: AdaptedRoute): number =>
  route.contextLength || model.contextLength || windowTokensDefault;

/**
 * Returns the usage to settle with: the provider's, as far as it is plausible, or an estimate from
 * the texts.
 */
export const meteredOf = (
  { metered, outputCharacters }: WholeAnswer,
  { inputTokens, windowTokens }: { inputTokens: number; windowTokens: number },
): MeteredUsage => boundOrEstimated(metered, { inputTokens, windowTokens, outputCharacters });

/**
 * The fate of the upstream request when its client leaves: it is aborted, or read on to its usage,
 * within a limit.
 */
export type DisconnectPolicy = "abort" | "drain";

/** The dependencies of serving requests, built once. */
export interface InferenceDependencies {
  /** Returns the catalog, with a workspace's own names of models where its id is passed. */
  catalog(workspaceId?: string): CatalogSnapshot;
  ledger: LedgerPort;
  /** Whether the database has stopped taking charges. */
  chargesStall(): boolean;
  /** Keeps the charges that the database refused. */
  uncollected: Pick<UncollectedCharges, "keep" | "count" | "stop">;
  /** Callers' own provider keys, and the donated ones. */
  providerKeys: ProviderKeys;
  openedRoutes: OpenedRoutes;
  upstream: UpstreamClient;
  /** The files that providers store; absent where contents are always sent. */
  providerFiles?: ProviderFiles | undefined;
  health: HealthWindows;
  observer: InferenceObserver;
  /**
   * Writes the records of requests that are not settled: failed ones, and those answered from a
   * cache.
   */
  unsettled: { write(record: GenerationRecord): void };
  clock: Clock;
  random(): number;
  keepAlive: KeepAliveTicker;
  callSignatures: CallSignatures;
  /** Remembers sealed reasoning that providers cannot read. */
  sealMemory: SealMemory;
  sessions: StickySessions;
  /** Returns what a caller's workspace and key demand of every provider. */
  privacyOf(caller: LlmKeyCaller): Privacy;
  /** Takes prompts and answers of workspaces that keep them; absent where there is no archive. */
  contents?: ContentPort | undefined;
  /**
   * Returns whether a workspace has sign-up credits that are held until a condition is met; absent
   * where there are no such credits.
   */
  holdsBonus: ((workspaceId: string) => Promise<boolean>) | undefined;
  disconnect: DisconnectPolicy;
  /** Milliseconds after which a stream without content begins with a ping; absent means never. */
  keepaliveBeforeContentMs?: number | undefined;
  /** Returns the keyed hash of an id of a caller's user, as providers are sent it. */
  scopedId(id: string): string;
  /** Returns the address where an error code is explained. */
  errorAddress(code: ErrorCode): string;
  /**
   * Returns where a route's requests are sent, whole or streamed; the same object for the same
   * route.
   */
  targetOf: TargetLookup;
  /** Returns whether this process can call a route with a platform credential and bill for it. */
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
}

/** Receives events for metrics and traces. Its methods must not throw and must not block. */
export interface InferenceObserver {
  /** Called when an attempt at a provider has ended. */
  attemptEnded(attempt: AttemptRecord): void;
  /** Called when a request was settled and its record written. */
  settled(record: GenerationRecord, timing: RequestTiming): void;
  /** Called when a request ended with an error and was not settled. */
  failed(request: {
    error: GatewayError;
    traceId: string;
    workspaceId: string;
    keyId: string;
    surface: string;
    requestedModel: string;
    attempts: readonly AttemptRecord[];
    durationMs: number;
  }): void;
  /** Called when a settlement failed: the caller received an error, and nothing was charged. */
  settlementFailed(error: unknown, generationId: string): void;
  /** Called when an answer was given and charged, but could not be stored. */
  responseNotKept(error: unknown, responseId: string): void;
  /** Called when the gateway itself failed on a request whose stream had begun before its content. */
  earlyStreamFailed(error: unknown, generationId: string): void;
  streamOpened(): void;
  streamClosed(): void;
}

/** When the phases of a request began or ended, in milliseconds of the monotonic clock. */
export interface RequestTiming {
  startedMs: number;
  /** When the first upstream request was sent. */
  firstSendMs: number;
  firstContentMs: number | null;
  /** When the last byte of the upstream's answer arrived. */
  upstreamEndMs: number;
  settledMs: number;
}
