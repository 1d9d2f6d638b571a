import { randomUUID } from "node:crypto";
import { writeSync } from "node:fs";
import { mkdir, open, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../kernel/clock.ts";
import { GatewayError } from "../kernel/errors.ts";
import { ThreadTime } from "./thread-time.ts";

/** Bytes of one content that are kept in memory; all of a longer one is in a file. */
const memoryBytesMax = 1024 * 1024;
/** Bytes of all contents that are kept in memory; beyond it, contents are in files from the start. */
const memoryBytesOfAll = 16 * 1024 * 1024;

/** Milliseconds over which the waits for writes are summed, and the sum from which storage is slow. */
const windowMs = 1_000;
const slowMs = 250;
/** Milliseconds for which it then counts as slow. */
const slowForMs = 2_000;
/** The most writes to slow storage on threads. Further ones keep the process waiting, and nothing piles up. */
const threadsMax = 8;
/** Milliseconds for which an upload waits for room before it is refused. */
const roomWaitMs = 60_000;
/**
 * The most bytes that the platform keeps of uploads that wait for room, and of one of them. Further
 * ones are refused at once.
 */
const waitingBytesMax = 160 * 1024 * 1024;
const waitingBytesOfOne = 1.25 * 1024 * 1024;

const full = (bytesMax: number): GatewayError =>
  new GatewayError(
    "service_unavailable",
    "The gateway holds as many bytes of uploads as it may. Send the request again shortly, or make it smaller.",
    { retryAfterSeconds: 5, metadata: { reason: "spool", limit_bytes: bytesMax } },
  );

const left = (): GatewayError =>
  new GatewayError("client_closed_request", "The client left before its request was complete.");

/** Builds the refusal of an upload whose bytes the storage did not take. */
const unwritable = (cause: unknown): GatewayError =>
  new GatewayError(
    "service_unavailable",
    "The gateway could not store the upload. Send the request again shortly.",
    { cause, retryAfterSeconds: 30, metadata: { reason: "spool_storage" } },
  );

/**
 * The place for contents that are too large for memory while a request is served. Their files have
 * no name from the moment on at which they were opened, so that the system frees them with the
 * process, however that ends.
 */
export class Spool {
  usedBytes = 0;
  /** Bytes of contents that are in memory. */
  memoryBytes = 0;
  readonly bytesMax: number;
  private readonly directory: string;
  private made: Promise<unknown> | undefined;
  private slowUntilMs = 0;
  private windowEndsMs = 0;
  private writtenForMs = 0;
  private threadTime: ThreadTime | undefined;
  /** The time for which the thread had been ready to run when the window began. */
  private readyBeforeMs = 0;
  private threadWrites = 0;
  private waitingBytes = 0;
  /** Uploads that wait for room, in the order in which they came. */
  private readonly waiting: Waiting[] = [];

  constructor({ directory, bytesMax }: { directory: string; bytesMax: number }) {
    this.directory = directory;
    this.bytesMax = bytesMax;
  }

  /** Returns a content without bytes, which has to be closed. */
  open(room?: SpoolRoom): SpooledContent {
    return new SpooledContent(this, room);
  }

  /**
   * Waits for room for the bytes of an upload, so that hundreds at once come one after another where
   * they do not fit together. Throws `service_unavailable` where they never fit, too many wait, or no
   * room was left within a minute. The wait ends as well when the client leaves.
   */
  async room(bytes: number, client?: Client): Promise<SpoolRoom> {
    if (bytes > this.bytesMax) throw full(this.bytesMax);
    if (this.waiting.length === 0 && this.usedBytes + bytes <= this.bytesMax)
      this.usedBytes += bytes;
    else await this.waitFor(bytes, client);
    return new SpoolRoom(this, bytes);
  }

  private waitFor(bytes: number, client?: Client): Promise<void> {
    const signal = client?.signal;
    if (signal?.aborted === true) throw left();
    // Those that do not say their length may be long.
    const kept = bytes === 0 ? waitingBytesOfOne : Math.min(bytes, waitingBytesOfOne);
    if (this.waitingBytes + kept > waitingBytesMax) throw full(this.bytesMax);
    this.waitingBytes += kept;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { bytes, resolve };
    this.waiting.push(waiting);
    const giveUp = (error: GatewayError): void => {
      const at = this.waiting.indexOf(waiting);
      if (at < 0) return;
      this.waiting.splice(at, 1);
      reject(error);
      this.admit();
    };
    const leave = (): void => giveUp(left());
    const timer = setTimeout(() => giveUp(full(this.bytesMax)), roomWaitMs);
    signal?.addEventListener("abort", leave);
    return promise.finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", leave);
      this.waitingBytes -= kept;
    });
  }

  private admit(): void {
    for (let next = this.waiting[0]; next !== undefined; next = this.waiting[0]) {
      if (this.usedBytes + next.bytes > this.bytesMax) return;
      this.usedBytes += next.bytes;
      this.waiting.shift();
      next.resolve();
    }
  }

  /** Stores the pieces of a content, in room that was taken for it. Where they fail, nothing is left. */
  async store(pieces: AsyncIterable<Uint8Array>, room?: SpoolRoom): Promise<SpooledContent> {
    const content = this.open(room);
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

  /** Gives bytes back. */
  free(bytes: number): void {
    this.usedBytes -= bytes;
    this.admit();
  }

  /**
   * Whether a write may wait for the storage, so that the senders of uploads have to. Otherwise
   * bytes are written in the turn of the event loop in which they come, and none of them pile up.
   */
  get isSlow(): boolean {
    return systemClock.livedMs() < this.slowUntilMs;
  }

  /** Returns whether that many bytes of a content may be in memory. */
  hasMemory(bytes: number): boolean {
    return bytes <= memoryBytesMax && this.memoryBytes + bytes <= memoryBytesOfAll;
  }

  /**
   * Writes bytes of a file: at once where the system takes them, or else on a thread. Throws
   * `service_unavailable` where the storage does not take them, such as a full one.
   */
  async write(handle: FileHandle, bytes: Uint8Array, start: number): Promise<void> {
    try {
      await this.writeBytes(handle, bytes, start);
    } catch (error) {
      throw unwritable(error);
    }
  }

  private async writeBytes(handle: FileHandle, bytes: Uint8Array, start: number): Promise<void> {
    const startedMs = systemClock.livedMs();
    if (startedMs < this.slowUntilMs && this.threadWrites < threadsMax)
      return this.writeOnThread(handle, bytes, start);
    const time = this.windowAt(startedMs);
    for (let written = 0; written < bytes.byteLength; )
      written += writeSync(handle.fd, bytes, written, bytes.byteLength - written, start + written);
    this.noteTime(time, { startedMs, endedMs: systemClock.livedMs() });
  }

  private async writeOnThread(
    ...[handle, bytes, start]: Parameters<typeof writeAt>
  ): Promise<void> {
    this.threadWrites += 1;
    try {
      await writeAt(handle, bytes, start);
    } finally {
      this.threadWrites -= 1;
    }
  }

  /** Begins another window where the last one is over. */
  private windowAt(nowMs: number): ThreadTime {
    const time = (this.threadTime ??= new ThreadTime());
    if (nowMs < this.windowEndsMs) return time;
    this.windowEndsMs = nowMs + windowMs;
    this.writtenForMs = 0;
    this.readyBeforeMs = time.readyMs();
    return time;
  }

  /**
   * Notes the time of a write. Storage is slow where this thread slept for its writes: the time in
   * which it ran, or waited for a processor, says nothing about storage.
   */
  private noteTime(
    time: ThreadTime,
    { startedMs, endedMs }: { startedMs: number; endedMs: number },
  ): void {
    this.writtenForMs += endedMs - startedMs;
    if (this.writtenForMs <= slowMs) return;
    const sleptMs = this.writtenForMs - (time.readyMs() - this.readyBeforeMs);
    if (sleptMs > slowMs) this.slowUntilMs = endedMs + slowForMs;
  }

  /** Opens a file that has no name any more. Throws `service_unavailable` where there is none. */
  async file(): Promise<FileHandle> {
    try {
      this.made ??= mkdir(this.directory, { recursive: true, mode: 0o700 });
      await this.made;
      const path = join(this.directory, randomUUID());
      const handle = await open(path, "wx+", 0o600);
      await unlink(path);
      return handle;
    } catch (error) {
      // The directory may be gone, or come back.
      this.made = undefined;
      throw unwritable(error);
    }
  }
}

