import type { AttemptRecord, GenerationRecord } from "../../insights/generation-record.ts";
import { GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";
import type { MeteredUsage } from "../canonical/response.ts";
import type { Loss } from "../canonical/request.ts";
import type { ContentPort } from "./keep-content.ts";
import type { FailedAttempt } from "./failure-error.ts";
import type { AdaptedRoute, InferenceCall, Adapter, CallSignatures } from "./inference-call.ts";
import { boundOrEstimated, type WholeAnswer } from "../dialects/passthrough.ts";
import type { ModelFallback } from "../dialects/gateway-facts.ts";
import type { RelayedStream, KeepAliveTicker } from "./stream/relayed-stream.ts";
import { sessionOf, modelFor } from "./plan-call.ts";
import type { Candidate, LeftOut } from "../routing/candidate.ts";
import { planOrRecord, type Settled } from "./settle.ts";
import { takeHold, outputCapFor, type Allowance } from "./hold/take-hold.ts";
import { AbortScope } from "../upstream/abort-scope.ts";
import type { ProviderKeys } from "../../byok/provider-keys.ts";
import type { Admission } from "../../billing/ledger/hold-rule.ts";
import type { LedgerPort } from "../../billing/ledger/ledger-port.ts";
import type { UncollectedCharges } from "../../billing/ledger/uncollected-charges.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { Privacy } from "../../identity/workspaces/privacy.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CatalogModel, CatalogSnapshot, UpstreamRoute } from "../catalog/model.ts";
import type { HealthWindows } from "../routing/health-windows.ts";
import type { StickySessions } from "../routing/sticky-sessions.ts";
import type { OpenedRoutes } from "./provider-credentials.ts";
import type { TargetLookup } from "./upstream-targets.ts";
import type { UpstreamClient } from "../upstream/upstream-client.ts";

