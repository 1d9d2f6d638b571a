import { setImmediate } from "node:timers/promises";
import type { StoredContent } from "../../../platform/spool/spool.ts";

/** The bytes that are read at once. */
const windowBytes = 64 * 1024;

/** The windows after which other requests have their turn: bytes in memory are there at once. */
const windowsAtOnce = 16;

/** Reads the bytes of a stored file by their positions, in windows, so that none is in memory whole. */
export class WindowedBytes {
  readonly size: number;
  private window: Buffer = Buffer.alloc(0);
  private start = 0;
  private loads = 0;

  constructor(private readonly content: StoredContent) {
    this.size = content.size;
  }

  /** The position behind the window. */
  get end(): number {
    return this.start + this.window.byteLength;
  }

  /** Returns whether bytes lie within the window, as far as the file has them. */
  has(at: number, count: number): boolean {
    return at >= this.start && Math.min(at + count, this.size) <= this.end;
  }

  /** Moves the window to a position, unless the next bytes are in it. */
  async load(at: number, count: number): Promise<void> {
    if (this.has(at, count)) return;
    this.loads += 1;
    if (this.loads % windowsAtOnce === 0) await setImmediate();
    const bytes = await this.content.read(at, windowBytes);
    this.window = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.start = at;
  }

  /** Returns a byte of the window; undefined beyond it. */
  at(position: number): number | undefined {
    return this.window[position - this.start];
  }

  /** Returns the position of the next such byte within the window; -1 where there is none. */
  find(byte: number, from: number): number {
    const found = this.window.indexOf(byte, from - this.start);
    return found < 0 ? -1 : this.start + found;
  }

  /** Returns the position of the last such bytes within the window; -1 where there are none. */
  findLast(bytes: Buffer): number {
    const found = this.window.lastIndexOf(bytes);
    return found < 0 ? -1 : this.start + found;
  }

  /** Returns up to `count` bytes of the window. */
  slice(at: number, count: number): Buffer {
    return this.window.subarray(at - this.start, at - this.start + count);
  }

  /** Returns a number of several bytes, the first of which counts most; 0 beyond the window. */
  number(at: number, bytes: number): number {
    let value = 0;
    for (let index = 0; index < bytes; index += 1) value = value * 256 + (this.at(at + index) ?? 0);
    return value;
  }
}
