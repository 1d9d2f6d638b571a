import { assert } from "../../../platform/kernel/assert.ts";
import type { GatewayError } from "../../../platform/kernel/errors.ts";
import { type FrameSource, type Frames, wholeText } from "../../../platform/kernel/frame-source.ts";
import type { StreamRelay } from "../../dialects/shared/stream/stream-relay.ts";
import { malformedStream } from "../../dialects/shared/stream/stream-fault.ts";
import { failureOf, type FailureWithUsage } from "../attempt.ts";
import type { Settled } from "../served-answer.ts";
import { type EventReader, type EventDecoder, SseDecoder } from "../../upstream/sse-decoder.ts";
import { FramedEvents } from "../../upstream/framed-events.ts";
import { UpstreamFailure, type AttemptFailure } from "../../upstream/upstream-failure.ts";
import type { Loss } from "../../canonical/request.ts";
import type { MeteredUsage } from "../../canonical/response.ts";
import type { StreamGuard } from "../hold/output-watch.ts";
import type { UpstreamResponse } from "../../upstream/upstream-client.ts";
import type { KeepAliveTicker, FrameWait } from "./keep-alive-ticker.ts";
import type { PieceReader } from "../../upstream/response-parser.ts";

/** Limits on how much of a stream is drained after its client has left. */
const drainChunksMax = 20_000;

/** The most characters that are held back while no content has come. */
const openingCharactersMax = 4 * 1024 * 1024;

/**
 * A stream in progress, in any pair of dialects. It pulls from the upstream as the client reads,
 * asks the relay for the client's frames of each event, and settles exactly once, however the
 * stream ends.
 */
export class RelayedStream implements FrameSource {
  private readonly reader: EventReader;
  private readonly relay: StreamRelay;
  private pending = "";
  private settlement: Promise<Settled> | undefined;
  private settled: Settled | undefined;
  /**
   * The client's wait for frames, and whether frames are being pulled: for that wait, or for a
   * later one after a ping answered it.
   */
  private readonly wait: FrameWait<Frames>;
  private pulling = false;
  /**
   * Events that wait behind one whose frames are not ready, such as the frames of a charge that is
   * being committed.
   */
  private held: Promise<void> | undefined;
  private ended = false;
  private endAwaited = false;
  private clientGone = false;
  private readonly closing = Promise.withResolvers<void>();

  /** `relayWith` builds the relay between the two dialects. */
  constructor(
    private readonly options: RelayedStreamOptions,
    relayWith: (services: RelayServices) => StreamRelay,
  ) {
    this.relay = relayWith({
      settle: () => this.settleOnce("completed"),
      metadataText: () => this.metadataText(),
    });
    this.reader =
      options.decoder === undefined
        ? new SseDecoder(this.relay.aside)
        : new FramedEvents(options.decoder);
    this.wait = options.keepAlive.newWait(this.relay.pingFrame);
  }

  /**
   * Reads up to the first content, before anything is sent to the client. A failure up to that
   * point is returned, so that the next candidate can be tried and nothing is lost.
   */
  async prime(): Promise<FailureWithUsage | undefined> {
    const { response } = this.options;
    const { relay } = this;
    try {
      while (!relay.hasContent && !this.ended) {
        await this.advance();
        const { length } = this.pending;
        if (!relay.hasContent && length + (relay.aside?.size ?? 0) > openingCharactersMax) {
          throw malformedStream("the stream begins with too much that is no content");
        }
      }
    } catch (error) {
      // A charged answer belongs to the client: it is sent as it came, and no other candidate is
      // tried.
      if (this.settled !== undefined) {
        await this.breakOff(error);
        return undefined;
      }
      response.abort();
      return { ...failureOf(error, response.status), begun: relay.hasContent };
    }
    this.options.onFirstContent();
    return undefined;
  }

  /** Returns the next frames, or a ping while the upstream is silent. */
  next(): Promise<string | undefined> {
    return new Promise((resolve) => this.tellNext(resolve));
  }

  tellNext(give: (frames: string | undefined) => void): void {
    this.tellFrames((frames) => give(frames === undefined ? undefined : wholeText(frames)));
  }

  tellFrames(give: (frames: Frames | undefined) => void): void {
    if (this.pending !== "" && !this.clientGone) give(this.take());
    // Where the client left before its answer began, the upstream is drained instead.
    else if (this.ended || this.clientGone) give(undefined);
    else {
      this.wait.begin(give);
      if (!this.pulling) this.pull();
    }
  }

  ready(): string | undefined {
    const frames = this.readyFrames();
    return frames === undefined ? undefined : wholeText(frames);
  }

