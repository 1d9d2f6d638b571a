import type { Clock } from "../../platform/kernel/clock.ts";
import { type Passing, PassingSet } from "../../platform/kernel/passing.ts";
import type { Connection, ExchangeListener, WireRequest } from "./connection.ts";
import { decodedResponse, type ResponseHead } from "./response-parser.ts";
import type { ExchangeTie } from "./abort-scope.ts";
import { UpstreamFailure, type TransportFault } from "./upstream-failure.ts";

/** Bounds on one exchange, in milliseconds. */
export interface ExchangeTimeouts {
  /** Until the first content; heartbeats do not count. */
  firstTokenMs: number;
  /** Between two pieces of the answer once content flows. */
  idleMs: number;
  /** From sending to the last byte. */
  totalMs: number;
}

/** Bytes of an answer that may wait for a slow reader before the upstream is made to wait. */
const queuedBytesHigh = 256 * 1024;
const queuedBytesLow = 64 * 1024;

/**
 * How long an answer that has finished may take to report its usage and to end, in milliseconds.
 */
const endGraceMs = 10_000;

const faultText: Partial<Record<TransportFault, string>> = {
  first_token_timeout: "the upstream sent no content in time",
  idle_timeout: "the upstream went silent in the middle of its answer",
  total_timeout: "the upstream took too long to finish its answer",
};

/**
 * Bytes of a body within the buffer that they came in; a view of them is made only where one is
 * needed.
 */
interface Piece {
  bytes: Buffer;
  start: number;
  end: number;
}

const viewOf = ({ bytes, start, end }: Piece): Uint8Array =>
  start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);

interface Waiter<T> {
  resolve(value: T): void;
  reject(failure: UpstreamFailure): void;
}

/** Receives the next bytes of a body, its end, or the failure that ended it. */
export type PieceReader = Waiter<Uint8Array | undefined>;

/** What an exchange does with the connection that it has to itself. */
export type ExchangeConnection = Pick<
  Connection,
  "send" | "pause" | "resume" | "destroy" | "noteKeepAlive"
>;

/** What an exchange is made of. */
interface ExchangeOptions {
  connection: ExchangeConnection;
  watch: DeadlineWatch;
  clock: Clock;
  timeouts: ExchangeTimeouts;
  abortScope: ExchangeTie;
  /**
   * Sends the request on another connection where this one, a kept one, turns out to have been
   * closed before it took a byte.
   */
  onStale?: (() => Promise<UpstreamResponse>) | undefined;
}

const noHeaders: ResponseHead["headers"] = {};

/**
 * One request and its answer, which it is itself once its head has come: the body as chunks that
 * are pulled, with backpressure to the upstream's socket and three deadlines. Aborting closes the
 * upstream connection at once.
 */
export class Exchange implements ExchangeListener, Watched, UpstreamResponse {
  deadlineMs: number;
  place = -1;
  addedAtSweep = 0;
  /** Status of the answer; 0 until its head has come. */
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
  private contentSeen = false;
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

  /** Sends the request; settles with the answer once its head has come, or with the failure. */
  start(wire: WireRequest): Promise<UpstreamResponse> {
    return new Promise((resolve, reject) => {
      this.headWaiter = { resolve, reject };
      this.connection.send(wire, this);
    });
  }

  /** Waiting has lasted, so from now on the client is listened to. */
  onLasting(): void {
    this.abortScope.listen();
  }

  /** Content was seen: from now on silence is measured between chunks. */
  markContent(): void {
    this.contentSeen = true;
    this.endExpected = false;
    this.extendIdle();
  }

  /** Everything was said: the answer has to end soon; heartbeats do not prolong it. */
  expectEnd(): void {
    this.contentSeen = true;
    this.endExpected = true;
    this.deadlineMs = Math.min(
      this.totalDeadlineMs,
      this.clock.monotonicMs() + Math.min(endGraceMs, this.timeouts.idleMs),
    );
  }

  /**
   * The next bytes of the body, without a promise where they are here already; undefined at its
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
   * The whole body as text (UTF-8) where it came in one piece that is here already, as usual
   * answers do.
   */
  takeText(limitBytes: number): string | undefined {
    if (!this.ended || this.pieces.length !== 1 || this.queuedBytes > limitBytes) return undefined;
    const [{ bytes, start, end }] = this.pieces as [Piece];
    this.pieces.length = 0;
    this.queuedBytes = 0;
    return bytes.toString("utf8", start, end);
  }

