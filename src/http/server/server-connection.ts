import type { Socket } from "bun";
import type { Clock } from "../../platform/lib/clock.ts";
import type { FrameSource } from "../../platform/lib/frame-source.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { HttpFault } from "./http-fault.ts";
import { bodyLengthOf, IncomingBody, type BodyConnection } from "./incoming-body.ts";
import { IncomingRequest } from "./incoming-request.ts";
import type { ReplyManner } from "./reply-manner.ts";
import { writeReply, type ReplySink } from "./reply-writer.ts";
import { Reply, type Answer } from "./reply.ts";
import { headBytesMax, headEnd, headTextIn, parseRequestHead, type RequestHead } from "./request-head.ts";
import { SocketWriter } from "./socket-writer.ts";

/** What connections need of their server. */
export interface ConnectionServer {
  handle(request: IncomingRequest): Answer | Promise<Answer>;
  /** The answer to what is no request. */
  refuse(fault: HttpFault): Answer;
  /** Whether every answer closes its connection from now on. */
  readonly closing: boolean;
  /** Told that a request is under way, and that it was answered. */
  onBegin(): void;
  onEnd(): void;
  /** Told that a connection is no more. */
  onGone(connection: ServerConnection): void;
  /** Told of what was thrown where nothing may throw. */
  onError(error: unknown): void;
  readonly clock: Clock;
}

/** Bytes of further requests that may wait behind the one that is being answered. */
const pipelinedBytesMax = 64 * 1024;

/** How long a client may take for a head, or fall silent within a body or after the last answer, in milliseconds. */
const patienceMs = 60_000;

const goOn = "HTTP/1.1 100 Continue\r\n\r\n";

const closedEarly = (): GatewayError => new GatewayError("bad_request", "The body ended before it was complete. Send it whole.");

/** The frames of an answer that comes bit by bit. */
const framesOf = (answer: Answer): FrameSource | undefined =>
  answer instanceof Reply && typeof answer.body !== "string" ? answer.body : undefined;

/** One client's connection: requests one after the other, each answered before the next is looked at (RFC 9112, 9.3). */
export class ServerConnection implements BodyConnection, ReplySink {
  isGone = false;
  private readonly socket: Socket<ServerConnection>;
  private readonly server: ConnectionServer;
  private unread: Buffer | undefined;
  private body: IncomingBody | undefined;
  private request: IncomingRequest | undefined;
  private readonly writer: SocketWriter;
  private goneListener: (() => void) | undefined;
  private paused = false;
  private awaitsContinue = false;
  private closes = false;
  /** Whether something of the answer under way was written. */
  private answerBegun = false;
  private ending = false;
  /** Since when the client owes something, in monotonic milliseconds; undefined while it may be silent. */
  private owesSinceMs: number | undefined;

  constructor(socket: Socket<ServerConnection>, server: ConnectionServer) {
    this.socket = socket;
    this.server = server;
    this.writer = new SocketWriter(socket);
  }

  /** Whether no request is under way. */
  get isIdle(): boolean {
    return this.request === undefined;
  }

  onData(bytes: Buffer): void {
    if (this.ending) return;
    this.unread = this.unread === undefined ? bytes : Buffer.concat([this.unread, bytes]);
    this.advance();
  }

  onDrain(): void {
    this.writer.drain();
    if (this.ending && this.writer.isDrained) this.socket.end();
  }

  onClose(): void {
    if (this.isGone) return;
    this.isGone = true;
    this.server.onGone(this);
    this.body?.fail(closedEarly());
    this.request?.abort();
    this.goneListener?.();
    this.writer.drop();
  }

  private readonly addressOf = (): string => this.socket.remoteAddress ?? "";

  /** Looks whether the client has owed something for too long; such a connection ends. */
  sweep(nowMs: number): void {
    if (this.owesSinceMs === undefined || nowMs - this.owesSinceMs < patienceMs) return;
    this.owesSinceMs = undefined;
    if (this.ending || this.body !== undefined) this.terminate();
    else this.refuse(new HttpFault(408, "The request did not come in time."));
  }

  /** Ends the connection at once. */
  terminate(): void {
    this.socket.terminate();
    this.onClose();
  }

  write(data: string | Uint8Array, byteLength: number): Promise<void> | undefined {
    if (this.isGone) return undefined;
    this.answerBegun = true;
    return this.writer.write(data, byteLength);
  }

  onGone(listener: () => void): void {
    if (this.isGone) listener();
    else this.goneListener = listener;
  }

  setPaused(paused: boolean): void {
    if (this.paused === paused || this.isGone) return;
    this.paused = paused;
    if (paused) {
      this.socket.pause();
      this.owesSinceMs = undefined;
    } else this.socket.resume();
  }

  onReading(): void {
    this.owesSinceMs = this.server.clock.monotonicMs();
    if (!this.awaitsContinue) return;
    this.awaitsContinue = false;
    void this.writer.write(goOn, goOn.length);
  }