  readyFrames(): Frames | undefined {
    return this.pending === "" || this.clientGone ? undefined : this.take();
  }

  get isOver(): boolean {
    return this.clientGone || (this.ended && this.pending === "");
  }

  /** Notes that the client has left. */
  cancel(): void {
    if (this.clientGone) return;
    this.clientGone = true;
    if (this.ended) return;
    this.relay.leave?.();
    if (!this.options.drainOnCancel) {
      this.options.response.abort();
      void this.close("cancelled");
    } else if (!this.pulling) void this.drain();
  }

  /**
   * Cancels the stream and returns its outcome once that is settled: the frames that end it with
   * `error`, and the charge. Resolves with undefined where the settlement failed.
   */
  async abandon(error: GatewayError): Promise<AbandonedStream | undefined> {
    this.cancel();
    await this.closing.promise;
    if (this.settled === undefined) return undefined;
    const frames = this.relay.fail(error);
    return {
      frames: this.relay.aside?.textOf(frames) ?? frames,
      metered: this.relay.metered(),
      settled: this.settled,
      metadataText: this.metadataText(),
    };
  }

  private take(): Frames {
    const frames = this.pending;
    this.pending = "";
    const { aside } = this.relay;
    return aside === undefined || aside.isEmpty ? frames : aside.restore(frames);
  }

  /** Works until there are frames, or no more to come. */
  private readonly pull = (): void => {
    this.pulling = true;
    try {
      while (this.pending === "" && !this.ended) {
        if (this.held === undefined && this.options.response.tellNext?.(this.arrival)) return;
        const advancing = this.advance();
        if (advancing === undefined) continue;
        advancing.then(this.pull, this.fall);
        return;
      }
    } catch (error) {
      this.fall(error);
      return;
    }
    this.serve();
  };

  /**
   * Takes what was read from the upstream's socket. An event is passed on in the same turn of the
   * event loop in which it arrived.
   */
  private readonly arrival: PieceReader = {
    resolve: (chunk) => {
      try {
        this.consume(chunk);
      } catch (error) {
        this.fall(error);
        return;
      }
      this.pull();
    },
    reject: (failure) => this.fall(failure),
  };

  private readonly fall = (error: unknown): void => void this.breakOff(error).then(this.serve);

  /** Gives what was pulled to the client, if it is still connected and waiting. */
  private readonly serve = (): void => {
    this.pulling = false;
    if (this.wait.isOpen) this.wait.give(this.pending === "" ? undefined : this.take());
    if (this.clientGone && this.options.drainOnCancel && !this.ended) void this.drain();
  };

  /**
   * Advances what is held, or else reads the next piece of the answer. What came before an event
   * that waits can be taken at once.
   */
  private advance(): Promise<void> | undefined {
    if (this.held !== undefined) return this.held;
    const pulled = this.options.response.next();
    if (pulled instanceof Promise) return pulled.then(this.consume);
    this.consume(pulled);
    return undefined;
  }

  private readonly consume = (chunk: Uint8Array | undefined): void => {
    if (chunk === undefined) this.reader.finish();
    else this.reader.read(chunk);
    const rest = this.accept({ isEnd: chunk === undefined });
    if (rest === undefined) return;
    this.held = rest.then(() => void (this.held = undefined));
    // The failure is reported by the next read, which awaits the same promise.
    this.held.catch(() => undefined);
  };

  /**
   * Asks the relay about the events that were read, in order. Returns a promise where one of them
   * waits.
   */
  private accept(read: { isEnd: boolean }): Promise<void> | undefined {
    while (!this.ended) {
      const frames = this.nextFrames();
      if (frames === undefined) return read.isEnd ? this.finish() : undefined;
      if (typeof frames !== "string") {
        return frames.then((text) => {
          this.note(text);
          return this.accept(read);
        });
      }
      this.note(frames);
    }
    return undefined;
  }

  /**
   * Returns the frames of the next event, or of several that the relay recognises by their text.
   */
  private nextFrames(): string | Promise<string> | undefined {
    const {
      reader,
      relay,
      options: { guard, response },
    } = this;
    if (guard !== undefined) return guard.next({ reader, relay, response });
    const alike = relay.acceptAlike?.(reader) ?? "";
    if (alike !== "") return alike;
    const event = reader.next();
    return event === undefined ? undefined : relay.accept(event);
  }

  private note(frames: string): void {
    const { relay } = this;
    this.pending += frames;
    this.keep(frames);
    if (relay.ended) this.end();
    else if (relay.finished !== this.endAwaited) this.noteFinished(relay.finished);
  }

