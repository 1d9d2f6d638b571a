import { ChunkedDecoder } from "./chunked-decoder.ts";
import { HttpFault } from "./http-fault.ts";
import type { RequestHead } from "./request-head.ts";

/** Bytes that may wait for a reader before the client is made to wait. */
const waitingBytesMax = 256 * 1024;

/** Bytes of a body within the buffer that they came in; a view of them is made only where one is needed. */
interface Piece {
  bytes: Buffer;
  start: number;
  end: number;
}

const viewOf = ({ bytes, start, end }: Piece): Buffer => (start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end));

/** What a body asks of its connection. */
export interface BodyConnection {
  /** The client is to wait, or to go on. */
  setPaused(paused: boolean): void;
  /** Somebody begins to read: a client that asked whether it may send the body is told so. */
  onReading(): void;
}

/** How long a body is, or that it comes in chunks. Throws `HttpFault` for what could be understood in two ways (RFC 9112, 6.3). */
export function bodyLengthOf({ headers }: RequestHead): number | "chunked" {
  const encoding = headers.get("transfer-encoding");
  const length = headers.get("content-length");
  if (encoding !== null) {
    if (length !== null) throw new HttpFault(400, "The request has both content-length and transfer-encoding.");
    if (encoding.toLowerCase() !== "chunked") throw new HttpFault(501, `transfer-encoding ${encoding} is not known here.`);
    return "chunked";
  }
  if (length === null) return 0;
  if (!/^\d{1,15}$/.test(length)) throw new HttpFault(400, "content-length is no number.");
  return Number(length);
}

/** A body on its way: what has come waits for its reader, and is dropped once nobody will read it. */
export class IncomingBody implements AsyncIterable<Uint8Array> {
  complete = false;
  private readonly connection: BodyConnection;
  private readonly chunks: ChunkedDecoder | undefined;
  private left: number;
  private pieces: Piece[] = [];
  private waitingBytes = 0;
  private gathers = false;
  private discarded = false;
  private failure: Error | undefined;
  private wake: (() => void) | undefined;

  constructor(length: number | "chunked", connection: BodyConnection) {
    this.connection = connection;
    this.chunks = length === "chunked" ? new ChunkedDecoder() : undefined;
    this.left = length === "chunked" ? 0 : length;
    this.complete = length === 0;
  }

  /** Takes what belongs to the body and tells where it ends. Throws `HttpFault` for a chunk that is none. */
  push(bytes: Buffer, from: number): number {
    const next = this.chunks === undefined ? this.pushCounted(bytes, from) : this.pushChunked(this.chunks, bytes, from);
    if (!this.gathers && !this.discarded && !this.complete && this.waitingBytes > waitingBytesMax) this.connection.setPaused(true);
    if (next > from || this.complete) this.tell();
    return next;
  }

  /** The whole body in one piece. Rejects where the client left before it was complete. */
  async bytes(): Promise<Buffer<ArrayBuffer>> {
    this.gathers = true;
    while (!this.complete) await this.more();
    const views = this.pieces.map(viewOf);
    this.pieces = [];
    return views.length === 1 ? views[0] as Buffer<ArrayBuffer> : Buffer.concat(views);
  }

  /** The body as text where it is here already and nothing has to be waited for. */
  readyText(): string | undefined {
    if (!this.complete || this.pieces.length !== 1) return undefined;
    const [{ bytes, start, end }] = this.pieces as [Piece];
    this.pieces = [];
    return bytes.toString("utf8", start, end);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const piece = this.pieces.shift();
        if (piece !== undefined) {
          this.waitingBytes -= piece.end - piece.start;
          yield viewOf(piece);
        } else if (this.complete) return;
        else await this.more();
      }
    } finally {
      this.discard();
    }
  }

  /** Nobody will read it: what has come is dropped, and so is what is still to come. */
  discard(): void {
    this.discarded = true;
    this.pieces = [];
    this.connection.setPaused(false);
  }

  /** The client left, or what it sent is no body. */
  fail(failure: Error): void {
    if (this.complete) return;
    this.failure = failure;
    this.tell();
  }

  private more(): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    this.connection.onReading();
    this.connection.setPaused(false);
    return new Promise((resolve, reject) => {
      this.wake = () => (this.failure === undefined ? resolve() : reject(this.failure));
    });
  }

  private tell(): void {
    const { wake } = this;
    this.wake = undefined;
    wake?.();
  }

  private pushChunked(chunks: ChunkedDecoder, bytes: Buffer, from: number): number {
    const next = chunks.push(bytes, from, (start, end) => this.keep(bytes, start, end));
    this.complete = chunks.complete;
    return next;
  }

  private pushCounted(bytes: Buffer, from: number): number {
    const end = Math.min(bytes.length, from + this.left);
    this.left -= end - from;
    if (end > from) this.keep(bytes, from, end);
    if (this.left === 0) this.complete = true;
    return end;
  }

  private keep(bytes: Buffer, start: number, end: number): void {
    if (this.discarded) return;
    this.pieces.push({ bytes, start, end });
    this.waitingBytes += end - start;
  }
}
