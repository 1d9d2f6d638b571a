import type { Socket } from "bun";
import type { Clock } from "../../platform/lib/clock.ts";
import type { FrameSource } from "../../platform/lib/frame-source.ts";
import { HttpFault } from "./http-fault.ts";
import type { IncomingBody } from "./incoming-body.ts";
import { IncomingRequest } from "./incoming-request.ts";
import type { ReplyManner } from "./reply-manner.ts";
import { writeReply, type ReplySink } from "./reply-writer.ts";
import { Reply, type Answer } from "./reply.ts";
import type { RequestHead } from "./request-head.ts";
import { RequestReader } from "./request-reader.ts";
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

/** How long a client may take for a head, or fall silent within a body or after the last answer, in milliseconds. */
const patienceMs = 60_000;

const goOn = "HTTP/1.1 100 Continue\r\n\r\n";

/** The frames of an answer that comes bit by bit. */
const framesOf = (answer: Answer): FrameSource | undefined =>
  answer instanceof Reply && typeof answer.body !== "string" ? answer.body : undefined;

/** One client's connection: requests one after the other, each answered before the next is looked at (RFC 9112, 9.3). */
export class ServerConnection implements ReplySink {
  isGone = false;
  private readonly socket: Socket<ServerConnection>;
  private readonly server: ConnectionServer;
  private readonly reader: RequestReader;
  private readonly writer: SocketWriter;
  private request: IncomingRequest | undefined;
  private goneListener: (() => void) | undefined;
  /** Whether the connection ends with the answer under way. */
  private closes = false;
  /** Whether something of the answer under way was written. */
  private answerBegun = false;
  private ending = false;

  constructor(socket: Socket<ServerConnection>, server: ConnectionServer) {
    this.socket = socket;
    this.server = server;
    this.writer = new SocketWriter(socket);
    this.reader = new RequestReader({
      socket, clock: server.clock,
      onRequest: (head, body) => this.answer(head, body),
      onFault: (fault) => this.refuse(fault),
      onContinue: () => void this.writer.write(goOn, goOn.length),
    });
  }

  /** Whether no request is under way. */
  get isIdle(): boolean {
    return this.request === undefined;
  }

  onData(bytes: Buffer): void {
    this.reader.push(bytes);
  }

  onDrain(): void {
    this.writer.drain();
    if (this.ending && this.writer.isDrained) this.socket.end();
  }

  onClose(): void {
    if (this.isGone) return;
    this.isGone = true;
    this.server.onGone(this);
    this.reader.drop();
    this.request?.abort();
    this.goneListener?.();
    this.writer.drop();
  }

  /** Looks whether the client has owed something for too long; such a connection ends. */
  sweep(nowMs: number): void {
    const { reader } = this;
    if (reader.owesSinceMs === undefined || nowMs - reader.owesSinceMs < patienceMs) return;
    reader.owesSinceMs = undefined;
    if (this.ending || reader.isInBody) this.terminate();
    else this.refuse(new HttpFault(408, "The request did not come in time."));
  }

  /** Ends the connection at once. */
  terminate(): void {
    this.socket.terminate();
    this.onClose();
  }

  /** Ends the connection once everything is sent. What still comes is not read, so that the client gets to read its answer. */
  close(): void {
    if (this.ending || this.isGone) return;
    this.ending = true;
    this.reader.end();
    if (this.writer.isDrained) this.socket.end();
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

  private readonly addressOf = (): string => this.socket.remoteAddress ?? "";

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

  private mannerFor({ method, headers, isCurrent }: RequestHead, answer: Answer): ReplyManner {
    const wishes = headers.get("connection")?.toLowerCase() ?? "";
    const keeps = isCurrent ? !wishes.includes("close") : wishes.includes("keep-alive") && framesOf(answer) === undefined;
    // A client that was not told to send its body may send it or not: where the next request begins is not known.
    this.closes ||= !keeps || this.server.closing || this.reader.awaitsContinue;
    return {
      withoutBody: method === "HEAD",
      knowsChunks: isCurrent,
      closes: this.closes || (isCurrent ? false : "kept"),
      nowMs: this.server.clock.nowMs(),
    };
  }

  private readonly afterAnswer = (): void => {
    this.request = undefined;
    this.goneListener = undefined;
    this.server.onEnd();
    if (this.isGone) return;
    if (this.closes || this.server.closing) this.close();
    else this.reader.answered();
  };

  /** What came is no request. Where it comes within one that is under way, that is answered, and is the last one. */
  private refuse(fault: HttpFault): void {
    this.closes = true;
    if (this.request !== undefined) return;
    this.tellFault(fault);
    this.close();
  }

  private tellFault(fault: HttpFault): void {
    const manner: ReplyManner = { withoutBody: false, knowsChunks: true, closes: true, nowMs: this.server.clock.nowMs() };
    void writeReply(this.server.refuse(fault), { sink: this, manner });
  }
}
