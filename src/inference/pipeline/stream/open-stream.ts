import { failureOf, type FailureWithUsage, attemptRecord } from "../attempt.ts";
import type { Execution } from "../execution.ts";
import { fallbackOf, joinLosses, metadataText } from "../answer-metadata.ts";
import { noteSession } from "../begin-execution.ts";
import type { AdaptedRequest } from "../adapted-request.ts";
import { windowTokensOf, type Candidate } from "../../routing/candidate.ts";
import { exceptionFormOf } from "../adapt.ts";
import { noteKeyServed } from "../credentials/provider-credentials.ts";
import type { BytesDecoder, AnswerKeeper, Adapter } from "../inference-call.ts";
import { RelayedBytes } from "./relayed-bytes.ts";
import type { UpstreamRoute } from "../../catalog/model.ts";
import type { EventDecoder } from "../../upstream/sse-decoder.ts";
import { openEventStream } from "../../upstream/event-stream-decoder.ts";
import type { UpstreamResponse } from "../../upstream/upstream-client.ts";
import { emptyAnswer, UpstreamFailure } from "../../upstream/upstream-failure.ts";
import type { AttemptRecord } from "../../../insights/generation-record.ts";
import { freeKept, keepContent, keptSinceMs } from "../settlement/keep-content.ts";
import { KeptFrames } from "./kept-frames.ts";
import {
  type EndedStream,
  RelayedStream,
  type RelayedStreamOptions,
  type RelayServices,
} from "./relayed-stream.ts";
import { routingTrail } from "../plan/plan-call.ts";
import { settle } from "../settlement/settle.ts";
import type { Settlement } from "../settlement/settlement.ts";
import type { ServedFacts, Settled } from "../served-answer.ts";
import { OutputWatch } from "../hold/output-watch.ts";
import { asStreamError } from "../failure-error.ts";
import type { MeteredUsage, ModelFallback } from "../../canonical/response.ts";
import type { Loss } from "../../canonical/request.ts";
import type { StreamRelay } from "../../dialects/shared/stream/stream-relay.ts";

/** Opens a stream up to its first content, or returns the failure that came in its place. */
export async function openStream(
  execution: Execution,
  sent: SentStream,
): Promise<{ ok: true; served: ServedStream } | { ok: false; failure: FailureWithUsage }> {
  const { deps, abortScope } = execution;
  const decoder = await binaryDecoder(sent.candidate.route);
  const opened = new OpenedStream(execution, sent);
  const stream = opened.relayed(decoder, sent.adapter);
  const failure = await stream.prime();
  if (failure !== undefined) return { ok: false, failure };
  opened.releaseConversation();
  noteKeyServed(deps, sent.candidate);
  abortScope.release();
  if (abortScope.clientGone) stream.cancel();
  deps.observer.streamOpened();
  return { ok: true, served: opened.served(stream) };
}

/**
 * Opens an answer of bytes up to its first ones, or returns the failure that came in their place, so
 * that the next candidate can be tried.
 */
export async function openBytes(
  execution: Execution,
  { decoder, ...sent }: SentStream & { decoder: BytesDecoder },
): Promise<{ ok: true; served: ServedBytes } | { ok: false; failure: FailureWithUsage }> {
  const { deps, abortScope } = execution;
  const { response } = sent;
  const opened = new OpenedStream(execution, sent, decoder.type);
  const { keeper } = opened;
  const bytes = new RelayedBytes({
    response,
    decoder,
    settle: async (metered, status) => {
      const ended = { status, finishReason: null, upstreamId: null, answerLosses: [] };
      const settled = await opened.settle(metered, ended);
      opened.keep();
      return settled;
    },
    ...(keeper !== undefined && { onBytes: keeper.add.bind(keeper) }),
    onFirstContent: () => opened.noteFirstContent(),
    onClosed: () => deps.observer.streamClosed(),
    onBroken: (error) => deps.observer.settlementFailed(error, execution.call.generationId),
  });
  try {
    await bytes.prime();
  } catch (error) {
    response.abort();
    return { ok: false, failure: failureOf(error, response.status) };
  }
  if (!bytes.hasContent) return { ok: false, failure: emptyAnswer(response.status) };
  noteKeyServed(deps, sent.candidate);
  abortScope.release();
  deps.observer.streamOpened();
  return { ok: true, served: { ...opened.facts(), kind: "bytes", bytes } };
}

