import { setImmediate } from "node:timers/promises";
import type { StoredContent } from "../../../platform/spool/spool.ts";
import { WindowedBytes } from "../media/windowed-bytes.ts";
import { behindTags, mpegMs } from "./lengths/mpeg-length.ts";
import { oggMs } from "./lengths/ogg-length.ts";
import { wavMs } from "./lengths/wav-length.ts";
import { webmMs } from "./lengths/webm-length.ts";

/** The length of a sound in milliseconds. */
export interface SoundLength {
  /** What is held for: its container's, as far as its bytes can bear that. */
  heldMs: number;
  /** The most that its bytes can hold, beyond which no count is believed. */
  mostMs: number;
  /** Whether the container tells its length; absent where it does not. */
  isKnown?: true;
}

/** Bytes of a second at the lowest bit rate of speech codecs, and at the highest of any sound. */
const bytesPerSecondMin = 600;
const bytesPerSecondMax = 1_250_000;

/**
 * Reads how long a sound is. A container that lies is bounded by its bytes: uncompressed sound is
 * as long as they are, and compressed sound within the bit rates that are possible.
 */
export async function soundLength(
  content: StoredContent,
  { filename, type }: { filename: string; type: string | undefined },
): Promise<SoundLength> {
  const pcmMs = await wavMs(content);
  if (pcmMs !== undefined) return { heldMs: pcmMs, mostMs: pcmMs, isKnown: true };
  const mostMs = Math.ceil((content.size * 1_000) / bytesPerSecondMin);
  const measuredMs = (await hasContainer(content))
    ? ((await oggMs(content)) ??
      (await containerMs(content, { filename, type })) ??
      (await webmMs(content)))
    : await mpegMs(content);
  if (measuredMs === undefined) return { heldMs: mostMs, mostMs };
  const leastMs = Math.ceil((content.size * 1_000) / bytesPerSecondMax);
  return { heldMs: Math.min(mostMs, Math.max(measuredMs, leastMs)), mostMs, isKnown: true };
}

/** The first bytes of containers: MP4 has them behind a length, and FLAC sometimes behind a tag. */
const containers =
  /^(?:OggS|fLaC|RIFF|RF64|FORM|wvPk|\x1aE\xdf\xa3|0&\xb2u|.{4}(?:ftyp|moov|mdat|free|skip|wide))/s;

/** Returns whether a file has a container, which is read by the package alone. */
async function hasContainer(content: StoredContent): Promise<boolean> {
  const head = Buffer.from(await content.read(0, 16)).toString("latin1");
  if (!head.startsWith("ID3")) return containers.test(head);
  const sound = await behindTags(new WindowedBytes(content));
  return containers.test(Buffer.from(await content.read(sound, 16)).toString("latin1"));
}

/** Returns the length that a container tells; undefined where it cannot be read. */
async function containerMs(
  content: StoredContent,
  { filename, type }: { filename: string; type: string | undefined },
): Promise<number | undefined> {
  const { parseFromTokenizer } = await import("music-metadata");
  const tokenizer = new StoredTokenizer(content, {
    path: filename,
    ...(type !== undefined && { mimeType: type }),
    size: content.size,
  });
  try {
    const { format } = await parseFromTokenizer(tokenizer, { skipCovers: true });
    const { duration } = format;
    return duration !== undefined && duration > 0 ? Math.ceil(duration * 1_000) : undefined;
  } catch {
    return undefined;
  }
}

interface ReadOptions {
  position?: number;
  length?: number;
  mayBeLess?: boolean;
}

interface Token<Value> {
  len: number;
  get(bytes: Uint8Array, offset: number): Value;
}

/** Thrown where a file ends within what is read of it. */
class EndOfSound extends Error {
  constructor() {
    super("End-Of-Stream");
  }
}

/** The reads of a parser after which other requests have their turn. */
const readsAtOnce = 1_000;

/** The most reads of a file: pages of Ogg have a few kilobytes, and are read three times each. */
const readsOf = (size: number): number => Math.min(400_000, 2_000 + size / 256);

/** Lets the parser read a stored file in small pieces, so that none of them is in memory whole. */
class StoredTokenizer {
  position = 0;
  private reads = 0;

  constructor(
    private readonly content: StoredContent,
    readonly fileInfo: { path: string; mimeType?: string; size: number },
  ) {}

  supportsRandomAccess(): boolean {
    return true;
  }

  setPosition(position: number): void {
    this.position = position;
  }

  async peekBuffer(target: Uint8Array, options: ReadOptions = {}): Promise<number> {
    this.reads += 1;
    // A file can be made of pieces that a parser takes minutes for.
    if (this.reads > readsOf(this.content.size)) throw new EndOfSound();
    if (this.reads % readsAtOnce === 0) await setImmediate();
    const { position = this.position, length = target.length, mayBeLess = false } = options;
    const bytes = await this.content.read(position, length);
    if (bytes.byteLength < length && !mayBeLess) throw new EndOfSound();
    target.set(bytes);
    return bytes.byteLength;
  }

  async readBuffer(target: Uint8Array, options: ReadOptions = {}): Promise<number> {
    if (options.position !== undefined) this.position = options.position;
    const read = await this.peekBuffer(target, options);
    this.position += read;
    return read;
  }

  async peekToken<Value>(token: Token<Value>, position = this.position): Promise<Value> {
    // The size of a token may be that of a table, which the file need not have.
    if (token.len > this.content.size) throw new EndOfSound();
    const bytes = new Uint8Array(token.len);
    await this.peekBuffer(bytes, { position });
    return token.get(bytes, 0);
  }

  async readToken<Value>(token: Token<Value>, position = this.position): Promise<Value> {
    const value = await this.peekToken(token, position);
    this.position = position + token.len;
    return value;
  }

  peekNumber(token: Token<number>): Promise<number> {
    return this.peekToken(token);
  }

  readNumber(token: Token<number>): Promise<number> {
    return this.readToken(token);
  }

  async ignore(length: number): Promise<number> {
    const skipped = Math.min(length, Math.max(0, this.content.size - this.position));
    this.position += skipped;
    return skipped;
  }

  async close(): Promise<void> {}

  async abort(): Promise<void> {}
}
