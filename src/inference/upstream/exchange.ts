import type { Clock } from "../../platform/lib/clock.ts";
import type { Connection, ExchangeListener } from "./connection.ts";
import type { DeadlineWatch, Watched } from "./deadline-watch.ts";
import type { ResponseHead } from "./response-parser.ts";
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

/** How long an answer that has finished may take to report its usage and to end, in milliseconds. */
const endGraceMs = 10_000;

const faultText: Partial<Record<TransportFault, string>> = {
  first_token_timeout: "the upstream sent no content in time",
  idle_timeout: "the upstream went silent in the middle of its answer",
  total_timeout: "the upstream took too long to finish its answer",
};

interface Waiter<T> {
  resolve(value: T): void;
  reject(failure: UpstreamFailure): void;
}

/**
 * One request and its answer: head as a promise, body as chunks that are pulled, with backpressure to
 * the upstream's socket and three deadlines. Aborting closes the upstream connection at once.
 */
export class Exchange implements ExchangeListener, Watched {
  deadlineMs: number;
  private readonly connection: Connection;
  private readonly watch: DeadlineWatch;
  private readonly clock: Clock;
  private readonly timeouts: ExchangeTimeouts;
  private readonly totalDeadlineMs: number;
  readonly onLasting: () => void;
  private readonly chunks: Uint8Array[] = [];
  private queuedBytes = 0;
  private ended = false;
  private failure: UpstreamFailure | undefined;
  private contentSeen = false;
  private endExpected = false;
  private headWaiter: Waiter<ResponseHead> | undefined;
  private chunkWaiter: Waiter<Uint8Array | undefined> | undefined;

  constructor(options: { connection: Connection; watch: DeadlineWatch; clock: Clock; timeouts: ExchangeTimeouts; onLasting: () => void }) {
    this.connection = options.connection;
    this.watch = options.watch;
    this.clock = options.clock;
    this.timeouts = options.timeouts;
    this.onLasting = options.onLasting;
    const nowMs = this.clock.monotonicMs();
    this.totalDeadlineMs = nowMs + this.timeouts.totalMs;
    this.deadlineMs = Math.min(this.totalDeadlineMs, nowMs + this.timeouts.firstTokenMs);
    this.watch.add(this);
  }

  /** Sends the request; settles with the head, or with the failure. */
  start(wire: string | Uint8Array): Promise<ResponseHead> {
    return new Promise((resolve, reject) => {
      this.headWaiter = { resolve, reject };
      this.connection.send(wire, this);
    });
  }

  /** True while no byte of the answer has arrived. */
  get unanswered(): boolean {
    return !this.connection.hasResponded;
  }

  /** Content was seen: from now on silence is measured between chunks. */
  markContent(): void {
    this.contentSeen = true;
    this.endExpected = false;
    this.extendIdle();
  }

  /** Everything was said: the answer has to end soon, whatever heartbeats still come. */
  expectEnd(): void {
    this.contentSeen = true;
    this.endExpected = true;
    this.deadlineMs = Math.min(this.totalDeadlineMs, this.clock.monotonicMs() + Math.min(endGraceMs, this.timeouts.idleMs));
  }

  /** The next piece of the body; undefined at its end. Rejects with the failure that ended it. */
  next(): Promise<Uint8Array | undefined> | Uint8Array | undefined {
    const chunk = this.chunks.shift();
    if (chunk !== undefined) {
      this.queuedBytes -= chunk.byteLength;
      if (this.queuedBytes < queuedBytesLow && !this.ended) this.connection.resume();
      return chunk;
    }
    if (this.failure !== undefined) return Promise.reject(this.failure);
    if (this.ended) return undefined;
    return new Promise((resolve, reject) => {
      this.chunkWaiter = { resolve, reject };
    });
  }

  /** The whole body; rejects with `response_too_large` beyond the limit. */
  async readAll(limitBytes: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const pulled = this.next();
      const chunk = pulled instanceof Promise ? await pulled : pulled;
      if (chunk === undefined) break;
      size += chunk.byteLength;
      if (size > limitBytes) {
        this.abort();
        throw new UpstreamFailure("response_too_large", `the answer is larger than ${limitBytes} bytes`, { sent: true });
      }
      parts.push(chunk);
    }
    return parts.length === 1 ? parts[0] as Uint8Array : Buffer.concat(parts);
  }

  /** Gives up: the upstream's connection is closed and whoever waits hears `aborted`. */
  abort(): void {
    if (this.ended || this.failure !== undefined) return;
    this.breakOff("aborted", "the request was abandoned");
  }

  onHead(head: ResponseHead): void {
    this.connection.noteKeepAlive(head.headers["keep-alive"]);
    this.headWaiter?.resolve(head);
    this.headWaiter = undefined;
  }

  onBody(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    if (this.contentSeen && !this.endExpected) this.extendIdle();
    if (this.chunkWaiter !== undefined) {
      const waiter = this.chunkWaiter;
      this.chunkWaiter = undefined;
      waiter.resolve(bytes);
      return;
    }
    this.chunks.push(bytes);
    this.queuedBytes += bytes.byteLength;
    if (this.queuedBytes > queuedBytesHigh) this.connection.pause();
  }

  onEnd(): void {
    this.ended = true;
    this.watch.remove(this);
    this.chunkWaiter?.resolve(undefined);
    this.chunkWaiter = undefined;
  }

  onFailure(failure: UpstreamFailure): void {
    this.watch.remove(this);
    this.failure = failure;
    this.headWaiter?.reject(failure);
    this.headWaiter = undefined;
    this.chunkWaiter?.reject(failure);
    this.chunkWaiter = undefined;
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
    const fault = nowMs >= this.totalDeadlineMs ? "total_timeout" : this.contentSeen ? "idle_timeout" : "first_token_timeout";
    this.breakOff(fault, faultText[fault] ?? fault);
  }

  private extendIdle(): void {
    this.deadlineMs = Math.min(this.totalDeadlineMs, this.clock.monotonicMs() + this.timeouts.idleMs);
  }

  private breakOff(fault: TransportFault, message: string): void {
    this.connection.destroy();
    this.onFailure(new UpstreamFailure(fault, message, { sent: true }));
  }
}