/** Returns the decoder of Amazon's binary messages; undefined for server-sent events. */
async function binaryDecoder(route: UpstreamRoute): Promise<EventDecoder | undefined> {
  const form = exceptionFormOf(route);
  return form === undefined ? undefined : openEventStream(form);
}

/** The most bytes of a whole answer that comes in place of a stream. */
const wholeAnswerBytesMax = 64 * 1024 * 1024;

/** Converts a whole body of an upstream's dialect to the equivalent event stream. */
type EventsOfWhole = (text: string) => string;

/**
 * Returns the answer to a streamed request as an event stream. Some servers answer with a whole
 * completion or with an error as JSON (litellm#25492), which is converted to events. An answer that
 * is labelled as a stream, or begins as one, passes through unchanged.
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
    expectMore: () => response.expectMore(),
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

/** A streamed request that a candidate has answered. */
export interface SentStream extends AdaptedRequest {
  candidate: Candidate;
  response: UpstreamResponse;
  /** When it was sent, in milliseconds of the monotonic clock. */
  startedMs: number;
}

/** The state of a stream from its head until it is settled. */
class OpenedStream {
  private readonly sent: Omit<SentStream, "adapter">;
  /** The parts of the request that the upstream was not sent. */
  private readonly losses: readonly Loss[];
  /** The attempts of the request, ending with the one that serves it. */
  private readonly attempts: AttemptRecord[];
  private readonly attempt: AttemptRecord;
  private readonly fallback: ModelFallback | undefined;
  private firstContentMs: number | null = null;
  /** Ends an answer that its hold does not pay for; undefined where it costs no credits. */
  private readonly watch: OutputWatch | undefined;
  /** Takes in what the client is sent; undefined where contents are not kept. */
  readonly keeper: AnswerKeeper | undefined;
  private isCharged = false;

  /** `bytesType` is the media type of an answer of bytes. */
  constructor(
    private readonly execution: Execution,
    { adapter, ...sent }: SentStream,
    bytesType?: string,
  ) {
    this.sent = sent;
    this.losses = adapter.losses;
    this.attempt = attemptRecord(sent.candidate, {
      status: sent.response.status,
      outcome: "served",
      reason: null,
      durationMs: 0,
    });
    this.attempts = execution.failed.map(({ record }) => record);
    this.attempts.push(this.attempt);
    this.fallback = fallbackOf(execution, this.attempts);
    this.watch = OutputWatch.of(execution, sent);
    const { deps, call } = execution;
    if (call.keptForm !== undefined) this.keeper = call.keptForm.keeperOf(bytesType);
    else if (keptSinceMs(deps, call) !== undefined)
      this.keeper = new KeptFrames(deps.contents?.mediaBytesMax ?? 0);
  }

  /** Returns the stream as the client pulls it. */
  relayed(decoder: EventDecoder | undefined, adapter: Adapter): RelayedStream {
    return new RelayedStream(this.options(decoder), this.relayOf(adapter));
  }

  /**
   * Releases the conversation that the request sent, unless its contents are kept, or prices of its
   * parts are asked for as its hold grows.
   */
  releaseConversation(): void {
    const { keeper, execution } = this;
    if (keeper === undefined && execution.allowance === undefined)
      execution.call.releaseConversation?.();
  }

  /** Apart from the other functions of the stream, which would keep the adapter in memory. */
  private relayOf(adapter: Adapter): (services: RelayServices) => StreamRelay {
    const {
      fallback,
      execution: { call, inputTokens },
      sent: { candidate },
    } = this;
    return (services) =>
      adapter.createRelay({
        ...services,
        shown: { id: call.shownId, model: candidate.model.id },
        inputTokens,
        windowTokens: windowTokensOf(candidate),
        fallback,
      });
  }

  private options(decoder: EventDecoder | undefined): RelayedStreamOptions {
    const { execution, sent } = this;
    const { deps } = execution;
    const { candidate } = sent;
    return {
      response: sent.response,
      decoder,
      drainOnCancel: deps.disconnect === "drain",
      keepAlive: deps.keepAlive,
      guard: this.watch,
      ...(this.keeper !== undefined && { onFrames: this.keeper.add.bind(this.keeper) }),
      onFirstContent: () => this.noteFirstContent(),
      settle: (metered, end) => this.settle(metered, end),
      metadataText: (settled, answerLosses) => this.metadataText(settled, answerLosses),
      asError: (failure) =>
        asStreamError(failure, {
          deps,
          attempt: this.attempt,
          provider: candidate.route.provider,
        }),
      onClosed: () => {
        this.keep();
        deps.observer.streamClosed();
      },
    };
  }

