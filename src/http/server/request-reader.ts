import type { Socket } from "bun";
import type { Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { HttpFault } from "./http-fault.ts";
import { bodyLengthOf, IncomingBody, type BodyConnection } from "./incoming-body.ts";
import { headBytesMax, headEnd, headTextIn, parseRequestHead, type RequestHead } from "./request-head.ts";

/** Bytes of further requests that may wait behind the one that is being answered. */
const pipelinedBytesMax = 64 * 1024;

/** What a reader reads from, and whom it tells. */
export interface RequestReaderOptions {
  socket: Pick<Socket<unknown>, "pause" | "resume">;
  clock: Clock;
  /** A request has come; the next one is looked at once `answered` was called. */
  onRequest(head: RequestHead, body: IncomingBody): void;
  /** What comes is no request: nothing can be read any more. */
  onFault(fault: HttpFault): void;
  /** The body is wanted of a client that asked whether it may send it (RFC 9110, 10.1.1). */
  onContinue(): void;
}

const closedEarly = (): GatewayError => new GatewayError("bad_request", "The body ended before it was complete. Send it whole.");

/** Finds the requests in the bytes of a connection, one after the other. */
export class RequestReader implements BodyConnection {
  /** Since when the client owes something, in monotonic milliseconds; undefined while it may be silent. */
  owesSinceMs: number | undefined;
  /** The client waits to be told that it may send its body. */
  awaitsContinue = false;
  private readonly options: RequestReaderOptions;
  private unread: Buffer | undefined;
  private body: IncomingBody | undefined;
  private answering = false;
  private advancing = false;
  private paused = false;
  private ended = false;

  constructor(options: RequestReaderOptions) {
    this.options = options;
  }

  /** Whether a body is under way, whoever still wants it. */
  get isInBody(): boolean {
    return this.body !== undefined;
  }

  push(bytes: Buffer): void {
    if (this.ended) return;
    this.unread = this.unread === undefined ? bytes : Buffer.concat([this.unread, bytes]);
    this.advance();
  }

  /** The request that was told of last is answered: what is left of its body is nobody's. */
  answered(): void {
    this.answering = false;
    if (this.body?.complete === false) this.body.discard();
    else this.body = undefined;
    this.setPaused(false);
    if (this.unread !== undefined) this.advance();
  }

  /** From now on what comes is dropped. */
  end(): void {
    this.ended = true;
    this.unread = undefined;
    this.owesSinceMs = this.options.clock.monotonicMs();
    this.setPaused(false);
  }

  /** The client has left. */
  drop(): void {
    this.ended = true;
    this.body?.fail(closedEarly());
  }

  setPaused(paused: boolean): void {
    if (this.paused === paused) return;
    this.paused = paused;
    if (paused) {
      this.options.socket.pause();
      this.owesSinceMs = undefined;
    } else this.options.socket.resume();
  }

  onReading(): void {
    this.owesSinceMs = this.options.clock.monotonicMs();
    if (!this.awaitsContinue) return;
    this.awaitsContinue = false;
    this.options.onContinue();
  }

  /** Works on what has come for as far as it goes. Answers that are there at once come back here, which is once too often. */
  private advance(): void {
    if (this.advancing) return;
    this.advancing = true;
    try {
      while (this.unread !== undefined && !this.ended && this.step(this.unread));
    } catch (error) {
      if (!(error instanceof HttpFault)) throw error;
      this.ended = true;
      this.unread = undefined;
      this.body?.fail(new GatewayError("bad_request", error.message, { cause: error }));
      this.options.onFault(error);
    } finally {
      this.advancing = false;
    }
  }

  /** False where more has to come, or the request before has to be answered first. */
  private step(bytes: Buffer): boolean {
    if (this.body !== undefined && !this.body.complete) return this.readBody(bytes, this.body);
    if (!this.answering) return this.readRequest(bytes);
    if (bytes.length > pipelinedBytesMax) this.setPaused(true);
    return false;
  }

  private readBody(bytes: Buffer, body: IncomingBody): boolean {
    this.keepUnread(bytes, body.push(bytes, 0));
    this.owesSinceMs = body.complete ? undefined : this.options.clock.monotonicMs();
    if (body.complete && !this.answering) this.body = undefined;
    return body.complete;
  }

  private readRequest(bytes: Buffer): boolean {
    let from = 0;
    // Empty lines before a request are nothing (RFC 9112, 2.2).
    while (bytes[from] === 13 && bytes[from + 1] === 10) from += 2;
    const text = headTextIn(bytes, from);
    if (text === undefined) {
      if (bytes.length - from > headBytesMax) throw new HttpFault(431, "The head of the request is too long.");
      this.owesSinceMs ??= this.options.clock.monotonicMs();
      return false;
    }
    const head = parseRequestHead(text);
    this.owesSinceMs = undefined;
    const body = new IncomingBody(bodyLengthOf(head), this);
    this.expect(head, body);
    this.body = body;
    let next = from + text.length + headEnd.length;
    if (!body.complete) {
      if (next < bytes.length) next = body.push(bytes, next);
      if (!body.complete) this.owesSinceMs = this.options.clock.monotonicMs();
    }
    this.keepUnread(bytes, next);
    this.answering = true;
    this.options.onRequest(head, body);
    return true;
  }

  private keepUnread(bytes: Buffer, from: number): void {
    this.unread = from >= bytes.length ? undefined : from === 0 ? bytes : bytes.subarray(from);
  }

  private expect({ headers, isCurrent }: RequestHead, body: IncomingBody): void {
    this.awaitsContinue = false;
    const expectation = headers.get("expect");
    if (expectation === null || !isCurrent) return;
    if (expectation.toLowerCase() !== "100-continue") throw new HttpFault(417, `The expectation ${expectation} cannot be met.`);
    this.awaitsContinue = !body.complete;
  }
}
