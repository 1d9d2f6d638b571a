import type { StoredContent } from "../../../platform/spool/spool.ts";

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

/** The bytes in which the header of a WAV file is looked for. */
const headBytes = 4_096;

/**
 * Reads how long a sound is. A container that lies is bounded by its bytes: uncompressed sound is
 * as long as they are, and compressed sound within the bit rates that are possible.
 */
export async function soundLength(
  content: StoredContent,
  { filename, type }: { filename: string; type: string | undefined },
): Promise<SoundLength> {
  const head = await content.read(0, headBytes);
  const pcmMs = wavMs(Buffer.from(head), content.size);
  if (pcmMs !== undefined) return { heldMs: pcmMs, mostMs: pcmMs, isKnown: true };
  const mostMs = Math.ceil((content.size * 1_000) / bytesPerSecondMin);
  const toldMs = await containerMs(content, { filename, type });
  if (toldMs === undefined) return { heldMs: mostMs, mostMs };
  const leastMs = Math.ceil((content.size * 1_000) / bytesPerSecondMax);
  return { heldMs: Math.min(mostMs, Math.max(toldMs, leastMs)), mostMs, isKnown: true };
}

/** Returns the length of an uncompressed WAV by its bytes; undefined for anything else. */
function wavMs(head: Buffer, size: number): number | undefined {
  if (head.toString("latin1", 0, 4) !== "RIFF" || head.toString("latin1", 8, 12) !== "WAVE")
    return undefined;
  let bytesPerSecond = 0;
  for (let at = 12; at + 8 <= head.length; ) {
    const name = head.toString("latin1", at, at + 4);
    const length = head.readUInt32LE(at + 4);
    if (name === "fmt " && at + 20 <= head.length) {
      // Formats other than samples (1), floats (3) and extended ones are compressed.
      if (![1, 3, 0xfffe].includes(head.readUInt16LE(at + 8))) return undefined;
      bytesPerSecond = wavRate(head, at);
    }
    if (name === "data")
      return bytesPerSecond === 0
        ? undefined
        : Math.ceil(((size - at - 8) * 1_000) / bytesPerSecond);
    at += 8 + length + (length % 2);
  }
  return undefined;
}

/**
 * Returns the bytes of a second of a WAV. Its header names them twice, and readers do not agree on
 * which they believe, so the smaller counts: it makes the sound longer.
 */
function wavRate(head: Buffer, at: number): number {
  const declared = head.readUInt32LE(at + 16);
  if (at + 24 > head.length) return declared;
  const [channels, samples, bits] = [
    head.readUInt16LE(at + 10),
    head.readUInt32LE(at + 12),
    head.readUInt16LE(at + 22),
  ];
  const counted = channels * samples * Math.ceil(bits / 8);
  return declared === 0 || counted === 0
    ? Math.max(declared, counted)
    : Math.min(declared, counted);
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

/** Lets the parser read a stored file in small pieces, so that none of them is in memory whole. */
class StoredTokenizer {
  position = 0;
  readonly fileInfo: { path: string; mimeType?: string; size: number };
  private readonly content: StoredContent;

  constructor(content: StoredContent, fileInfo: StoredTokenizer["fileInfo"]) {
    this.content = content;
    this.fileInfo = fileInfo;
  }

  supportsRandomAccess(): boolean {
    return true;
  }

  setPosition(position: number): void {
    this.position = position;
  }

  async peekBuffer(target: Uint8Array, options: ReadOptions = {}): Promise<number> {
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
