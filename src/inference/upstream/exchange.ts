import type { Clock } from "../../platform/kernel/clock.ts";
import type { DeadlineWatch, Watched } from "./deadline-watch.ts";
import type { Connection, ExchangeListener, WireRequest } from "./connection.ts";
import {
  decodedResponse,
  type ResponseHead,
  type PieceReader,
  type UpstreamResponse,
  type Waiter,
} from "./response-parser.ts";
import type { ExchangeTie } from "./abort-scope.ts";
import { UpstreamFailure, type TransportFault } from "./upstream-failure.ts";

/** The deadlines of one exchange, in milliseconds. */
export interface ExchangeTimeouts {
  /** Until the first sign of life: any byte of the body, of content or not. */
  firstTokenMs: number;
  /** Between two signs of life. */
  idleMs: number;
  /** Milliseconds from sending to the last byte. */
  totalMs: number;
}

/** Bytes of an answer that may wait for a slow reader before the socket is paused. */
const queuedBytesHigh = 256 * 1024;
const queuedBytesLow = 64 * 1024;

/** Milliseconds that a finished answer may take to report its usage and to end. */
const endGraceMs = 10_000;

const faultText: Partial<Record<TransportFault, string>> = {
  first_token_timeout: "the upstream sent nothing in time",
  idle_timeout: "the upstream went silent in the middle of its answer",
  total_timeout: "the upstream took too long to finish its answer",
};

/**
 * Bytes of a body within the buffer that they arrived in. A view of them is created only where one
 * is needed.
 */
interface Piece {
  bytes: Buffer;
  start: number;
  end: number;
}

const viewOf = ({ bytes, start, end }: Piece): Uint8Array =>
  start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);

/** The part of a connection that an exchange uses. */
export type ExchangeConnection = Pick<
  Connection,
  "send" | "pause" | "resume" | "destroy" | "noteKeepAlive"
>;

/** Options of an exchange. */
interface ExchangeOptions {
  connection: ExchangeConnection;
  watch: DeadlineWatch;
  clock: Clock;
  timeouts: ExchangeTimeouts;
  abortScope: ExchangeTie;
  /**
   * Sends the request on another connection, where this one was kept alive and turns out to have
   * been closed before it took a byte.
   */
  onStale?: (() => Promise<UpstreamResponse>) | undefined;
}

const noHeaders: ResponseHead["headers"] = {};

/**
 * A request and, once its head has arrived, its answer. The body is pulled in chunks, with
 * backpressure to the upstream's socket and three deadlines. Aborting closes the upstream
 * connection at once.
 */
export class Exchange implements ExchangeListener, Watched, UpstreamResponse {
  deadlineMs: number;
  place = -1;
  addedAtSweep = 0;
  excusedDeadlineMs = 0;
  /** The status of the answer; 0 until its head has come. */
  status = 0;
  headers = noHeaders;
  private readonly connection: ExchangeConnection;
  private readonly watch: DeadlineWatch;
  private readonly clock: Clock;
  private readonly timeouts: ExchangeTimeouts;
  private readonly totalDeadlineMs: number;
  private readonly abortScope: ExchangeTie;
  private readonly onStale: ExchangeOptions["onStale"];
  private readonly pieces: Piece[] = [];
  private queuedBytes = 0;
  private ended = false;
  private failure: UpstreamFailure | undefined;
  /** Whether any byte of the body has come. */
  private isAlive = false;
  private endExpected = false;
  private headWaiter: Waiter<UpstreamResponse | Promise<UpstreamResponse>> | undefined;
  private pieceWaiter: PieceReader | undefined;

  constructor(options: ExchangeOptions) {
    this.connection = options.connection;
    this.watch = options.watch;
    this.clock = options.clock;
    this.timeouts = options.timeouts;
    this.abortScope = options.abortScope;
    this.onStale = options.onStale;
    const nowMs = this.clock.monotonicMs();
    this.totalDeadlineMs = nowMs + this.timeouts.totalMs;
    this.deadlineMs = Math.min(this.totalDeadlineMs, nowMs + this.timeouts.firstTokenMs);
    this.watch.add(this);
  }

  /**
   * Sends the request. Resolves with the answer once its head has come, or rejects with the
   * failure.
   */
  start(wire: WireRequest): Promise<UpstreamResponse> {
    return new Promise((resolve, reject) => {
      this.headWaiter = { resolve, reject };
      this.connection.send(wire, this);
    });
  }

  /** Starts to listen to the client. Called once the exchange has waited for a moment. */
  onLasting(): void {
    this.abortScope.listen();
  }

  expectMore(): void {
    this.isAlive = true;
    this.endExpected = false;
    this.extendIdle();
  }

  /**
   * Notes that the content is complete: the answer has to end soon, and heartbeats do not prolong
   * it.
   */
  expectEnd(): void {
    this.isAlive = true;
    this.endExpected = true;
    this.deadlineMs = Math.min(
      this.totalDeadlineMs,
      this.clock.monotonicMs() + Math.min(endGraceMs, this.timeouts.idleMs),
    );
  }

  /**
   * Returns the next bytes of the body, without a promise where they have arrived; undefined at its
   * end. Rejects with the failure that ended it.
   */
  next(): Promise<Uint8Array | undefined> | Uint8Array | undefined {
    const piece = this.takePiece();
    if (piece !== undefined) return viewOf(piece);
    if (this.failure !== undefined) return Promise.reject(this.failure);
    if (this.ended) return undefined;
    return new Promise((resolve, reject) => {
      this.pieceWaiter = { resolve, reject };
    });
  }

