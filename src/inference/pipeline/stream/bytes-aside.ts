import type { SseEvent } from "../../dialects/shared/passthrough.ts";

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

/**
 * Keeps the base64 of pictures and sound out of the reading and writing of one stream whose bytes
 * are kept. A marker is in its place until the frames are complete, so that megabytes are neither
 * parsed nor scanned nor copied again.
 */
export class BytesAside {
  private readonly bytes: string[] = [];

  get isEmpty(): boolean {
    return this.bytes.length === 0;
  }

  /** Returns the event without its long base64; the same where it has none. */
  take(event: SseEvent): Lightened {
    const { data } = event;
    if (data.length < longCharacters) return { event, isLighter: false };
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
      lighter += `${data.slice(from, start)}${mark}${this.bytes.length}.`;
      this.bytes.push(bytes);
      from = end;
    }
    if (from === 0) return { event, isLighter: false };
    return { event: { ...event, data: lighter + data.slice(from) }, isLighter: true };
  }

  /** Returns frames with the base64 that was set aside from them. */
  restore(frames: string): string {
    let restored = "";
    let from = 0;
    for (let at = frames.indexOf(mark); at >= 0; at = frames.indexOf(mark, from)) {
      const numberAt = at + mark.length;
      const end = frames.indexOf(".", numberAt);
      const bytes = this.bytes[Number(frames.slice(numberAt, end))];
      restored += frames.slice(from, bytes === undefined ? numberAt : at) + (bytes ?? "");
      from = bytes === undefined ? numberAt : end + 1;
    }
    return from === 0 ? frames : restored + frames.slice(from);
  }
}
