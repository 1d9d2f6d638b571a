import { GatewayError } from "../platform/lib/errors.ts";
import { asEventStream } from "./as-event-stream.ts";
import { attemptRecord, readWhole, sendTo } from "./attempt.ts";
import { windowTokensOf } from "./bound-usage.ts";
import type { ChatCall } from "./chat-call.ts";
import { wantsStream } from "./chat-call.ts";
import { meteredOf, type WholeAnswer } from "./chat-whole.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import { fallbackOf, type Execution, type ServedStream, type ServedWhole } from "./execution.ts";
import { errorOfAttempts } from "./failure-error.ts";
import { openChatStream } from "./open-chat-stream.ts";
import { prepare } from "./prepare-execution.ts";
import type { Candidate } from "./routing/candidate.ts";
import { settle } from "./settle.ts";
import { withoutCredential } from "./without-credential.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";

/**
 * The life of a chat request: plan, hold, attempt candidate after candidate until one answers, settle.
 * Throws `GatewayError`; whatever happens, the hold is settled or freed before this ends.
 */
export async function execute(deps: InferenceDependencies, call: ChatCall): Promise<ServedWhole | ServedStream> {
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
    if (!handedOver) deps.ledger.void(call.generationId);
  }
}

function reportFailure({ deps, call, requestedModel, failed }: Execution, error: unknown): void {
  if (!(error instanceof GatewayError)) return;
  deps.observer.failed({
    error, traceId: call.traceId, requestedModel, attempts: failed.map(({ record }) => record),
    durationMs: deps.clock.monotonicMs() - call.startedMs,
  });
}

async function attemptAll(execution: Execution): Promise<ServedWhole | ServedStream> {
  const { deps, lifeline } = execution;
  execution.firstSendMs = deps.clock.monotonicMs();
  for (const candidate of execution.candidates) {
    const served = await attemptOne(execution, candidate);
    if (served !== undefined) return served;
    const failure = execution.failed.at(-1)?.failure;
    if (lifeline.clientGone) await leave(execution, candidate);
    if (failure === undefined || !failure.failover) break;
  }
  throw errorOfAttempts(execution.failed);
}

/**
 * The client left before any content: the request is recorded and nothing is tried any more. Input is
 * charged where the provider had accepted the request, since the provider charges for it too.
 */
async function leave(execution: Execution, candidate: Candidate): Promise<never> {
  const { deps, call, failed } = execution;
  const inputTokens = execution.accepted ? execution.inputTokens : 0;
  await settle(deps, {
    call, candidate, requestedModel: execution.requestedModel, finishReason: null, status: "cancelled",
    metered: { usage: { inputTokens, outputTokens: 0 }, estimated: true, clamped: false },
    streamed: wantsStream(call), upstreamId: null, attempts: failed.map(({ record }) => record),
    timing: { startedMs: call.startedMs, firstSendMs: execution.firstSendMs, firstContentMs: null, upstreamEndMs: deps.clock.monotonicMs() },
  });
  throw new GatewayError("client_closed_request", "The client closed the connection.");
}

async function attemptOne(execution: Execution, candidate: Candidate): Promise<ServedWhole | ServedStream | undefined> {
  const { deps, call, lifeline } = execution;
  const startedMs = deps.clock.monotonicMs();
  const sent = await sendTo(deps, { call, candidate, lifeline });
  if (!sent.ok) return noteFailure(execution, { candidate, startedMs, failure: sent.failure });
  execution.accepted = true;
  if (wantsStream(call)) {
    const opened = await openChatStream(execution, { candidate, response: asEventStream(sent.response), startedMs });
    return opened.ok ? opened.served : noteFailure(execution, { candidate, startedMs, failure: opened.failure });
  }
  const whole = await readWhole(sent.response);
  if (!whole.ok) return noteFailure(execution, { candidate, startedMs, failure: whole.failure });
  return serveWhole(execution, { candidate, answer: whole.answer, status: sent.response.status, startedMs });
}

function noteFailure(
  execution: Execution,
  { candidate, startedMs, failure: judged }: { candidate: Candidate; startedMs: number; failure: AttemptFailure },
): undefined {
  const { deps, lifeline } = execution;
  const failure = withoutCredential(judged, candidate.route.provider);
  const cancelled = lifeline.clientGone;
  const record = attemptRecord(candidate, {
    status: failure.upstreamStatus, outcome: cancelled ? "cancelled" : "failed", reason: failure.reason,
    durationMs: deps.clock.monotonicMs() - startedMs,
  });
  execution.failed.push({ record, failure });
  deps.observer.attemptEnded(record);
  if (failure.outage && !cancelled) deps.health.recordFailure(candidate.route.provider.id);
  return undefined;
}

async function serveWhole(
  execution: Execution,
  served: { candidate: Candidate; answer: WholeAnswer; status: number; startedMs: number },
): Promise<ServedWhole> {
  const { deps, call } = execution;
  const { candidate, answer } = served;
  const upstreamEndMs = deps.clock.monotonicMs();
  const record = attemptRecord(candidate, {
    status: served.status, outcome: "served", reason: null, durationMs: upstreamEndMs - served.startedMs,
  });
  deps.observer.attemptEnded(record);
  deps.health.recordSuccess(candidate.route.provider.id);
  const attempts = [...execution.failed.map(({ record: failed }) => failed), record];
  const metered = meteredOf(answer, { inputTokens: execution.inputTokens, windowTokens: windowTokensOf(candidate) });
  const timing = { startedMs: call.startedMs, firstSendMs: execution.firstSendMs, firstContentMs: null, upstreamEndMs };
  const settled = await settle(deps, {
    call, candidate, metered, attempts, timing, requestedModel: execution.requestedModel, finishReason: answer.finishReason,
    status: execution.lifeline.heardClientLeave ? "cancelled" : "completed", streamed: false, upstreamId: answer.upstreamId,
  });
  if (answer.spentOnReasoning) throw spentOnReasoning();
  return {
    kind: "whole", candidate, attempts, answer, settled, metered, timing,
    balanceAtAdmissionNano: execution.balanceAtAdmissionNano,
    fallback: fallbackOf(execution, candidate, attempts),
  };
}

const spentOnReasoning = (): GatewayError => new GatewayError(
  "max_tokens_too_small",
  "The model spent the whole output budget on reasoning and produced no content. Raise max_tokens to at least 256, or set stream: true.",
  { param: "max_tokens" },
);
