import { assert } from "../platform/lib/assert.ts";
import type { GatewayError } from "../platform/lib/errors.ts";
import type { FrameSource } from "../platform/lib/frame-source.ts";
import type { StreamRelay } from "./interpret/interpretation.ts";
import { failureOf, StreamFault, type FailureWithUsage } from "./interpret/stream-fault.ts";
import { FrameWait } from "./keep-alive.ts";
import type { Settled } from "./settle.ts";
import type { AbandonedStream, RelayedStreamOptions, StreamEnd } from "./relayed-stream-options.ts";
import { malformedAnswer } from "./upstream/classify-failure.ts";
import { FramedEvents, type EventReader } from "./upstream/event-reader.ts";
import { SseDecoder } from "./upstream/sse-decoder.ts";
import { UpstreamFailure } from "./upstream/upstream-failure.ts";

/** Bytes and time that a drained stream may still take after its client has left. */
const drainChunksMax = 20_000;

/** Characters that may be held back while no content has come. */
const openingCharactersMax = 4 * 1024 * 1024;

/**
 * A stream under way, in whichever dialects: pulls from the upstream what the client has room for, asks
 * the relay what each event is to the client, and settles exactly once, however the stream ends.
 */
export class RelayedStream implements FrameSource {
  private readonly options: RelayedStreamOptions;
  private readonly reader: EventReader;
  private readonly relay: StreamRelay;
  private pending = "";
  private settlement: Promise<Settled> | undefined;
  private settled: Settled | undefined;
  /** The client's wait for frames, and whether they are being pulled: for it, or since a ping was given in their place. */
  private readonly wait: FrameWait;
  private pulling = false;
  /** Events that have come and wait behind one whose frames wait, such as those of a charge for its commit. */
  private held: Promise<void> | undefined;
  private ended = false;
  private endAwaited = false;
  private clientGone = false;
  private readonly closing = Promise.withResolvers<void>();

  constructor(options: RelayedStreamOptions) {
    this.options = options;
    this.reader =
      options.decoder === undefined ? new SseDecoder() : new FramedEvents(options.decoder);
    this.relay = options.relay({
      settle: () => this.settleOnce("completed"),
      metadataText: () => this.metadataText(),
    });
    this.wait = new FrameWait(options.keepAlive, this.relay.pingFrame);
  }

  /**
   * Reads up to the first content, before anything is sent to the client. A failure up to here is
   * returned, so that the next candidate can be tried with nothing lost.
   */
  async prime(): Promise<FailureWithUsage | undefined> {
    const { response } = this.options;
    const { relay } = this;
    try {
      while (!relay.hasContent && !this.ended) {
        await this.advance();
        if (!relay.hasContent && this.pending.length > openingCharactersMax) {
          throw this.malformed("the stream begins with too much that is no content");
        }
      }
    } catch (error) {
      // What was charged is the client's: it is told as far as it came, and nobody else is asked.
      if (this.settled !== undefined) {
        await this.breakOff(error);
        return undefined;
      }
      response.abort();
      return failureOf(error, response.status);
    }
    if (!this.endAwaited) response.markContent();
    this.options.onFirstContent();
    return undefined;
  }

  /** The next frames; pings while the upstream is silent. */
  next(): Promise<string | undefined> {
    if (this.pending !== "" && !this.clientGone) return Promise.resolve(this.take());
    // A client that left before its answer began leaves the upstream to whoever drains it.
    if (this.ended || this.clientGone) return Promise.resolve(undefined);
    const frames = this.wait.begin();
    if (!this.pulling) this.pull();
    return frames;
  }

  ready(): string | undefined {
    return this.pending === "" || this.clientGone ? undefined : this.take();
  }

  get isOver(): boolean {
    return this.clientGone || (this.ended && this.pending === "");
  }

  /** The client has left. */
  cancel(): void {
    if (this.clientGone) return;
    this.clientGone = true;
    if (this.ended) return;
    if (!this.options.drainOnCancel) {
      this.options.response.abort();
      void this.close("cancelled");
    } else if (!this.pulling) void this.drain();
  }

  /**
   * Cancels the stream and tells what it came to, once that is settled: the frames that end it with `error`, and the
   * charge. Undefined where the settlement failed.
   */
  async abandon(error: GatewayError): Promise<AbandonedStream | undefined> {
    this.cancel();
    await this.closing.promise;
    if (this.settled === undefined) return undefined;
    return {
      frames: this.relay.fail(error),
      metered: this.relay.metered(),
      settled: this.settled,
      metadataText: this.metadataText(),
    };
  }

  private take(): string {
    const frames = this.pending;
    this.pending = "";
    return frames;
  }

  /** Works on until there are frames, or no more to come. */
  private readonly pull = (): void => {
    this.pulling = true;
    try {
      while (this.pending === "" && !this.ended) {
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

  private readonly fall = (error: unknown): void => void this.breakOff(error).then(this.serve);

  /** Gives what was pulled to the client, if it still waits, and is there. */
  private readonly serve = (): void => {
    this.pulling = false;
    if (this.wait.isOpen) this.wait.give(this.pending === "" ? undefined : this.take());
    if (this.clientGone && this.options.drainOnCancel && !this.ended) void this.drain();
  };

  /** Works on what is held, else on the next piece of the answer; what came before an event that waits can be taken at once. */
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
    // What goes wrong stays held, for whoever asks for more.
    this.held.catch(() => undefined);
  };

  /** Asks the relay about the events that were read, in their order; a promise where one of them waits. */
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

  /** The frames of the next event, or of several that the relay knows by their text. */
  private nextFrames(): string | Promise<string> | undefined {
    const {
      reader,
      relay,
      options: { allowance, response },
    } = this;
    if (allowance !== undefined) return allowance.next({ reader, relay, response });
    const alike = relay.acceptAlike?.(reader) ?? "";
    if (alike !== "") return alike;
    const event = reader.next();
    return event === undefined ? undefined : relay.accept(event);
  }

  private note(frames: string): void {
    const { relay } = this;
    this.pending += frames;
    if (relay.ended) this.end();
    else if (relay.finished !== this.endAwaited) this.noteFinished(relay.finished);
  }

  private async finish(): Promise<void> {
    this.pending += await this.relay.finish();
    this.end();
  }

  /** After the last finish heartbeats keep a stream open no longer; another choice that begins does. */
  private noteFinished(finished: boolean): void {
    this.endAwaited = finished;
    if (finished) this.options.response.expectEnd();
    else this.options.response.markContent();
  }

  private malformed(observation: string): StreamFault {
    return new StreamFault(malformedAnswer(this.options.response.status, observation));
  }

  private async breakOff(error: unknown): Promise<void> {
    this.options.response.abort();
    if (this.clientGone) return;
    try {
      // Every choice has finished: what broke afterwards took nothing from the answer.
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
    // A settlement that fails was reported by the settling side; there is nobody left to tell.
    await this.settleOnce(status).catch(() => undefined);
    this.end();
  }

  /** Reads on for the upstream's own usage after the client has left. */
  private async drain(): Promise<void> {
    try {
      for (let count = 0; count < drainChunksMax && !this.ended; count += 1) {
        await this.advance();
        this.pending = "";
      }
    } catch {
      // What was delivered until here is what there is to settle.
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
