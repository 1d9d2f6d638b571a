import { GatewayError } from "../platform/lib/errors.ts";
import { attemptRecord, readWhole, sendTo } from "./attempt.ts";
import { askInPieces } from "./ask-in-pieces.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import { fallbackOf, noteSession, type Execution, type ServedStream, type ServedWhole } from "./execution.ts";
import { errorOfAttempts } from "./failure-error.ts";
import type { InferenceCall } from "./inference-call.ts";
import { asEventStream } from "./interpret/as-event-stream.ts";
import { windowTokensOf } from "./interpret/bound-usage.ts";
import type { Interpretation, WholeAnswer } from "./interpret/interpretation.ts";
import { isFramed } from "./interpret/route-dialect.ts";
import { interpretFor } from "./interpret-for.ts";
import { noteKeyFailure, noteKeyServed, takeKey } from "./key-in-hand.ts";
import { meteredOf } from "./metered-of.ts";
import { openStream } from "./open-stream.ts";
import { prepare } from "./prepare-execution.ts";
import type { Candidate } from "./routing/candidate.ts";
import { routingTrail } from "./routing-trail.ts";
import { settle } from "./settle.ts";
import { withoutCredential } from "./without-credential.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";

/**
 * The life of an inference request: plan, hold, attempt candidate after candidate until one answers, settle.
 * Throws `GatewayError`; whatever happens, the hold is settled or freed before this ends.
 */
export async function execute(deps: InferenceDependencies, call: InferenceCall): Promise<ServedWhole | ServedStream> {
  const execution = prepare(deps, call);
  let handedOver = false;
  try {
    const served = await attemptAll(execution);
    handedOver = true;
    return served;
  } catch (error) {
    reportFailure(execution, error);
    throw error;
  } finally {
    // A whole answer has settled its hold by now and a stream settles it later; what is left was never charged.
    if (!handedOver) {
      deps.ledger.void(call.generationId);
      deps.providerKeys.release(call.generationId);
    }
  }
}

function reportFailure({ deps, call, requestedModel, failed }: Execution, error: unknown): void {
  if (!(error instanceof GatewayError)) return;
  deps.observer.failed({
    error, traceId: call.traceId, workspaceId: call.caller.workspace.id, keyId: call.caller.key.id,
    surface: call.recordedAs, requestedModel, attempts: failed.map(({ record }) => record),
    durationMs: deps.clock.monotonicMs() - call.startedMs,
  });
}

async function attemptAll(execution: Execution): Promise<ServedWhole | ServedStream> {
  const { deps, lifeline } = execution;
  execution.firstSendMs = deps.clock.monotonicMs();
  for (const planned of execution.candidates) {
    if (execution.failed.length > 0 && isHeldBack(execution, planned)) continue;
    const interpretation = interpretFor(execution, planned);
    const candidate = interpretation && takeKey(execution, planned);
    if (interpretation === undefined || candidate === undefined) continue;
    const served = await attemptOne(execution, { candidate, interpretation });
    if (served !== undefined) return served;
    const failure = execution.failed.at(-1)?.failure;
    if (lifeline.clientGone) await leave(execution, candidate);
    if (failure === undefined || !failure.failover) break;
  }
  const [unsayable] = execution.unsayable;
  throw execution.failed.length === 0 && unsayable !== undefined ? unsayable : errorOfAttempts(execution.failed, execution.heldBack);
}

/** Whether a provider that fails as it is gets no fallbacks at present, so that an outage is not multiplied. */
function isHeldBack(execution: Execution, { route, model, credential }: Candidate): boolean {
  const backend = route.provider.id;
  // With a caller's own key it is the caller's own account that is asked.
  if (credential !== undefined || execution.deps.health.mayRetry(backend)) return false;
  execution.heldBack.push({ provider: backend, model: model.id, rule: "retry_budget" });
  return true;
}

/**
 * The client left before any content: the request is recorded and nothing is tried any more. Input is
 * charged where the provider had accepted the request, since the provider charges for it too.
 */
async function leave(execution: Execution, candidate: Candidate): Promise<never> {
  const { deps, call, failed } = execution;
  const inputTokens = execution.accepted ? execution.inputTokens : 0;
  await settle(deps, {
    call, candidate, losses: [], routing: routingTrail(execution), requestedModel: execution.requestedModel,
    finishReason: null, status: "cancelled",
    metered: { usage: { inputTokens, outputTokens: 0 }, estimated: true, clamped: false },
    streamed: call.asks.stream, upstreamId: null, attempts: failed.map(({ record }) => record),
    timing: {
      startedMs: call.startedMs, firstSendMs: execution.firstSendMs, firstContentMs: null, upstreamEndMs: deps.clock.monotonicMs(),
    },
  });
  throw new GatewayError("client_closed_request", "The client closed the connection.");
}

