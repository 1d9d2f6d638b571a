import type { AttemptRecord } from "../insights/generation-record.ts";
import { attemptRecord } from "./attempt.ts";
import {
  fallbackOf,
  joinLosses,
  noteSession,
  type Execution,
  type ServedStream,
} from "./execution.ts";
import type { FailureWithUsage } from "./interpret/stream-fault.ts";
import { isFramed } from "./interpret/route-dialect.ts";
import { windowTokensOf } from "./interpret/bound-usage.ts";
import type { Told } from "./interpret-for.ts";
import { noteKeyServed } from "./key-in-hand.ts";
import { RelayedStream } from "./relayed-stream.ts";
import { metadataText } from "./service-metadata.ts";
import type { Candidate } from "./routing/candidate.ts";
import { routingTrail } from "./routing-trail.ts";
import { settle } from "./settle.ts";
import { StreamAllowance } from "./stream-allowance.ts";
import { asStreamError } from "./stream-error.ts";
import { EventStreamFrames } from "./upstream/event-stream-frames.ts";
import type { UpstreamResponse } from "./upstream/upstream-client.ts";

/** Marks of a stream under way, in milliseconds of the monotonic clock. */
interface StreamMarks {
  startedMs: number;
  firstContentMs: number | null;
}

/** A stream whose first content has come, or the failure that came in its place. */
export async function openStream(
  execution: Execution,
  sent: Told & { candidate: Candidate; response: UpstreamResponse; startedMs: number },
): Promise<{ ok: true; served: ServedStream } | { ok: false; failure: FailureWithUsage }> {
  const { deps, call, lifeline } = execution;
  const { candidate, interpretation, outputCap, response } = sent;
  const { losses } = interpretation;
  const marks: StreamMarks = { startedMs: sent.startedMs, firstContentMs: null };
  const attempts: AttemptRecord[] = execution.failed.map(({ record }) => record);
  const served: AttemptRecord = attemptRecord(candidate, {
    status: response.status,
    outcome: "served",
    reason: null,
    durationMs: 0,
  });
  attempts.push(served);
  const fallback = fallbackOf(execution, candidate, attempts);
  const timing = () => ({
    startedMs: call.startedMs,
    firstSendMs: execution.firstSendMs,
    firstContentMs: marks.firstContentMs,
    upstreamEndMs: deps.clock.monotonicMs(),
  });
  const stream = new RelayedStream({
    response,
    decoder: isFramed(candidate.route) ? new EventStreamFrames() : undefined,
    relay: (services) =>
      interpretation.createRelay({
        ...services,
        shown: { id: call.shownId, model: candidate.model.id },
        inputTokens: execution.inputTokens,
        windowTokens: windowTokensOf(candidate),
        fallback,
        status: response.status,
      }),
    drainOnCancel: deps.disconnect === "drain",
    keepAlive: deps.keepAlive,
    allowance: StreamAllowance.of(execution, sent),
    onFirstContent: () => {
      marks.firstContentMs = deps.clock.monotonicMs();
    },
    settle: (metered, { answerLosses, ...end }) => {
      const now = timing();
      served.durationMs = Math.round((now.upstreamEndMs - sent.startedMs) * 100) / 100;
      if (end.status === "cut") served.outcome = "failed";
      if (end.status === "cancelled") served.outcome = "cancelled";
      deps.observer.attemptEnded(served);
      const { outputTokens = 0 } = metered.usage;
      noteHealth(execution, {
        candidate,
        marks,
        status: end.status,
        outputTokens,
        endMs: now.upstreamEndMs,
      });
      return settle(deps, {
        call,
        candidate,
        losses: joinLosses(losses, answerLosses),
        outputCap,
        routing: routingTrail(execution),
        metered,
        attempts,
        timing: now,
        requestedModel: execution.requestedModel,
        streamed: true,
        ...end,
      });
    },
    metadataText: (settled, answerLosses) =>
      metadataText({
        call,
        candidate,
        settled,
        attempts,
        answerLosses,
        timing: { ...timing(), settledMs: settled.settledMs },
      }),
    asError: (failure) =>
      asStreamError(failure, { attempt: served, provider: candidate.route.provider }),
    onClosed: () => deps.observer.streamClosed(),
  });
  const failure = await stream.prime();
  if (failure !== undefined) return { ok: false, failure };
  noteKeyServed(deps, candidate);
  lifeline.release();
  if (lifeline.clientGone) stream.cancel();
  deps.observer.streamOpened();
  served.durationMs = Math.round((deps.clock.monotonicMs() - sent.startedMs) * 100) / 100;
  return {
    ok: true,
    served: {
      kind: "stream",
      stream,
      candidate,
      losses,
      outputCap,
      attempts,
      fallback,
      timing: timing(),
      sessionMoved: noteSession(execution, candidate),
      balanceAtAdmissionNano: execution.balanceAtAdmissionNano,
    },
  };
}

function noteHealth(
  { deps }: Execution,
  ended: {
    candidate: Candidate;
    marks: StreamMarks;
    status: string;
    outputTokens: number;
    endMs: number;
  },
): void {
  // Whoever's key it is, its troubles are not the platform's.
  if (ended.candidate.credential !== undefined) return;
  const providerId = ended.candidate.route.provider.id;
  if (ended.status === "cut") {
    deps.health.recordFailure(providerId, ended.candidate.model.id);
    return;
  }
  const firstContentMs = ended.marks.firstContentMs ?? ended.endMs;
  const seconds = Math.max(0.001, (ended.endMs - firstContentMs) / 1000);
  deps.health.recordSuccess(providerId, {
    model: ended.candidate.model.id,
    firstTokenMs: firstContentMs - ended.marks.startedMs,
    tokensPerSecond: ended.outputTokens / seconds,
  });
}
