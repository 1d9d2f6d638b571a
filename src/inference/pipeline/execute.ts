import { assert } from "../../platform/kernel/assert.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import {
  attemptRecord,
  type FailureWithUsage,
  readWhole,
  sendAttempt,
  sendTo,
  type Whole,
} from "./attempt.ts";
import { fallbackOf, joinLosses, failedHeaders } from "./answer-metadata.ts";
import { noteSession, beginExecution } from "./begin-execution.ts";
import {
  adapterFor,
  type AdaptedRequest,
  adaptedAgain,
  withoutKnownSeals,
} from "./adapted-request.ts";
import { windowTokensOf, type Candidate } from "../routing/candidate.ts";
import type { InferenceDependencies, Execution } from "./execution.ts";
import {
  type ServedBytes,
  type ServedStream,
  asEventStream,
  openBytes,
  openStream,
} from "./stream/open-stream.ts";
import type { ServedWhole, Settled } from "./served-answer.ts";
import {
  errorOfAttempts,
  type FailureContext,
  spentOnReasoning,
  withoutCredential,
} from "./failure-error.ts";
import type { InferenceCall, Adapter, RequestPieces } from "./inference-call.ts";
import { boundUsage, boundOrEstimated } from "../canonical/answer-meter.ts";
import type { WholeAnswer } from "../dialects/shared/exchange.ts";
import { exceptionFormOf } from "./adapt.ts";
import { keepAnswer } from "./settlement/keep-content.ts";
import {
  isHeldBack,
  noteKeyFailure,
  noteKeyServed,
  takeKey,
} from "./credentials/provider-credentials.ts";
import { routingTrail } from "./plan/plan-call.ts";
import { recordFailed } from "./settlement/records.ts";
import { settle, withAnswer } from "./settlement/settle.ts";
import type { Settlement } from "./settlement/settlement.ts";
import type { AttemptFailure } from "../upstream/upstream-failure.ts";
import type { AbortScope } from "../upstream/abort-scope.ts";
import type { UpstreamResponse } from "../upstream/response-parser.ts";

/**
 * Runs an inference request: plans it, takes its hold, attempts one candidate after another until
 * one answers, and settles. Throws `GatewayError`. Before this function ends in any way, the hold
 * is settled, freed, or handed to the stream that settles it.
 */
export const execute = (
  deps: InferenceDependencies,
  call: InferenceCall,
): Promise<ServedWhole | ServedStream> => run(deps, call, isText);

const isText = (served: Served): served is ServedWhole | ServedStream => served.kind !== "bytes";

/** Runs a request that is answered with bytes, in the same way. Throws `GatewayError`. */
export const executeBytes = (
  deps: InferenceDependencies,
  call: InferenceCall,
): Promise<ServedBytes> => run(deps, call, isBytes);

const isBytes = (served: Served): served is ServedBytes => served.kind === "bytes";

type Served = ServedWhole | ServedStream | ServedBytes;

/** `isWanted` says whether an answer is of the kind that every adapter of the surface gives. */
async function run<Wanted extends Served>(
  deps: InferenceDependencies,
  call: InferenceCall,
  isWanted: (served: Served) => served is Wanted,
): Promise<Wanted> {
  const begun = beginExecution(deps, call);
  const execution = begun instanceof Promise ? await begun : begun;
  try {
    execution.firstSendMs = deps.clock.monotonicMs();
    for (const planned of execution.candidates) {
      if (isTooShort(execution, planned)) continue;
      const ready = readyFor(execution, planned);
      if (ready === undefined) continue;
      const served = (await attemptOne(execution, ready)) ?? (await attemptAgain(execution, ready));
      if (served !== undefined) {
        assert(isWanted(served), "every adapter of a surface gives answers of the same kind");
        return served;
      }
      if (execution.abortScope.clientGone) await leave(execution, ready.candidate);
      if (!mayGoOn(execution)) break;
    }
    if (execution.consumed !== undefined) throw await chargedFailure(execution, execution.consumed);
    const [reason] = execution.notCalled;
    throw execution.failed.length === 0 && reason !== undefined
      ? reason
      : errorOfExecution(execution);
  } catch (error) {
    reportFailure(execution, error);
    // A whole answer has settled its hold by now, and a stream settles it later. A hold that is
    // still open was never charged.
    const isUnsettled = deps.ledger.void(call.generationId) === "ok";
    if (isUnsettled && error instanceof GatewayError) recordFailed(execution, error);
    deps.providerKeys.release(call.generationId);
    throw error;
  }
}