  noteFirstContent(): void {
    this.firstContentMs = this.execution.deps.clock.monotonicMs();
  }

  /** Returns the stream and what accompanies it, once its first content has come. */
  served(stream: RelayedStream): ServedStream {
    return { ...this.facts(), kind: "stream", stream };
  }

  /** Returns what accompanies the answer, once its first content has come. */
  facts(): Omit<ServedStream, "kind" | "stream"> {
    const { execution, sent, attempts, fallback } = this;
    const { candidate, outputCap } = sent;
    this.attempt.durationMs = hundredths(execution.deps.clock.monotonicMs() - sent.startedMs);
    return {
      candidate,
      losses: this.losses,
      outputCap,
      attempts,
      fallback,
      timing: this.timing(),
      sessionMoved: noteSession(execution, candidate),
      balanceAtAdmissionNano: execution.balanceAtAdmissionNano,
    };
  }

  private timing(): ServedStream["timing"] {
    const { deps, call, firstSendMs } = this.execution;
    return {
      startedMs: call.startedMs,
      firstSendMs,
      firstContentMs: this.firstContentMs,
      upstreamEndMs: deps.clock.monotonicMs(),
    };
  }

  /** Settles what was consumed. */
  settle(metered: MeteredUsage, end: EndedStream): Promise<Settled> {
    const {
      keeper,
      execution: { deps, call },
    } = this;
    const settlement = this.settlement(metered, end);
    const settling = settle(deps, settlement);
    if (keeper === undefined) return settling;
    return settling.then(
      (settled) => {
        this.isCharged = true;
        return settled;
      },
      (error: unknown) => {
        freeKept(call);
        throw error;
      },
    );
  }

  /** Keeps the contents of a charged answer, once all of it was given to the client. */
  keep(): void {
    const {
      keeper,
      isCharged,
      execution: { deps, call },
    } = this;
    if (keeper !== undefined && isCharged)
      keepContent(deps, { call, streamed: keeper.isEvents }, () => keeper.kept);
  }

  private settlement(metered: MeteredUsage, { answerLosses, ...end }: EndedStream): Settlement {
    const { execution, sent, attempt, attempts } = this;
    const { deps, call } = execution;
    const { candidate, outputCap } = sent;
    const timing = this.timing();
    attempt.durationMs = hundredths(timing.upstreamEndMs - sent.startedMs);
    if (end.status === "cut") attempt.outcome = "failed";
    if (end.status === "cancelled") attempt.outcome = "cancelled";
    deps.observer.attemptEnded(attempt);
    this.noteHealth(metered, { status: end.status, endMs: timing.upstreamEndMs });
    return {
      call,
      candidate,
      losses: joinLosses(this.losses, answerLosses),
      outputCap,
      routing: routingTrail(execution),
      metered,
      attempts,
      timing,
      requestedModel: execution.requestedModel,
      streamed: true,
      passedCap: this.watch?.hasCut === true,
      ...end,
    };
  }

  private metadataText(settled: Settled, answerLosses: readonly Loss[]): string {
    return metadataText({
      call: this.execution.call,
      candidate: this.sent.candidate,
      settled,
      attempts: this.attempts,
      answerLosses,
      timing: { ...this.timing(), settledMs: settled.settledMs },
    });
  }

  private noteHealth(
    { usage: { outputTokens = 0 } }: MeteredUsage,
    { status, endMs }: { status: string; endMs: number },
  ): void {
    const { health } = this.execution.deps;
    const { candidate, startedMs } = this.sent;
    // Failures of a caller's own key say nothing about the platform's credential.
    if (candidate.credential !== undefined) return;
    const providerId = candidate.route.provider.id;
    if (status === "cut") {
      health.recordFailure(providerId, candidate.model.id);
      return;
    }
    const firstContentMs = this.firstContentMs ?? endMs;
    const seconds = Math.max(0.001, (endMs - firstContentMs) / 1000);
    health.recordSuccess(providerId, {
      model: candidate.model.id,
      firstTokenMs: firstContentMs - startedMs,
      tokensPerSecond: outputTokens / seconds,
    });
  }
}

const hundredths = (milliseconds: number): number => Math.round(milliseconds * 100) / 100;

/** A stream whose first content has come. */
export interface ServedStream extends ServedFacts {
  kind: "stream";
  stream: RelayedStream;
}

/** An answer of bytes, of which the first have come. */
export interface ServedBytes extends ServedFacts {
  kind: "bytes";
  bytes: RelayedBytes;
}