  /** Works on what has come for as far as it goes. */
  private advance(): void {
    try {
      while (this.unread !== undefined && !this.ending) {
        if (!(this.body === undefined || this.body.complete) ? !this.readBody(this.body) : !this.beginRequest()) return;
      }
    } catch (error) {
      if (error instanceof HttpFault) this.refuse(error);
      else throw error;
    }
  }

  private readBody(body: IncomingBody): boolean {
    const bytes = this.unread as Buffer;
    const next = body.push(bytes, 0);
    this.owesSinceMs = body.complete ? undefined : this.server.clock.monotonicMs();
    this.keepUnread(bytes, next);
    if (body.complete && this.request === undefined) this.body = undefined;
    return body.complete;
  }

  /** Reads a head and sets its handler to work; false where there is none yet, or the one before is still being answered. */
  private beginRequest(): boolean {
    const bytes = this.unread as Buffer;
    if (this.request !== undefined) {
      if (bytes.length > pipelinedBytesMax) this.setPaused(true);
      return false;
    }
    let from = 0;
    // Empty lines before a request are nothing (RFC 9112, 2.2).
    while (bytes[from] === 13 && bytes[from + 1] === 10) from += 2;
    const text = headTextIn(bytes, from);
    if (text === undefined) {
      if (bytes.length - from > headBytesMax) throw new HttpFault(431, "The head of the request is too long.");
      this.owesSinceMs ??= this.server.clock.monotonicMs();
      return false;
    }
    const head = parseRequestHead(text);
    this.owesSinceMs = undefined;
    const body = new IncomingBody(bodyLengthOf(head), this);
    this.body = body;
    this.expect(head, body);
    let next = from + text.length + headEnd.length;
    if (!body.complete) {
      if (next < bytes.length) next = body.push(bytes, next);
      if (!body.complete) this.owesSinceMs = this.server.clock.monotonicMs();
    }
    this.keepUnread(bytes, next);
    this.answer(head, body);
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

  private answer(head: RequestHead, body: IncomingBody): void {
    const request = new IncomingRequest(head, { body, addressOf: this.addressOf });
    this.request = request;
    this.answerBegun = false;
    this.server.onBegin();
    try {
      const answering = this.server.handle(request);
      if (answering instanceof Promise) answering.then((answer) => this.send(answer, head), this.fail);
      else this.send(answering, head);
    } catch (error) {
      this.fail(error);
    }
  }

  private send(answer: Answer, head: RequestHead): void {
    if (this.isGone) {
      framesOf(answer)?.cancel();
      return this.afterAnswer();
    }
    try {
      const writing = writeReply(answer, { sink: this, manner: this.mannerFor(head, answer) });
      if (writing === undefined) this.afterAnswer();
      else writing.then(this.afterAnswer, this.fail);
    } catch (error) {
      this.fail(error);
    }
  }

  /** An answer could not be made or written. Where none of it has left the client is told so, else its connection breaks off. */
  private readonly fail = (error: unknown): void => {
    this.server.onError(error);
    this.closes = true;
    if (this.answerBegun) this.terminate();
    else this.tellFault(new HttpFault(500, "The gateway failed on this request."));
    this.afterAnswer();
  };

  private mannerFor(head: RequestHead, answer: Answer): ReplyManner {
    const wishes = head.headers.get("connection")?.toLowerCase() ?? "";
    const { isCurrent } = head;
    const keeps = isCurrent ? !wishes.includes("close") : wishes.includes("keep-alive") && framesOf(answer) === undefined;
    // A client that was not told to send its body may send it or not: where the next request begins is not known.
    this.closes ||= !keeps || this.server.closing || this.awaitsContinue;
    return {
      withoutBody: head.method === "HEAD",
      knowsChunks: isCurrent,
      closes: this.closes || (isCurrent ? false : "kept"),
      nowMs: this.server.clock.nowMs(),
    };
  }

  private readonly afterAnswer = (): void => {
    const { body } = this;
    this.request = undefined;
    this.goneListener = undefined;
    this.server.onEnd();
    if (this.isGone) return;
    if (this.closes || this.server.closing) return this.close();
    if (body?.complete === false) body.discard();
    else this.body = undefined;
    this.setPaused(false);
    if (this.unread !== undefined) this.advance();
  };

  private refuse(fault: HttpFault): void {
    this.body?.fail(new GatewayError("bad_request", fault.message, { cause: fault }));
    if (this.request !== undefined) {
      // Its handler hears that the body is none, and answers; nothing can come after it.
      this.unread = undefined;
      this.closes = true;
      return;
    }
    this.tellFault(fault);
    this.close();
  }

  private tellFault(fault: HttpFault): void {
    const manner: ReplyManner = { withoutBody: false, knowsChunks: true, closes: true, nowMs: this.server.clock.nowMs() };
    void writeReply(this.server.refuse(fault), { sink: this, manner });
  }

  /** Ends the connection once everything is sent. What still comes is not read, so that the client gets to read its answer. */
  close(): void {
    if (this.ending || this.isGone) return;
    this.ending = true;
    this.unread = undefined;
    this.owesSinceMs = this.server.clock.monotonicMs();
    this.setPaused(false);
    if (this.writer.isDrained) this.socket.end();
  }
}