  tellNext(reader: PieceReader): boolean {
    if (!this.isWaiting) return false;
    this.pieceWaiter = reader;
    return true;
  }

  /**
   * Returns the whole body as text (UTF-8) where it has arrived in one piece, as most answers do.
   */
  takeText(limitBytes: number): string | undefined {
    if (!this.ended || this.pieces.length !== 1 || this.queuedBytes > limitBytes) return undefined;
    const [{ bytes, start, end }] = this.pieces as [Piece];
    this.pieces.length = 0;
    this.queuedBytes = 0;
    return bytes.toString("utf8", start, end);
  }

  /**
   * Reads the whole body as text (UTF-8). From its first byte on, it may not pause for longer than
   * the idle deadline. Rejects with `response_too_large` beyond the limit.
   */
  async readText(limitBytes: number): Promise<string> {
    const pieces: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const pulled = this.next();
      const piece = pulled instanceof Promise ? await pulled : pulled;
      if (piece === undefined) break;
      size += piece.byteLength;
      if (size > limitBytes) {
        this.abort();
        throw new UpstreamFailure(
          "response_too_large",
          `the answer is larger than ${limitBytes} bytes`,
          { sent: true },
        );
      }
      pieces.push(piece);
    }
    return Buffer.concat(pieces).toString("utf8");
  }

  /** Aborts: closes the upstream's connection and rejects a waiting reader with `aborted`. */
  abort(): void {
    if (this.ended || this.failure !== undefined) return;
    this.breakOff("aborted", "the request was abandoned");
  }

  onHead(head: ResponseHead): void {
    const { headers } = head;
    this.connection.noteKeepAlive(headers["keep-alive"]);
    this.status = head.status;
    this.headers = headers;
    const waiter = this.headWaiter;
    this.headWaiter = undefined;
    const encoding = headers["content-encoding"];
    waiter?.resolve(
      encoding === undefined || encoding === "identity" ? this : decodedResponse(this, encoding),
    );
  }

  /**
   * Collects the body chunks of one read of the socket into one piece: each is moved up to the one
   * before it, over the framing between them, so that events that arrive together are handled
   * together.
   */
  onBody(bytes: Buffer, start: number, end: number): void {
    if (start === end) return;
    this.queuedBytes += end - start;
    const last = this.pieces.at(-1);
    if (last?.bytes === bytes) {
      if (last.end !== start) bytes.copyWithin(last.end, start, end);
      last.end += end - start;
      return;
    }
    this.isAlive = true;
    if (!this.endExpected) this.extendIdle();
    this.pieces.push({ bytes, start, end });
  }

  onRead(): void {
    if (this.pieceWaiter !== undefined && this.pieces.length > 0) this.serveWaiter();
    else if (this.queuedBytes > queuedBytesHigh) this.connection.pause();
  }

  onEnd(): void {
    this.ended = true;
    this.watch.remove(this);
    this.serveWaiter();
  }

  onFailure(failure: UpstreamFailure): void {
    this.watch.remove(this);
    this.failure = failure;
    const waiter = this.headWaiter;
    this.headWaiter = undefined;
    if (waiter !== undefined && this.onStale !== undefined && this.isStale(failure))
      waiter.resolve(this.onStale());
    else waiter?.reject(failure);
    this.serveWaiter();
  }

  onDeadline(): void {
    const paused = this.queuedBytes > queuedBytesHigh;
    const nowMs = this.clock.monotonicMs();
    if (paused && nowMs < this.totalDeadlineMs) {
      // The reader is slow, not the upstream: the gateway itself caused the silence.
      this.extendIdle();
      this.watch.add(this);
      return;
    }
    const fault =
      nowMs >= this.totalDeadlineMs
        ? "total_timeout"
        : this.isAlive
          ? "idle_timeout"
          : "first_token_timeout";
    this.breakOff(fault, faultText[fault] ?? fault);
  }

  /**
   * Returns whether a kept connection was closed before it took the first byte of the request. A
   * request of which any byte was sent may have been executed, and a POST is not idempotent, so it
   * is never repeated (RFC 9110, 9.2.2).
   */
  private isStale({ fault, sent }: UpstreamFailure): boolean {
    return fault === "connection_closed" && !sent && !this.abortScope.clientGone;
  }

  /** Whether there is nothing to read yet. */
  private get isWaiting(): boolean {
    return this.pieces.length === 0 && this.failure === undefined && !this.ended;
  }

  /** Gives a waiting reader what has arrived: a piece, the end, or the failure. */
  private serveWaiter(): void {
    const waiter = this.pieceWaiter;
    if (waiter === undefined) return;
    this.pieceWaiter = undefined;
    const piece = this.takePiece();
    if (piece === undefined && this.failure !== undefined) waiter.reject(this.failure);
    else waiter.resolve(piece && viewOf(piece));
  }

  private takePiece(): Piece | undefined {
    const piece = this.pieces.shift();
    if (piece === undefined) return undefined;
    this.queuedBytes -= piece.end - piece.start;
    if (this.queuedBytes < queuedBytesLow && !this.ended) this.connection.resume();
    return piece;
  }

  private extendIdle(): void {
    this.deadlineMs = Math.min(
      this.totalDeadlineMs,
      this.clock.monotonicMs() + this.timeouts.idleMs,
    );
  }

  private breakOff(fault: TransportFault, message: string): void {
    this.connection.destroy();
    this.onFailure(new UpstreamFailure(fault, message, { sent: true }));
  }
}
