import { type FramePiece, type Frames, wholeText } from "../../../platform/kernel/frame-source.ts";
import type { SseEvent } from "../../dialects/shared/stream/stream-relay.ts";
import type { LongBytes } from "../../upstream/sse-decoder.ts";
import { longBase64In } from "./long-base64.ts";

/** Characters from which base64 is set aside, which takes as long to parse as text. */
export const longCharacters = 64 * 1024;

/**
 * Matches the beginning of pictures and sound in events of any dialect: a data URL, or base64 under
 * one of the names that providers use.
 */
const opening =
  /"(?:data|result|partial_image_b64|b64_json)"\s*:\s*"|"url"\s*:\s*"data:[^",\\]*;base64,/g;

/** Begins each marker. It is random, so that no text of a provider contains it. */
const mark = `base64-${crypto.randomUUID()}-`;

/** An event, and whether base64 of it was set aside. */
interface Lightened {
  event: SseEvent;
  isLighter: boolean;
}

/** Base64 that was set aside. */
interface Aside {
  pieces: readonly FramePiece[];
  size: number;
  /** Whether it is kept after it was sent, since the stream may show it again. */
  isRepeated: boolean;
}

/** The most bytes that are kept after they were sent. Where they are shown again, older ones are empty. */
const repeatedBytesMax = 32 * 1024 * 1024;

/**
 * Keeps the base64 of pictures and sound out of the reading and writing of one stream whose bytes
 * are kept. A marker is in its place until the frames are sent, so that megabytes are neither
 * parsed nor scanned nor copied again. Base64 is let go once it was sent.
 */
export class BytesAside implements LongBytes {
  /** Bytes that are kept. */
  size = 0;
  private readonly kept = new Map<number, Aside>();
  /** The numbers of what is kept although it was sent. */
  private readonly sent: number[] = [];
  private sentBytes = 0;
  private count = 0;

  get isEmpty(): boolean {
    return this.count === 0;
  }

  textWithout(pieces: readonly Uint8Array[]): string | undefined {
    const long = longBase64In(pieces, longCharacters);
    if (long.length === 0) return undefined;
    let text = "";
    for (const { before, base64 } of long) {
      text += before;
      if (base64.length > 0) text += this.markerOf(base64);
    }
    return text;
  }

  /** Returns the event without its long base64; the same where it has none. */
  take(event: SseEvent): Lightened {
    const { data } = event;
    if (data.length < longCharacters) return { event, isLighter: data.includes(mark) };
    let lighter = "";
    let from = 0;
    opening.lastIndex = 0;
    while (opening.test(data)) {
      const start = opening.lastIndex;
      const end = data.indexOf('"', start);
      if (end < 0) break;
      opening.lastIndex = end;
      if (end - start < longCharacters) continue;
      const bytes = data.slice(start, end);
      // A string with escapes or spaces is no base64.
      if (bytes.includes("\\") || bytes.includes(" ")) continue;
      lighter += data.slice(from, start) + this.markerOf([bytes]);
      from = end;
    }
    if (from === 0) return { event, isLighter: data.includes(mark) };
    return { event: { ...event, data: lighter + data.slice(from) }, isLighter: true };
  }

  /** Keeps the base64 of an event until the stream ends, since it may be shown again. */
  keep({ data }: SseEvent): void {
    for (const { number } of markersIn(data)) {
      const aside = this.kept.get(number);
      if (aside !== undefined) aside.isRepeated = true;
    }
  }

  /**
   * Returns frames with the base64 that was set aside from them, which is let go. The same text
   * where there is none.
   */
  restore(frames: string): Frames {
    const pieces = this.piecesOf(frames);
    if (pieces === undefined) return frames;
    for (const { number } of markersIn(frames)) this.noteSent(number);
    return pieces;
  }

  /** Returns the same as one text, and lets nothing go. */
  textOf(frames: string): string {
    return wholeText(this.piecesOf(frames) ?? frames);
  }

  private markerOf(pieces: readonly FramePiece[]): string {
    this.count += 1;
    const size = pieces.reduce((sum, { length }) => sum + length, 0);
    this.size += size;
    this.kept.set(this.count, { pieces, size, isRepeated: false });
    return `${mark}${this.count}.`;
  }

  private noteSent(number: number): void {
    const aside = this.kept.get(number);
    if (aside?.isRepeated !== true) return this.free(number);
    if (this.sent.includes(number)) return;
    this.sent.push(number);
    this.sentBytes += aside.size;
    while (this.sentBytes > repeatedBytesMax) {
      const oldest = this.sent.shift();
      if (oldest === undefined) return;
      this.sentBytes -= this.kept.get(oldest)?.size ?? 0;
      this.free(oldest);
    }
  }

  private free(number: number): void {
    this.size -= this.kept.get(number)?.size ?? 0;
    this.kept.delete(number);
  }

  private piecesOf(frames: string): readonly FramePiece[] | undefined {
    const pieces: FramePiece[] = [];
    let from = 0;
    for (const { number, start, end } of markersIn(frames)) {
      pieces.push(frames.slice(from, start), ...(this.kept.get(number)?.pieces ?? []));
      from = end;
    }
    if (from === 0) return undefined;
    pieces.push(frames.slice(from));
    return pieces;
  }
}

interface Marker {
  number: number;
  start: number;
  end: number;
}

function* markersIn(text: string): Generator<Marker> {
  for (let start = text.indexOf(mark); start >= 0; start = text.indexOf(mark, start + 1)) {
    const end = text.indexOf(".", start + mark.length) + 1;
    yield { number: Number(text.slice(start + mark.length, end - 1)), start, end };
  }
}