/** Returns whether to try another candidate; after an overflow, only one with a larger window. */
function mayGoOn({ failed }: Execution): boolean {
  const failure = failed.at(-1)?.failure;
  return failure !== undefined && (failure.failover || failure.code === contextOverflow);
}

const makers: ReadonlySet<string> = new Set(["images", "speech"]);
/** Returns whether a provider may have made what was asked for, and bills it: it is not asked again. */
const mayBeMade = (
  { call }: Execution,
  { upstreamStatus, unsent, begun }: FailureWithUsage,
): boolean =>
  makers.has(call.surface) && unsent !== true && (begun === true || (upstreamStatus ?? 200) < 300);

const contextOverflow = "context_length_exceeded";

/** Returns whether the prompt has overflowed a window at least as large as the candidate's. */
const isTooShort = ({ overflownTokens }: Execution, candidate: Candidate): boolean =>
  overflownTokens !== undefined && windowOf(candidate) <= overflownTokens;

/** Returns a candidate's context window in tokens; 0 where the catalog does not know it. */
const windowOf = ({ route, model }: Candidate): number =>
  route.contextLength || model.contextLength;

function errorOfExecution(execution: Execution, charge?: FailureContext["charge"]): GatewayError {
  const {
    failed,
    heldBack,
    call: { body },
  } = execution;
  const headers = failedHeaders(execution);
  return errorOfAttempts(failed, { heldBack, body, headers, charge });
}

/**
 * Settles a request for which a model generated tokens but no usable answer, and returns its error:
 * the provider charges for those tokens.
 */
async function chargedFailure(
  execution: Execution,
  { candidate, metered }: NonNullable<Execution["consumed"]>,
): Promise<GatewayError> {
  const { call, failed } = execution;
  const { chargedNano } = await settle(execution.deps, {
    ...unserved(execution),
    candidate,
    metered: boundUsage(metered, windowTokensOf(candidate) * (call.requirements.texts ?? 1)),
    status: "cut",
    finishReason: "error",
    attempts: failed.map(({ record }) => record),
  });
  return errorOfExecution(execution, {
    generationId: call.generationId,
    chargedNano,
    usage: metered.usage,
  });
}

/** Returns the parts of a settlement that are the same for every request that was not served. */
const unserved = (execution: Execution) =>
  ({
    call: execution.call,
    losses: [],
    outputCap: undefined,
    routing: routingTrail(execution),
    requestedModel: execution.requestedModel,
    streamed: execution.call.requirements.stream,
    passedCap: false,
    upstreamId: null,
    timing: {
      startedMs: execution.call.startedMs,
      firstSendMs: execution.firstSendMs,
      firstContentMs: null,
      upstreamEndMs: execution.deps.clock.monotonicMs(),
    },
  }) satisfies Partial<Settlement>;

/** A candidate that can be called, with the adapter for it. */
interface Ready extends AdaptedRequest {
  candidate: Candidate;
}

/**
 * Prepares a candidate for its call; undefined where it is held back, cannot express the request,
 * or has no usable key left.
 */
function readyFor(execution: Execution, planned: Candidate): Ready | undefined {
  if (execution.failed.length > 0 && isHeldBack(execution, planned)) return undefined;
  const adapted = adapterFor(execution, planned);
  const candidate = adapted && takeKey(execution, planned);
  if (adapted === undefined || candidate === undefined) return undefined;
  const prepared = { candidate, adapter: adapted.adapter };
  const adapter = execution.deps.sealMemory.isUsed
    ? withoutKnownSeals(execution, prepared)
    : adapted.adapter;
  return { candidate, adapter, outputCap: adapted.outputCap };
}

function reportFailure({ deps, call, requestedModel, failed }: Execution, error: unknown): void {
  if (!(error instanceof GatewayError)) return;
  deps.observer.failed({
    error,
    traceId: call.traceId,
    workspaceId: call.caller.workspace.id,
    keyId: call.caller.key.id,
    surface: call.recordedAs,
    requestedModel,
    attempts: failed.map(({ record }) => record),
    durationMs: deps.clock.monotonicMs() - call.startedMs,
  });
}

/**
 * Records a request whose client left before any content, and tries no further candidate. The input
 * is charged where the provider had accepted the request, since the provider charges for it too.
 */
async function leave(execution: Execution, candidate: Candidate): Promise<never> {
  const { deps, failed } = execution;
  const inputTokens = execution.accepted ? execution.inputTokens : 0;
  await settle(deps, {
    ...unserved(execution),
    candidate,
    finishReason: null,
    status: "cancelled",
    metered: { usage: { inputTokens, outputTokens: 0 }, estimated: true, clamped: false },
    attempts: failed.map(({ record }) => record),
  });
  const headers = failedHeaders(execution);
  throw new GatewayError("client_closed_request", "The client closed the connection.", { headers });
}

