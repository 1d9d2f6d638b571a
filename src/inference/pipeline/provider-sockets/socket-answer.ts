import type { SocketFrame } from "../../dialects/socket-mode.ts";
import type { Abortable } from "../../upstream/abort-scope.ts";
import type { ExchangeTimeouts } from "../../upstream/exchange.ts";
import type { UpstreamResponse } from "../../upstream/upstream-client.ts";
import { type TransportFault, UpstreamFailure } from "../../upstream/upstream-failure.ts";

/** Characters of an answer that may wait for a slow reader; a socket cannot be paused. */
const queuedCharactersMax = 32 * 1024 * 1024;

/** Milliseconds that a finished answer may take to end. */
const endGraceMs = 10_000;

/** Options of an answer. */
interface AnswerOptions {
  timeouts: ExchangeTimeouts;
  /**
   * Called once, when the answer is over: with the id of the response that can be continued, or with
   * undefined where the socket cannot be used on.
   */
  onOver(responseId: string | undefined): void;
}

interface Reader {
  resolve(bytes: Uint8Array | undefined): void;
  reject(failure: UpstreamFailure): void;
}

/**
 * An answer that comes over a provider's socket, read as the same answer over HTTP: its events in
 * the form of server-sent events, under the same deadlines.
 */
export class SocketAnswer implements UpstreamResponse, Abortable {
  readonly status = 200;
  readonly headers = { "content-type": "text/event-stream" };
  private readonly beginning = Promise.withResolvers<boolean>();
  private readonly total: ReturnType<typeof setTimeout>;
  private silence: ReturnType<typeof setTimeout>;
  private queued: string[] = [];
  private queuedCharacters = 0;
  private hasBegun = false;
  private endExpected = false;
  private ended = false;
  private failure: UpstreamFailure | undefined;
  private reader: Reader | undefined;

  constructor(private readonly options: AnswerOptions) {
    const { firstTokenMs, totalMs } = options.timeouts;
    this.silence = setTimeout(() => this.fail("first_token_timeout"), firstTokenMs);
    this.total = setTimeout(() => this.fail("total_timeout"), totalMs);
  }

  /**
   * Resolves with whether the provider answers, once that is known: false where it refuses, or
   * closes the socket, before the first event. Rejects with an `UpstreamFailure`.
   */
  get begun(): Promise<boolean> {
    return this.beginning.promise;
  }

  get isOver(): boolean {
    return this.ended || this.failure !== undefined;
  }

  /** Takes a frame of the socket. */
  take({ kind, sse, responseId }: SocketFrame): void {
    if (this.isOver) return;
    if (!this.hasBegun && kind === "error") return this.refuse();
    if (kind === "malformed") return this.fail("malformed_response");
    this.queued.push(sse);
    this.queuedCharacters += sse.length;
    if (kind !== "event") this.end(responseId);
    else if (this.queuedCharacters > queuedCharactersMax) return this.fail("response_too_large");
    else if (!this.endExpected) this.expectWithin(this.options.timeouts.idleMs);
    if (!this.hasBegun) {
      this.hasBegun = true;
      this.beginning.resolve(true);
    }
    const { reader } = this;
    this.reader = undefined;
    reader?.resolve(this.taken());
  }

  /** Notes that the socket was closed. */
  lose(): void {
    if (this.isOver) return;
    if (this.hasBegun) this.fail("connection_closed");
    else this.refuse();
  }

  next(): Promise<Uint8Array | undefined> | Uint8Array | undefined {
    const bytes = this.taken();
    if (bytes !== undefined) return bytes;
    if (this.failure !== undefined) return Promise.reject(this.failure);
    if (this.ended) return undefined;
    return new Promise((resolve, reject) => {
      this.reader = { resolve, reject };
    });
  }

  async readText(limitBytes: number): Promise<string> {
    const pieces: Uint8Array[] = [];
    let size = 0;
    for (let piece = await this.next(); piece !== undefined; piece = await this.next()) {
      pieces.push(piece);
      size += piece.byteLength;
      if (size <= limitBytes) continue;
      this.fail("response_too_large");
      throw failureOf("response_too_large");
    }
    return Buffer.concat(pieces).toString("utf8");
  }

  expectMore(): void {
    this.endExpected = false;
    if (!this.isOver) this.expectWithin(this.options.timeouts.idleMs);
  }

  expectEnd(): void {
    this.endExpected = true;
    if (!this.isOver) this.expectWithin(Math.min(endGraceMs, this.options.timeouts.idleMs));
  }

  abort(): void {
    this.fail("aborted");
  }

  /** Ends the answer because the gateway ends. */
  breakOff(): void {
    this.fail("shutting_down");
  }

  /** Returns the events that have come since the last call; undefined where there are none. */
  private taken(): Uint8Array | undefined {
    if (this.queued.length === 0) return undefined;
    const text = this.queued.join("");
    this.queued = [];
    this.queuedCharacters = 0;
    return Buffer.from(text);
  }

  private expectWithin(milliseconds: number): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.fail("idle_timeout"), milliseconds);
  }

  private refuse(): void {
    this.end(undefined);
    this.beginning.resolve(false);
  }

  private end(responseId: string | undefined): void {
    this.ended = true;
    this.close(responseId);
  }

  private fail(fault: TransportFault): void {
    if (this.isOver) return;
    const failure = failureOf(fault);
    this.failure = failure;
    this.close(undefined);
    if (!this.hasBegun) this.beginning.reject(failure);
    const { reader } = this;
    this.reader = undefined;
    reader?.reject(failure);
  }

  private close(responseId: string | undefined): void {
    clearTimeout(this.silence);
    clearTimeout(this.total);
    this.options.onOver(responseId);
  }
}

const failureOf = (fault: TransportFault): UpstreamFailure =>
  new UpstreamFailure(fault, `the provider's socket failed: ${fault}`, { sent: true });
