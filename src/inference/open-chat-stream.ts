import type { AttemptRecord } from "../insights/generation-record.ts";
import { asStreamError } from "./stream-error.ts";
import { attemptRecord } from "./attempt.ts";
import { windowTokensOf } from "./bound-usage.ts";
import { ChatStream } from "./chat-stream.ts";
import { fallbackOf, type Execution, type ServedStream } from "./execution.ts";
import { metadataText } from "./service-metadata.ts";
import type { Candidate } from "./routing/candidate.ts";
import { settle } from "./settle.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";
import type { UpstreamResponse } from "./upstream/upstream-client.ts";

/** Marks of a stream under way, in milliseconds of the monotonic clock. */
interface StreamMarks {
  startedMs: number;
  firstContentMs: number | null;
}

/** A stream whose first content has come, or the failure that came in its place. */
export async function openChatStream(
  execution: Execution,
  sent: { candidate: Candidate; response: UpstreamResponse; startedMs: number },
): Promise<{ ok: true; served: ServedStream } | { ok: false; failure: AttemptFailure }> {
  const { deps, call, lifeline } = execution;
  const { candidate, response } = sent;
  const marks: StreamMarks = { startedMs: sent.startedMs, firstContentMs: null };
  const attempts: AttemptRecord[] = execution.failed.map(({ record }) => record);
  const served: AttemptRecord = attemptRecord(candidate, {
    status: response.status, outcome: "served", reason: null, durationMs: 0,
  });
  attempts.push(served);
  const fallback = fallbackOf(execution, candidate, attempts);
  const timing = () => ({
    startedMs: call.startedMs, firstSendMs: execution.firstSendMs, firstContentMs: marks.firstContentMs,
    upstreamEndMs: deps.clock.monotonicMs(),
  });
  const stream = new ChatStream({
    response,
    shown: { id: `chatcmpl-${call.traceId}`, model: candidate.model.id },
    inputTokens: execution.inputTokens,
    windowTokens: windowTokensOf(candidate),
    drainOnCancel: deps.disconnect === "drain",
    keepAlive: deps.keepAlive,
    fallback,
    onFirstContent: () => {
      marks.firstContentMs = deps.clock.monotonicMs();
    },
    settle: (metered, end) => {
      const now = timing();
      served.durationMs = Math.round((now.upstreamEndMs - sent.startedMs) * 100) / 100;
      if (end.status === "cut") served.outcome = "failed";
      if (end.status === "cancelled") served.outcome = "cancelled";
      deps.observer.attemptEnded(served);
      noteHealth(execution, { candidate, marks, status: end.status, outputTokens: metered.usage.outputTokens ?? 0, endMs: now.upstreamEndMs });
      return settle(deps, {
        call, candidate, metered, attempts, timing: now, requestedModel: execution.requestedModel, streamed: true, ...end,
      });
    },
    metadataText: (settled) => metadataText({
      call, candidate, settled, attempts, timing: { ...timing(), settledMs: settled.settledMs },
    }),
    errorFrame: (failure) => asStreamError(failure, { attempt: served, provider: candidate.route.provider, traceId: call.traceId }),
    onClosed: () => deps.observer.streamClosed(),
  });
  const failure = await stream.prime();
  if (failure !== undefined) return { ok: false, failure };
  lifeline.release();
  if (lifeline.clientGone) stream.cancel();
  deps.observer.streamOpened();
  served.durationMs = Math.round((deps.clock.monotonicMs() - sent.startedMs) * 100) / 100;
  return {
    ok: true,
    served: {
      kind: "stream", stream, candidate, attempts, fallback, timing: timing(),
      balanceAtAdmissionNano: execution.balanceAtAdmissionNano,
    },
  };
}

function noteHealth(
  { deps }: Execution,
  ended: { candidate: Candidate; marks: StreamMarks; status: string; outputTokens: number; endMs: number },
): void {
  const providerId = ended.candidate.route.provider.id;
  if (ended.status === "cut") {
    deps.health.recordFailure(providerId);
    return;
  }
  const firstContentMs = ended.marks.firstContentMs ?? ended.endMs;
  const seconds = Math.max(0.001, (ended.endMs - firstContentMs) / 1000);
  deps.health.recordSuccess(providerId, {
    firstTokenMs: firstContentMs - ended.marks.startedMs,
    tokensPerSecond: ended.outputTokens / seconds,
  });
}