async function attemptOne(
  execution: Execution,
  { candidate, adapter, outputCap }: Ready,
): Promise<Served | undefined> {
  const { deps, call, abortScope } = execution;
  const startedMs = deps.clock.monotonicMs();
  // Time spent on encoding for the first candidate is the gateway's own work before the first call.
  if (execution.failed.length === 0) execution.firstSendMs = startedMs;
  let whole: Whole;
  let status = 200;
  if (adapter.pieces !== undefined) {
    const joined = await sendInPieces(deps, {
      call,
      candidate,
      pieces: adapter.pieces,
      abortScope,
    });
    execution.accepted ||= joined.accepted;
    whole = joined;
    if (joined.ok) status = joined.status;
  } else {
    const sent = await sendAttempt(execution, { candidate, adapter });
    if (!sent.ok) return noteFailure(execution, { candidate, startedMs, failure: sent.failure });
    execution.accepted = true;
    const { response } = sent;
    if (call.requirements.stream || adapter.decodeBytes !== undefined)
      return await serveStream(execution, {
        candidate,
        adapter,
        outputCap,
        response,
        startedMs,
      });
    status = response.status;
    const reading = readWhole(response, adapter);
    whole = reading instanceof Promise ? await reading : reading;
  }
  if (!whole.ok) return noteFailure(execution, { candidate, startedMs, failure: whole.failure });
  const ended = endWhole(execution, {
    candidate,
    adapter,
    outputCap,
    answer: whole.answer,
    status,
    startedMs,
  });
  const settled = await settle(
    deps,
    withAnswer(ended, (posted) => servedWhole(execution, ended, posted)),
  );
  keepAnswer(deps, ended, settled);
  if (ended.answer.spentOnReasoning) {
    const { attempts, metered } = ended;
    const headers = failedHeaders(execution, attempts);
    throw spentOnReasoning(call, { metered, chargedNano: settled.chargedNano, headers });
  }
  return servedWhole(execution, ended, settled);
}

/** Attempts a candidate once more where that can mend its refusal; undefined for other failures. */
async function attemptAgain(execution: Execution, ready: Ready): Promise<Served | undefined> {
  const adapter = adaptedAgain(execution, ready);
  return adapter === undefined ? undefined : attemptOne(execution, { ...ready, adapter });
}

async function serveStream(
  execution: Execution,
  sent: Ready & { response: UpstreamResponse; startedMs: number },
): Promise<ServedStream | ServedBytes | undefined> {
  const {
    candidate,
    adapter: {
      decodeBytes,
      answerDeviations: { eventsOfWhole },
    },
    response,
    startedMs,
  } = sent;
  const isPlain = eventsOfWhole === undefined || exceptionFormOf(candidate.route) !== undefined;
  const opened =
    decodeBytes === undefined
      ? await openStream(
          execution,
          isPlain ? sent : { ...sent, response: asEventStream(response, eventsOfWhole) },
        )
      : await openBytes(execution, { ...sent, decoder: decodeBytes(response.headers) });
  return opened.ok
    ? opened.served
    : noteFailure(execution, { candidate, startedMs, failure: opened.failure });
}

function noteFailure(
  execution: Execution,
  {
    candidate,
    startedMs,
    failure: judged,
  }: { candidate: Candidate; startedMs: number; failure: FailureWithUsage },
): undefined {
  const { deps, call, abortScope } = execution;
  const cancelled = abortScope.clientGone;
  const known = withoutCredential(
    noteKeyFailure(execution, { candidate, failure: judged, cancelled }),
    candidate.route.provider,
  );
  const isMade = mayBeMade(execution, { ...known, begun: judged.begun ?? false });
  const failure = isMade ? { ...known, failover: false } : known;
  const record = attemptRecord(candidate, {
    status: failure.upstreamStatus,
    outcome: cancelled ? "cancelled" : "failed",
    reason: failure.reason,
    durationMs: deps.clock.monotonicMs() - startedMs,
  });
  execution.failed.push({ record, failure });
  if (judged.consumed !== undefined && !cancelled)
    execution.consumed = { candidate, metered: judged.consumed };
  if (failure.code === contextOverflow)
    execution.overflownTokens = Math.max(windowOf(candidate), execution.overflownTokens ?? 0);
  deps.observer.attemptEnded(record);
  if (failure.outage && !cancelled && call.line === undefined)
    deps.health.recordFailure(candidate.route.provider.id, candidate.model.id);
  return undefined;
}

