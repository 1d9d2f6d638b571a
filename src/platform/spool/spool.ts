import { randomUUID } from "node:crypto";
import { mkdir, open, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError } from "../kernel/errors.ts";

/** Bytes of one content that are kept in memory; all of a longer one is in a file. */
const memoryBytesMax = 1024 * 1024;

const full = (bytesMax: number): GatewayError =>
  new GatewayError(
    "service_unavailable",
    "The gateway holds as many bytes of uploads as it may. Send the request again shortly, or make it smaller.",
    { retryAfterSeconds: 5, metadata: { reason: "spool", limit_bytes: bytesMax } },
  );

/**
 * The place for contents that are too large for memory while a request is served. Their files have
 * no name from the moment on at which they were opened, so that the system frees them with the
 * process, however that ends.
 */
export class Spool {
  usedBytes = 0;
  readonly bytesMax: number;
  private readonly directory: string;
  private made: Promise<unknown> | undefined;

  constructor({ directory, bytesMax }: { directory: string; bytesMax: number }) {
    this.directory = directory;
    this.bytesMax = bytesMax;
  }

  /** Returns a content without bytes, which has to be closed. */
  open(): SpooledContent {
    return new SpooledContent(this);
  }

  /** Stores the pieces of a content. Where they fail, nothing of it is left. */
  async store(pieces: AsyncIterable<Uint8Array>): Promise<SpooledContent> {
    const content = this.open();
    try {
      for await (const piece of pieces) await content.write(piece);
      return content;
    } catch (error) {
      await content.close();
      throw error;
    }
  }

  /** Adds bytes to what is used. Throws `service_unavailable` where they do not fit. */
  take(bytes: number): void {
    if (this.usedBytes + bytes > this.bytesMax) throw full(this.bytesMax);
    this.usedBytes += bytes;
  }

  /** Opens a file that has no name any more. */
  async file(): Promise<FileHandle> {
    this.made ??= mkdir(this.directory, { recursive: true, mode: 0o700 });
    await this.made;
    const path = join(this.directory, randomUUID());
    const handle = await open(path, "wx+", 0o600);
    await unlink(path);
    return handle;
  }
}

/** A content in memory or, where it is long, in a file. It is written once and then read. */
export class SpooledContent implements StoredContent {
  size = 0;
  private readonly spool: Spool;
  private pieces: Uint8Array<ArrayBuffer>[] = [];
  private handle: FileHandle | undefined;
  private isClosed = false;

  constructor(spool: Spool) {
    this.spool = spool;
  }

  /** Adds bytes at the end. Throws `service_unavailable` where the spool is full. */
  async write(piece: Uint8Array): Promise<void> {
    this.spool.take(piece.byteLength);
    const start = this.size;
    this.size += piece.byteLength;
    if (this.handle === undefined && this.size <= memoryBytesMax) {
      // A copy, since the piece may be a view of a buffer that its reader uses again.
      this.pieces.push(Uint8Array.from(piece));
      return;
    }
    if (this.handle === undefined) {
      this.handle = await this.spool.file();
      let at = 0;
      for (const kept of this.pieces.splice(0)) {
        await writeAt(this.handle, kept, at);
        at += kept.byteLength;
        // Freed at once: hundreds of uploads would leave hundreds of megabytes of garbage.
        kept.buffer.transfer(0);
      }
    }
    await writeAt(this.handle, piece, start);
  }

  async read(start: number, length: number, target?: Buffer): Promise<Uint8Array> {
    const end = Math.min(this.size, start + length);
    if (this.handle === undefined) {
      if (this.pieces.length > 1) this.pieces = [Buffer.concat(this.pieces)];
      return this.pieces[0]?.subarray(start, end) ?? new Uint8Array();
    }
    const size = Math.max(0, end - start);
    const bytes = target?.subarray(0, size) ?? Buffer.allocUnsafe(size);
    let filled = 0;
    while (filled < bytes.byteLength) {
      const { bytesRead } = await this.handle.read(
        bytes,
        filled,
        bytes.byteLength - filled,
        start + filled,
      );
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  }

  /** Frees the bytes. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    this.spool.usedBytes -= this.size;
    this.pieces = [];
    await this.handle?.close();
  }
}

async function writeAt(handle: FileHandle, bytes: Uint8Array, start: number): Promise<void> {
  let written = 0;
  while (written < bytes.byteLength) {
    const { bytesWritten } = await handle.write(
      bytes,
      written,
      bytes.byteLength - written,
      start + written,
    );
    written += bytesWritten;
  }
}

/** Bytes that can be read any number of times, such as those of an upload. */
export interface StoredContent {
  readonly size: number;
  /**
   * Reads up to `length` bytes from a position; fewer only at the end. Bytes of a file are read into
   * `target` where one is given, which has that length at least.
   */
  read(start: number, length: number, target?: Buffer): Promise<Uint8Array>;
}

/** Bytes that are read at once. */
const pieceBytes = 256 * 1024;

/** Yields the bytes of a stored content in pieces. */
export async function* storedPieces(content: StoredContent): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < content.size; start += pieceBytes)
    yield await content.read(start, pieceBytes);
}