/** The sender of an upload, whose signal says that it has left. It is read only where it is needed. */
interface Client {
  readonly signal: AbortSignal;
}

/** An upload that waits for room. */
interface Waiting {
  bytes: number;
  resolve(): void;
}

/** Room that was taken for an upload before it came. */
class SpoolRoom {
  private bytesLeft: number;

  constructor(
    private readonly spool: Spool,
    bytes: number,
  ) {
    this.bytesLeft = bytes;
  }

  /** Uses bytes of the room, and more of the spool where it is too small. */
  take(bytes: number): void {
    const within = Math.min(bytes, this.bytesLeft);
    if (bytes > within) this.spool.take(bytes - within);
    this.bytesLeft -= within;
  }

  /** Gives back what was not used. */
  close(): void {
    this.spool.free(this.bytesLeft);
    this.bytesLeft = 0;
  }
}

/** A content in memory or, where it is long, in a file. It is written once and then read. */
class SpooledContent implements StoredContent {
  size = 0;
  private pieces: Uint8Array<ArrayBuffer>[] = [];
  /** Bytes of the pieces. */
  private memoryBytes = 0;
  private handle: FileHandle | undefined;
  private isClosed = false;
  private readonly room: SpoolRoom | undefined;

  constructor(
    private readonly spool: Spool,
    room?: SpoolRoom,
  ) {
    this.room = room;
  }

  /** Adds bytes at the end. Throws `service_unavailable` where the spool is full. */
  async write(piece: Uint8Array): Promise<void> {
    (this.room ?? this.spool).take(piece.byteLength);
    const start = this.size;
    this.size += piece.byteLength;
    if (this.handle === undefined && this.spool.hasMemory(this.size)) {
      // A copy, since the piece may be a view of a buffer that its reader uses again.
      this.pieces.push(Uint8Array.from(piece));
      this.memoryBytes += piece.byteLength;
      this.spool.memoryBytes += piece.byteLength;
      return;
    }
    const handle = this.handle ?? (await this.moved());
    await this.spool.write(handle, piece, start);
  }

  /** Moves what is in memory to a file. */
  private async moved(): Promise<FileHandle> {
    const handle = (this.handle = await this.spool.file());
    let at = 0;
    for (const kept of this.pieces) {
      await this.spool.write(handle, kept, at);
      at += kept.byteLength;
      // Freed at once: hundreds of uploads would leave hundreds of megabytes of garbage.
      kept.buffer.transfer(0);
    }
    this.freeMemory();
    return handle;
  }

  private freeMemory(): void {
    this.pieces = [];
    this.spool.memoryBytes -= this.memoryBytes;
    this.memoryBytes = 0;
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
    this.spool.free(this.size);
    this.freeMemory();
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

export type { SpooledContent };