/** A whole answer that has arrived, with what it is settled with. */
type EndedWhole = Settlement & { answer: WholeAnswer };

function endWhole(
  execution: Execution,
  came: Ready & { answer: WholeAnswer; status: number; startedMs: number },
): EndedWhole {
  const { deps, call, failed } = execution;
  const {
    candidate,
    answer,
    outputCap,
    adapter: { losses },
  } = came;
  const upstreamEndMs = deps.clock.monotonicMs();
  const record = attemptRecord(candidate, {
    status: came.status,
    outcome: "served",
    reason: null,
    durationMs: upstreamEndMs - came.startedMs,
  });
  deps.observer.attemptEnded(record);
  if (!noteKeyServed(deps, candidate) && call.leg === undefined) {
    const model = candidate.model.id;
    // Answers of the other surfaces vary little in length, so the time to a whole answer shows how
    // fast the provider is.
    const sample =
      call.surface === "chat" ? { model } : { model, firstTokenMs: upstreamEndMs - came.startedMs };
    deps.health.recordSuccess(candidate.route.provider.id, sample);
  }
  const windowTokens = windowTokensOf(candidate) * (call.requirements.texts ?? 1);
  return {
    call,
    candidate,
    losses: joinLosses(losses, answer.losses),
    outputCap,
    answer,
    routing: routingTrail(execution),
    metered: boundOrEstimated(answer.metered, {
      inputTokens: execution.inputTokens,
      windowTokens,
      outputCharacters: answer.outputCharacters,
    }),
    attempts: failed.length === 0 ? [record] : [...failed.map((attempt) => attempt.record), record],
    timing: {
      startedMs: call.startedMs,
      firstSendMs: execution.firstSendMs,
      firstContentMs: null,
      upstreamEndMs,
    },
    requestedModel: execution.requestedModel,
    finishReason: answer.finishReason,
    status: execution.abortScope.heardClientLeave ? "cancelled" : "completed",
    streamed: false,
    passedCap: false,
    upstreamId: answer.upstreamId,
  };
}

function servedWhole(execution: Execution, ended: EndedWhole, settled: Settled): ServedWhole {
  const { candidate, losses, outputCap, attempts, answer, metered, timing } = ended;
  return {
    kind: "whole",
    candidate,
    losses,
    outputCap,
    attempts,
    answer,
    settled,
    metered,
    timing,
    balanceAtAdmissionNano: execution.balanceAtAdmissionNano,
    fallback: fallbackOf(execution, attempts),
    sessionMoved: noteSession(execution, candidate),
  };
}

/**
 * The outcome of a request that was sent in pieces. `accepted` says whether the provider answered
 * any piece with success.
 */
type Joined = { accepted: boolean } & (
  | { ok: true; answer: WholeAnswer; status: number }
  | { ok: false; failure: AttemptFailure }
);

/**
 * Sends a request to a candidate in pieces, some of them in parallel. The first failure fails the
 * whole attempt and aborts the remaining pieces.
 */
async function sendInPieces(
  deps: InferenceDependencies,
  {
    pieces,
    abortScope,
    ...asked
  }: { call: InferenceCall; candidate: Candidate; pieces: RequestPieces; abortScope: AbortScope },
): Promise<Joined> {
  const bundle = abortScope.bundle();
  const waiting = pieces.each.values();
  let failure: AttemptFailure | undefined;
  let accepted = false;
  let served = false;
  let status = 200;
  const sendPiece = async (adapter: Adapter): Promise<Whole> => {
    const sent = await sendTo(deps, { ...asked, adapter, abortScope: bundle });
    if (!sent.ok) return sent;
    accepted = true;
    status = sent.response.status;
    return readWhole(sent.response, adapter);
  };
  const sendRemaining = async (): Promise<void> => {
    for (const adapter of waiting) {
      const whole = await sendPiece(adapter);
      if (failure !== undefined && pieces.keepsSome !== true) return;
      served ||= whole.ok;
      if (whole.ok) continue;
      failure = whole.failure;
      if (pieces.keepsSome !== true) bundle.abort();
      return;
    }
  };
  await Promise.all(
    Array.from({ length: Math.min(pieces.parallel, pieces.each.length) }, sendRemaining),
  );
  return failure === undefined || (served && pieces.keepsSome === true)
    ? { ok: true, accepted, answer: pieces.join(), status }
    : { ok: false, accepted, failure };
}