async function attemptOne(
  execution: Execution,
  { candidate, interpretation }: { candidate: Candidate; interpretation: Interpretation },
): Promise<ServedWhole | ServedStream | undefined> {
  const { deps, call, lifeline } = execution;
  const startedMs = deps.clock.monotonicMs();
  if (interpretation.pieces !== undefined) {
    const { accepted, ...joined } = await askInPieces(deps, { call, candidate, pieces: interpretation.pieces, lifeline });
    execution.accepted ||= accepted;
    if (!joined.ok) return noteFailure(execution, { candidate, startedMs, failure: joined.failure });
    return serveWhole(execution, { candidate, interpretation, answer: joined.answer, status: joined.status, startedMs });
  }
  const sent = await sendTo(deps, { call, candidate, interpretation, lifeline });
  if (!sent.ok) return noteFailure(execution, { candidate, startedMs, failure: sent.failure });
  execution.accepted = true;
  if (call.asks.stream) {
    const { eventsOfWhole } = interpretation.habits;
    const isPlain = eventsOfWhole === undefined || isFramed(candidate.route);
    const response = isPlain ? sent.response : asEventStream(sent.response, eventsOfWhole);
    const opened = await openStream(execution, { candidate, interpretation, response, startedMs });
    return opened.ok ? opened.served : noteFailure(execution, { candidate, startedMs, failure: opened.failure });
  }
  const whole = await readWhole(sent.response, interpretation);
  if (!whole.ok) return noteFailure(execution, { candidate, startedMs, failure: whole.failure });
  return serveWhole(execution, { candidate, interpretation, answer: whole.answer, status: sent.response.status, startedMs });
}

function noteFailure(
  execution: Execution,
  { candidate, startedMs, failure: judged }: { candidate: Candidate; startedMs: number; failure: AttemptFailure },
): undefined {
  const { deps, lifeline } = execution;
  const cancelled = lifeline.clientGone;
  const failure = withoutCredential(noteKeyFailure(execution, { candidate, failure: judged, cancelled }), candidate.route.provider);
  const record = attemptRecord(candidate, {
    status: failure.upstreamStatus, outcome: cancelled ? "cancelled" : "failed", reason: failure.reason,
    durationMs: deps.clock.monotonicMs() - startedMs,
  });
  execution.failed.push({ record, failure });
  deps.observer.attemptEnded(record);
  if (failure.outage && !cancelled) deps.health.recordFailure(candidate.route.provider.id, candidate.model.id);
  return undefined;
}

async function serveWhole(
  execution: Execution,
  served: { candidate: Candidate; interpretation: Interpretation; answer: WholeAnswer; status: number; startedMs: number },
): Promise<ServedWhole> {
  const { deps, call } = execution;
  const { candidate, answer, interpretation: { losses } } = served;
  const upstreamEndMs = deps.clock.monotonicMs();
  const record = attemptRecord(candidate, {
    status: served.status, outcome: "served", reason: null, durationMs: upstreamEndMs - served.startedMs,
  });
  deps.observer.attemptEnded(record);
  if (!noteKeyServed(deps, candidate)) deps.health.recordSuccess(candidate.route.provider.id, {
    model: candidate.model.id,
    // Where nothing is generated, answers are of a size, and the time to one tells how fast a provider is.
    ...(call.surface !== "chat" && { firstTokenMs: upstreamEndMs - served.startedMs }),
  });
  const attempts = [...execution.failed.map(({ record: failed }) => failed), record];
  const windowTokens = windowTokensOf(candidate) * (call.asks.texts ?? 1);
  const metered = meteredOf(answer, { inputTokens: execution.inputTokens, windowTokens });
  const timing = { startedMs: call.startedMs, firstSendMs: execution.firstSendMs, firstContentMs: null, upstreamEndMs };
  const settled = await settle(deps, {
    call, candidate, losses, routing: routingTrail(execution), metered, attempts, timing,
    requestedModel: execution.requestedModel, finishReason: answer.finishReason,
    status: execution.lifeline.heardClientLeave ? "cancelled" : "completed", streamed: false, upstreamId: answer.upstreamId,
  });
  if (answer.spentOnReasoning) throw spentOnReasoning(call);
  return {
    kind: "whole", candidate, losses, attempts, answer, settled, metered, timing,
    balanceAtAdmissionNano: execution.balanceAtAdmissionNano,
    fallback: fallbackOf(execution, candidate, attempts),
    sessionMoved: noteSession(execution, candidate),
  };
}

function spentOnReasoning({ recordedAs }: InferenceCall): GatewayError {
  const param = recordedAs === "responses" ? "max_output_tokens" : "max_tokens";
  const message = "The model spent the whole output budget on reasoning and produced no content. "
    + `Raise ${param} to at least 256, or set stream: true.`;
  return new GatewayError("max_tokens_too_small", message, { param });
}
