import type { AttemptRecord } from "../../insights/generation-record.ts";
import { attemptRecord, type FailureWithUsage } from "./attempt.ts";
import {
  fallbackOf,
  joinLosses,
  noteSession,
  type Execution,
  type ServedStream,
  type Told,
} from "./execution.ts";
import { exceptionFormOf } from "./adapt.ts";
import { noteKeyServed } from "./provider-credentials.ts";
import { RelayedStream } from "./relayed-stream.ts";
import { metadataText } from "./answer-metadata.ts";
import type { UpstreamRoute } from "../catalog/model.ts";
import type { Candidate } from "../routing/candidate.ts";
import { routingTrail, settle } from "./settle.ts";
import { StreamAllowance } from "./take-hold.ts";
import { asStreamError } from "./failure-error.ts";
import type { EventDecoder } from "../upstream/sse-decoder.ts";
import { openEventStream } from "../upstream/event-stream.ts";
import type { UpstreamResponse } from "../upstream/upstream-client.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";
import { estimateUsage, type MeteredUsage } from "../canonical/usage.ts";
import { boundUsage, type WholeAnswer } from "../dialects/passthrough.ts";
import type { AdaptedRoute } from "./inference-call.ts";

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
  const { candidate, adapter, outputCap, response } = sent;
  const { losses } = adapter;
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
    decoder: await binaryDecoder(candidate.route),
    relay: (services) =>
      adapter.createRelay({
        ...services,
        shown: { id: call.shownId, model: candidate.model.id },
        inputTokens: execution.inputTokens,
        windowTokens: windowTokensOf(candidate),
        fallback,
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
      asStreamError(failure, { deps, attempt: served, provider: candidate.route.provider }),
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

/** The decoder of Amazon's binary messages; undefined for server-sent events. */
async function binaryDecoder(route: UpstreamRoute): Promise<EventDecoder | undefined> {
  const form = exceptionFormOf(route);
  return form === undefined ? undefined : openEventStream(form);
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
  // Failures of a caller's own key say nothing about the platform's credential.
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

/** Bytes that a whole answer may have which comes in place of a stream. */
const wholeAnswerBytesMax = 64 * 1024 * 1024;

/** A whole body of an upstream's dialect as the event stream that says the same. */
type EventsOfWhole = (text: string) => string;

/**
 * The answer to a request for a stream, as one. Some servers answer with a whole completion or with
 * an error as JSON all the same: the gateway turns that into events (litellm#25492). What is
 * labelled or begins as a stream goes through as it comes.
 */
export function asEventStream(
  response: UpstreamResponse,
  eventsOf: EventsOfWhole,
): UpstreamResponse {
  if (/^text\/event-stream/i.test(response.headers["content-type"] ?? "")) return response;
  const next = eventBytes(response, eventsOf);
  return {
    status: response.status,
    headers: response.headers,
    next,
    readText: (limitBytes) => response.readText(limitBytes),
    markContent: () => response.markContent(),
    expectEnd: () => response.expectEnd(),
    abort: () => response.abort(),
  };
}

function eventBytes(
  response: UpstreamResponse,
  eventsOf: EventsOfWhole,
): () => Promise<Uint8Array | undefined> {
  let started = false;
  return async () => {
    if (started) return response.next();
    started = true;
    const head: Uint8Array[] = [];
    for (let chunk = await response.next(); chunk !== undefined; chunk = await response.next()) {
      head.push(chunk);
      const text = Buffer.concat(head).toString("utf8").trimStart();
      if (text === "" || text === "\uFEFF") continue;
      return /^[{[]/.test(text)
        ? Buffer.from(eventsOf(await readRest(response, head)))
        : Buffer.concat(head);
    }
    return undefined;
  };
}

async function readRest(response: UpstreamResponse, head: Uint8Array[]): Promise<string> {
  let size = 0;
  for (let chunk = await response.next(); chunk !== undefined; chunk = await response.next()) {
    size += chunk.byteLength;
    if (size > wholeAnswerBytesMax) {
      throw new UpstreamFailure(
        "response_too_large",
        `the answer is larger than ${wholeAnswerBytesMax} bytes`,
        { sent: true },
      );
    }
    head.push(chunk);
  }
  return Buffer.concat(head).toString("utf8");
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
  answer: WholeAnswer,
  { inputTokens, windowTokens }: { inputTokens: number; windowTokens: number },
): MeteredUsage =>
  answer.metered === undefined
    ? estimateUsage({ inputCharacters: inputTokens * 4, outputCharacters: answer.outputCharacters })
    : boundUsage(answer.metered, windowTokens);