  /**
   * The whole body as text (UTF-8), which from its first byte on may not fall silent for longer
   * than the idle timeout. Rejects with `response_too_large` beyond the limit.
   */
  async readText(limitBytes: number): Promise<string> {
    const pieces: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const pulled = this.next();
      const piece = pulled instanceof Promise ? await pulled : pulled;
      if (piece === undefined) break;
      if (size === 0) this.markContent();
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

  /** Gives up: the upstream's connection is closed and a waiting reader gets `aborted`. */
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
   * Chunks of a chunked body that came in one reading are one piece: each is moved up to the one
   * before it, over the framing between them. A stream whose events come at once is then worked on
   * at once, and not event by event.
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
    if (this.contentSeen && !this.endExpected) this.extendIdle();
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
      // The reader is slow, not the upstream: its silence is of our own making.
      this.extendIdle();
      this.watch.add(this);
      return;
    }
    const fault =
      nowMs >= this.totalDeadlineMs
        ? "total_timeout"
        : this.contentSeen
          ? "idle_timeout"
          : "first_token_timeout";
    this.breakOff(fault, faultText[fault] ?? fault);
  }

  /**
   * Whether a kept connection was closed before it took the first byte of the request. A request of
   * which anything went out may have been executed, and a POST is not idempotent, so it is never
   * repeated (RFC 9110, 9.2.2).
   */
  private isStale({ fault, sent }: UpstreamFailure): boolean {
    return fault === "connection_closed" && !sent && !this.abortScope.clientGone;
  }

  /** Whether there is nothing to be read yet. */
  private get isWaiting(): boolean {
    return this.pieces.length === 0 && this.failure === undefined && !this.ended;
  }

  /** Gives a waiting reader what is there: a piece, the end, or the failure. */
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

/** An answer whose body is still to be read; every answer has to be read to its end or aborted. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: ResponseHead["headers"];
  /**
   * The next piece of the decoded body; undefined at its end; rejects with an `UpstreamFailure`. A
   * piece that is here already comes without a promise, since streams ask for each event.
   */
  next(): Promise<Uint8Array | undefined> | Uint8Array | undefined;
  /**
   * Gives the next piece to a reader as soon as the socket has it, where `next` would promise it;
   * returns false where nothing has to be waited for.
   */
  tellNext?(reader: PieceReader): boolean;
  /**
   * The whole decoded body as text where it is all here already; undefined leaves everything to
   * `readText`.
   */
  takeText?(limitBytes: number): string | undefined;
  /** The whole decoded body as text; rejects with an `UpstreamFailure`. */
  readText(limitBytes: number): Promise<string>;
  /** Tells that content arrived: the idle timeout takes over from the first-token timeout. */
  markContent(): void;
  /** Tells that everything was said: the answer is given up unless it ends soon. */
  expectEnd(): void;
  abort(): void;
}

/** Something that must not wait beyond a moment of the monotonic clock. */
interface Watched extends Passing {
  deadlineMs: number;
  /** How many sweeps there had been when it was added. */
  addedAtSweep: number;
  onDeadline(): void;
  /** Told once when it has been watched for longer than a moment: forty to sixty milliseconds. */
  onLasting(): void;
}

const sweepIntervalMs = 20;
/** Sweeps that a moment lasts; a busy gateway has given most of its whole answers by then. */
const momentSweeps = 3;

/**
 * One timer for every exchange in flight instead of several timers for each: a sweep looks for
 * deadlines that have passed, so that moving a deadline (once per stream event) is one assignment.
 */
export class DeadlineWatch {
  private readonly watched = new PassingSet<Watched>();
  private sweeps = 0;
  private readonly clock: Clock;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  add(entry: Watched): void {
    entry.addedAtSweep = this.sweeps;
    this.watched.add(entry);
    this.timer ??= setInterval(this.sweep, sweepIntervalMs);
  }

  remove(entry: Watched): void {
    this.watched.delete(entry);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.watched.clear();
  }

  private readonly sweep = (): void => {
    if (this.watched.size === 0) return this.stop();
    this.sweeps += 1;
    const nowMs = this.clock.monotonicMs();
    this.watched.forEach((entry) => {
      if (this.sweeps - entry.addedAtSweep === momentSweeps) entry.onLasting();
      if (entry.place < 0 || entry.deadlineMs > nowMs) return;
      this.watched.delete(entry);
      entry.onDeadline();
    });
  };
}