  private async finish(): Promise<void> {
    // Reads the pending frames after the wait, since they may be taken while the relay waits for
    // its charge.
    const frames = await this.relay.finish();
    this.pending += frames;
    this.keep(frames);
    this.end();
  }

  private keep(frames: string): void {
    const { onFrames } = this.options;
    if (onFrames === undefined) return;
    const { aside } = this.relay;
    onFrames(aside === undefined || aside.isEmpty ? frames : aside.textOf(frames));
  }

  /**
   * Records whether the last choice has finished. Then heartbeats no longer keep the stream open,
   * until a further choice starts.
   */
  private noteFinished(finished: boolean): void {
    this.endAwaited = finished;
    if (finished) this.options.response.expectEnd();
    else this.options.response.expectMore();
  }

  private async breakOff(error: unknown): Promise<void> {
    this.options.response.abort();
    if (this.clientGone) return;
    try {
      // Every choice has finished, so a later failure took nothing from the answer.
      if (error instanceof UpstreamFailure && this.relay.finished) {
        await this.finish();
        return;
      }
      await this.settleOnce("cut");
      this.pending += this.relay.fail(
        this.options.asError(failureOf(error, this.options.response.status)),
      );
    } catch (settlementError) {
      this.pending += this.relay.fail(this.options.asError(settlementError));
    }
    this.end();
  }

  private settleOnce(status: StreamEnd): Promise<Settled> {
    this.settlement ??= this.settle(status);
    return this.settlement;
  }

  private async settle(status: StreamEnd): Promise<Settled> {
    const { finishReason, upstreamId, losses: answerLosses = [] } = this.relay;
    this.settled = await this.options.settle(this.relay.metered(), {
      status: this.clientGone ? "cancelled" : status,
      finishReason,
      upstreamId,
      answerLosses,
    });
    return this.settled;
  }

  private metadataText(): string {
    assert(this.settled !== undefined, "metadata is asked for after the settlement");
    return this.options.metadataText(this.settled, this.relay.losses ?? []);
  }

  private async close(status: StreamEnd): Promise<void> {
    // A failed settlement was reported where it failed, and the client has left.
    await this.settleOnce(status).catch(() => undefined);
    this.end();
  }

  /** Reads on to the upstream's own usage after the client has left. */
  private async drain(): Promise<void> {
    try {
      for (let count = 0; count < drainChunksMax && !this.ended; count += 1) {
        await this.advance();
        // Also lets go what was set aside.
        this.take();
      }
    } catch {
      // What was delivered up to here is what is settled.
    }
    if (!this.ended) this.options.response.abort();
    await this.close("cancelled");
  }

  private end(): void {
    if (this.ended) return;
    this.ended = true;
    this.wait.end();
    this.closing.resolve();
    this.options.onClosed();
  }
}

/** The end of a stream. */
export type StreamEnd = "completed" | "cut" | "cancelled";

/** The end of a stream, as its settlement needs it. */
export interface EndedStream {
  status: StreamEnd;
  finishReason: string | null;
  upstreamId: string | null;
  /** The parts of the answer that the client's dialect could not carry. */
  answerLosses: readonly Loss[];
}

/** The functions that the stream provides to a relay: see `RelayOptions`. */
export interface RelayServices {
  settle(): Promise<Settled>;
  metadataText(): string;
}

/** The parts of a stream, and its callbacks. */
export interface RelayedStreamOptions {
  response: UpstreamResponse;
  /** Finds the events in the bytes; absent for server-sent events. */
  decoder: EventDecoder | undefined;
  drainOnCancel: boolean;
  keepAlive: KeepAliveTicker;
  /**
   * Says of each event whether the hold covers it; absent where the stream costs no credits.
   */
  guard?: StreamGuard | undefined;
  /**
   * Called with all frames but those that end a stream early; absent where contents are not kept.
   */
  onFrames?(frames: string): void;
  /** Called once, when the first content has come. */
  onFirstContent(): void;
  /** Settles what was metered; called at most once. */
  settle(metered: MeteredUsage, end: EndedStream): Promise<Settled>;
  /**
   * Returns the JSON text of `service_metadata` for the final frame. `answerLosses` are what the
   * client's dialect could not carry of the answer.
   */
  metadataText(settled: Settled, answerLosses: readonly Loss[]): string;
  /** Returns the error that the client receives for a failure. */
  asError(failure: AttemptFailure | unknown): GatewayError;
  onClosed(): void;
}

/** The outcome of a stream that was cancelled. */
interface AbandonedStream {
  /** The frames that end it, with everything that was delivered. */
  frames: string;
  metered: MeteredUsage;
  settled: Settled;
  /** The JSON text of `service_metadata`. */
  metadataText: string;
}