/** Everything that an answer, whole or streamed, is accompanied by. */
export interface Served {
  candidate: Candidate;
  /**
   * What the translation to the upstream's dialect dropped or changed, and of a whole answer what
   * the client's cannot carry.
   */
  losses: readonly Loss[];
  attempts: readonly AttemptRecord[];
  /** The balance that admission saw, in nano-USD; undefined when nothing had to be paid. */
  balanceAtAdmissionNano: bigint | undefined;
  fallback: ModelFallback | undefined;
  /**
   * The cap that the provider was given in place of a larger one, since the caller bears no more;
   * undefined where none was lowered.
   */
  outputCap: number | undefined;
  /** Another provider than before served the request's session. */
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

/** What was lost of a request and of its answer, in one list. */
export const joinLosses = (
  asked: readonly Loss[],
  answered: readonly Loss[] | undefined,
): readonly Loss[] =>
  answered === undefined || answered.length === 0 ? asked : [...asked, ...answered];

/** What one execution carries from step to step. */
export interface Execution {
  deps: InferenceDependencies;
  call: InferenceCall;
  requestedModel: string;
  /** The model that was asked for is a routing preset. */
  viaRouter: boolean;
  /** The caller would rather be refused than lose a parameter (`provider.require_parameters`). */
  losesNothing: boolean;
  inputTokens: number;
  abortScope: AbortScope;
  candidates: readonly Candidate[];
  leftOut: readonly LeftOut[];
  failed: FailedAttempt[];
  /**
   * The last candidate whose model failed at its answer, with what its provider counted for that.
   */
  consumed: { candidate: Candidate; metered: MeteredUsage } | undefined;
  /** Candidates that were not asked, since their providers have no retry budget left. */
  heldBack: LeftOut[];
  /** Candidates that were not asked, since the request cannot be said to them. */
  unsayable: GatewayError[];
  balanceAtAdmissionNano: bigint | undefined;
  /**
   * The largest window that the request did not fit, in tokens; undefined while no provider said
   * so.
   */
  overflownTokens: number | undefined;
  /** What is held of the worst case, where that was too dear to be held whole. */
  allowance: Allowance | undefined;
  firstSendMs: number;
  /** A provider has answered with success, so it may charge for the input. */
  accepted: boolean;
}

/**
 * The fallback that a client sees: only where another model than the one asked for serves.
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

/** Remembers who serves the request's session; true when another provider did before. */
export function noteSession(
  { deps, call, requestedModel }: Execution,
  candidate: Candidate,
): boolean {
  const session = sessionOf(call);
  return (
    session !== undefined && deps.sessions.recordServed(session, { requestedModel, candidate })
  );
}

/**
 * Plans a request and takes its hold; throws `GatewayError` when it may not, cannot or need not be
 * served. A promise where processes share the ledger, or where sessions were.
 */
export const prepare = (
  deps: InferenceDependencies,
  call: InferenceCall,
): Execution | Promise<Execution> =>
  call.admission === undefined ? prepared(deps, call) : admitted(deps, call, call.admission);

/**
 * Prepares a request while its rate windows are counted. Their refusal comes before any other, and
 * leaves nothing held.
 */
async function admitted(
  deps: InferenceDependencies,
  call: InferenceCall,
  { counted }: Admission,
): Promise<Execution> {
  const preparing = (async () => prepared(deps, call))();
  const [preparation, admission] = await Promise.allSettled([preparing, counted]);
  if (admission.status === "rejected") {
    deps.ledger.void(call.generationId);
    throw admission.reason;
  }
  if (preparation.status === "rejected") throw preparation.reason;
  return preparation.value;
}

function prepared(
  deps: InferenceDependencies,
  call: InferenceCall,
): Execution | Promise<Execution> {
  if (deps.chargesStall()) throw stallRefusal();
  const session = deps.sessions.isShared ? sessionOf(call) : undefined;
  if (session === undefined) return planned(deps, call);
  const { model } = modelFor(deps, { ...call, id: String(call.body["model"]) });
  return deps.sessions.recall(session, model.id).then(() => planned(deps, call));
}

/**
 * What `prepare` finds for a request that is not served yet; nothing stays held. Throws as it does.
 */
export async function tryOut(deps: InferenceDependencies, call: InferenceCall): Promise<Execution> {
  const execution = await prepare(deps, call);
  deps.ledger.void(call.generationId);
  return execution;
}

function planned(deps: InferenceDependencies, call: InferenceCall): Execution | Promise<Execution> {
  const plan = planOrRecord(deps, call);
  const execution: Execution = {
    deps,
    call,
    ...plan,
    failed: [],
    heldBack: [],
    unsayable: [],
    abortScope: new AbortScope(call.signalOf, { aborts: deps.disconnect === "abort" }),
    balanceAtAdmissionNano: undefined,
    overflownTokens: undefined,
    consumed: undefined,
    allowance: undefined,
    firstSendMs: 0,
    accepted: false,
  };
  const holding = takeHold(execution);
  return holding === undefined ? execution : holding.then(() => execution);
}

/**
 * While the database takes no charges, nothing is asked of a provider: it would cost us and could
 * not be charged.
 */
const stallRefusal = (): GatewayError =>
  new GatewayError(
    "service_unavailable",
    "The gateway's database takes no charges at the moment, so no provider was asked. Try again in a few seconds.",
    { retryAfterSeconds: 2 },
  );

/** A request as a candidate is sent it. */
export interface Told {
  adapter: Adapter;
  /** The cap that stands in it in place of a larger one; undefined where it was not lowered. */
  outputCap: number | undefined;
}

/**
 * The request as this candidate is sent it; undefined where it cannot express it or is too dear,
 * which is
 * noted.
 */
export function adapterFor(execution: Execution, candidate: Candidate): Told | undefined {
  const { call, losesNothing, unsayable } = execution;
  try {
    const outputCap = outputCapFor(execution, candidate);
    const { model, route } = candidate;
    const adapter = call.adapt(outputCap === undefined ? candidate : { model, route, outputCap });
    if (!losesNothing || adapter.losses.length === 0) return { adapter, outputCap };
    unsayable.push(wouldLose(candidate, adapter.losses));
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    unsayable.push(error);
  }
  return undefined;
}

function wouldLose({ route }: Candidate, losses: readonly Loss[]): GatewayError {
  const fields = [...new Set(losses.map(({ field }) => field))];
  const message =
    "No provider takes every parameter of this request, as provider.require_parameters asks; " +
    `${route.provider.name} would not hear: ${fields.slice(0, 10).join(", ")}.`;
  return new GatewayError("no_upstream", message, {
    param: fields[0] ?? "model",
    metadata: {
      translation_loss: losses.slice(0, 20).map(({ field, reason }) => ({ field, reason })),
    },
  });
}

/** The window that is assumed where the catalog names none: that of the largest models. */
const windowTokensDefault = 2_000_000;

/** Tokens that a candidate can take in, and can give out, in one request. */
export const windowTokensOf = ({ route, model }: AdaptedRoute): number =>
  route.contextLength || model.contextLength || windowTokensDefault;

/**
 * The usage to settle with: the provider's as far as it can be true, or an estimate from the texts.
 */
export const meteredOf = (
  { metered, outputCharacters }: WholeAnswer,
  { inputTokens, windowTokens }: { inputTokens: number; windowTokens: number },
): MeteredUsage => boundOrEstimated(metered, { inputTokens, windowTokens, outputCharacters });

/** What a lost client does to its upstream: stop it, or read on to its own usage under a cap. */
export type DisconnectPolicy = "abort" | "drain";

/** Everything that serving a request needs, built once. */
export interface InferenceDependencies {
  catalog(): CatalogSnapshot;
  ledger: LedgerPort;
  /** Whether the database has stopped taking charges. */
  chargesStall(): boolean;
  /** Where charges go that the database refused. */
  uncollected: Pick<UncollectedCharges, "keep" | "count" | "stop">;
  /** Callers' own keys at providers, and those that were donated. */
  providerKeys: ProviderKeys;
  openedRoutes: OpenedRoutes;
  upstream: UpstreamClient;
  health: HealthWindows;
  observer: InferenceObserver;
  /**
   * Takes the records of requests that are not settled: failed ones and those answered from a
   * cache.
   */
  unsettled: { write(record: GenerationRecord): void };
  clock: Clock;
  random(): number;
  keepAlive: KeepAliveTicker;
  callSignatures: CallSignatures;
  sessions: StickySessions;
  /** What the workspace and the key of a caller demand of every provider. */
  privacyOf(caller: LlmKeyCaller): Privacy;
  /** Takes prompts and answers of workspaces that ask for it; absent where there is no archive. */
  contents?: ContentPort | undefined;
  /**
   * Whether a workspace has credits for signing up that are held until something happens; absent
   * where there are none.
   */
  holdsBonus: ((workspaceId: string) => Promise<boolean>) | undefined;
  disconnect: DisconnectPolicy;
  /** Returns the address where an error code is explained. */
  errorAddress(code: ErrorCode): string;
  /** Where a route's requests go, whole or streamed; the same object for the same route. */
  targetOf: TargetLookup;
  /** Whether this process can call a route with a platform credential and bill for it. */
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
}

/** Told of what happened, for metrics and traces; must not throw and must not wait. */
export interface InferenceObserver {
  /** An attempt at a provider ended. */
  attemptEnded(attempt: AttemptRecord): void;
  /** A request was settled and its record written. */
  settled(record: GenerationRecord, timing: RequestTiming): void;
  /** A request ended with an error and was not settled. */
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
  /** A settlement failed; the caller received an error, and nothing was charged. */
  settlementFailed(error: unknown, generationId: string): void;
  /** An answer was given and charged, but could not be stored for later. */
  responseNotKept(error: unknown, responseId: string): void;
  streamOpened(): void;
  streamClosed(): void;
}

/** Where the time of a request went, in milliseconds of the monotonic clock. */
export interface RequestTiming {
  startedMs: number;
  /** Sending of the first upstream request. */
  firstSendMs: number;
  firstContentMs: number | null;
  /** The last byte of the upstream's answer. */
  upstreamEndMs: number;
  settledMs: number;
}
