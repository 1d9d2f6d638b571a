import { UpstreamFailure } from "./upstream-failure.ts";

/** The most bytes of one event, so that an endless line cannot exhaust the memory. */
export const maxEventBytes = 16 * 1024 * 1024;

/**
 * Bytes from which the rest of a piece is kept as it is. A smaller one is copied, since it would keep
 * the whole piece in memory.
 */
const keptBytesMin = 64 * 1024;

/** The most bytes of the memory in which pieces are joined that is kept for the next event. */
const joinedBytesMax = 8 * 1024 * 1024;

/** Memory for joining, which ends before anything else runs. */
let joining = Buffer.alloc(0);

const lineFeed = 0x0a;

const carriageReturn = 0x0d;

const byteOrderMark = 0xfeff;

/**
 * Decodes an event stream's bytes into events (WHATWG HTML, 9.2.6): LF, CRLF and a lone CR end a
 * line, comments and the fields `id` and `retry` are skipped, a byte order mark is dropped. Bytes
 * wait until their line is complete, so a character that was split between chunks stays whole.
 * Throws `UpstreamFailure` when one event grows beyond `maxEventBytes`.
 */
export class SseDecoder implements EventReader {
  text = "";
  position = 0;
  private readonly aside: LongBytes | undefined;
  private held: Uint8Array[] = [];
  private heldBytes = 0;
  private eventBytes = 0;
  private data: string | undefined;
  private eventName = "";
  private started = false;
  private afterCarriageReturn = false;
  private ended = false;

  /** Long base64 of events is left to `aside`, where there is one, and is not in their data. */
  constructor(aside?: LongBytes) {
    this.aside = aside;
  }

  get isBetween(): boolean {
    return this.data === undefined && this.eventName === "" && this.text.length <= maxEventBytes;
  }

  /** Returns the events that this chunk completes. A large chunk is not written to afterwards. */
  push(chunk: Uint8Array): SseEvent[] {
    this.read(chunk);
    return this.rest();
  }

  /** Returns the events that the end of the stream completes: see `finish`. */
  end(): SseEvent[] {
    this.finish();
    return this.rest();
  }

  read(chunk: Uint8Array): void {
    const end = endOfLastLine(chunk);
    if (end > 0) this.append(this.takeText(chunk, end));
    if (end < chunk.byteLength) this.hold(chunk.subarray(end));
  }

  /**
   * Ends the stream. An event whose closing blank line is missing counts when its data is complete:
   * `[DONE]` or valid JSON, since some OpenAI-compatible servers end their streams so.
   */
  finish(): void {
    if (this.heldBytes > 0) this.append(`${this.takeText(new Uint8Array(0), 0)}\n`);
    this.ended = true;
  }

  next(): SseEvent | undefined {
    const { text } = this;
    while (this.position < text.length) {
      const start = this.position;
      const end = text.indexOf("\n", start);
      this.position = end + 1;
      if (end > start) this.readLine({ text, start, end });
      else if (this.data !== undefined) return this.dispatch(this.data);
      else this.eventName = "";
    }
    this.text = "";
    this.position = 0;
    if (!this.ended || this.data === undefined || !isWhole(this.data)) return undefined;
    return this.dispatch(this.data);
  }

  private rest(): SseEvent[] {
    const events: SseEvent[] = [];
    for (let event = this.next(); event !== undefined; event = this.next()) events.push(event);
    return events;
  }

  private hold(rest: Uint8Array): void {
    this.held.push(rest.byteLength < keptBytesMin ? new Uint8Array(rest) : rest);
    this.heldBytes += rest.byteLength;
    if (this.heldBytes + this.eventBytes > maxEventBytes) throw tooLarge();
  }

  /** Returns the text of everything held and of the chunk's whole lines. */
  private takeText(chunk: Uint8Array, end: number): string {
    let text: string;
    if (this.heldBytes === 0) {
      // Chunks of a socket are already buffers, and another view of each would cost as much as its
      // text.
      text =
        chunk instanceof Buffer
          ? chunk.toString("utf8", 0, end)
          : Buffer.from(chunk.buffer, chunk.byteOffset, end).toString("utf8");
    } else {
      this.held.push(chunk.subarray(0, end));
      const bytes = this.heldBytes + end;
      text = this.textOfLong(bytes) ?? joinedText(this.held, bytes);
      this.held = [];
      this.heldBytes = 0;
    }
    if (this.started) return text;
    this.started = true;
    return text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text;
  }

  /** Returns the text of what is held without its long base64; undefined where it has none. */
  private textOfLong(bytes: number): string | undefined {
    if (bytes < keptBytesMin) return undefined;
    const text = this.aside?.textWithout(this.held);
    // What is not in the text counts as if it were.
    if (text !== undefined) this.eventBytes += bytes - text.length;
    return text;
  }

  private append(lines: string): void {
    const skipsFeed = this.afterCarriageReturn && lines.charCodeAt(0) === lineFeed;
    this.afterCarriageReturn = lines.charCodeAt(lines.length - 1) === carriageReturn;
    this.text = lines.includes("\r") ? lines.replace(/\r\n?/g, "\n") : lines;
    this.position = skipsFeed ? 1 : 0;
  }

  private readLine(line: Line): void {
    const { text, start } = line;
    if (text.startsWith("data:", start) || isBare("data", line)) {
      this.addData(dataOf(line));
    } else if (text.startsWith("event:", start) || isBare("event", line)) {
      this.eventName = valueAfter("event:", line);
    }
  }

  private addData(value: string): void {
    this.data = this.data === undefined ? value : `${this.data}\n${value}`;
    this.eventBytes += value.length;
    if (this.eventBytes > maxEventBytes) throw tooLarge();
  }

  private dispatch(data: string): SseEvent {
    const { eventName } = this;
    this.data = undefined;
    this.eventName = "";
    this.eventBytes = 0;
    return eventName === "" ? { data } : { event: eventName, data };
  }
}

/** Keeps long base64 of events in bytes. */
export interface LongBytes {
  /**
   * Returns the text of the pieces of an event with a marker in the place of each long base64;
   * undefined where they have none.
   */
  textWithout(pieces: readonly Uint8Array[]): string | undefined;
}

/** Returns the text of pieces that follow one another (UTF-8). */
function joinedText(pieces: readonly Uint8Array[], byteLength: number): string {
  if (byteLength < keptBytesMin || byteLength > joinedBytesMax)
    return Buffer.concat(pieces, byteLength).toString("utf8");
  if (joining.byteLength < byteLength) joining = Buffer.allocUnsafeSlow(byteLength);
  let at = 0;
  for (const piece of pieces) {
    joining.set(piece, at);
    at += piece.byteLength;
  }
  return joining.toString("utf8", 0, byteLength);
}

/** Returns the index after the last byte that ends a line; 0 when the chunk ends none. */
function endOfLastLine(chunk: Uint8Array): number {
  const feed = chunk.lastIndexOf(lineFeed);
  if (feed === chunk.byteLength - 1) return feed + 1;
  const carriage = chunk.lastIndexOf(carriageReturn);
  return Math.max(feed, carriage) + 1;
}

/** A line of the text, without its end. */
interface Line {
  text: string;
  start: number;
  end: number;
}

/** Returns whether a line is only a field name, which counts as that field with an empty value. */
const isBare = (field: string, { text, start, end }: Line): boolean =>
  end - start === field.length && text.startsWith(field, start);

/** Returns a field's value, without the one space that may follow its colon. */
function valueAfter(field: string, { text, start, end }: Line): string {
  const valueStart = start + field.length;
  if (valueStart >= end) return "";
  return text.slice(text.charCodeAt(valueStart) === 0x20 ? valueStart + 1 : valueStart, end);
}

/**
 * Returns the data of a line. The standard removes one blank alone; some servers write more before
 * JSON or `[DONE]`, and some write them behind.
 */
function dataOf(line: Line): string {
  const value = valueAfter("data:", line);
  const isPadded = value.charCodeAt(0) === 0x20 || value.charCodeAt(value.length - 1) === 0x20;
  if (!isPadded) return value;
  const trimmed = value.trim();
  return trimmed.startsWith("{") || trimmed.startsWith("[") ? trimmed : value;
}

function isWhole(data: string): boolean {
  if (data === "[DONE]") return true;
  try {
    JSON.parse(data);
    return true;
  } catch {
    return false;
  }
}

const tooLarge = (): UpstreamFailure =>
  new UpstreamFailure(
    "response_too_large",
    `one event of the stream is larger than ${maxEventBytes} bytes`,
    { sent: true },
  );

/**
 * The text that events are read from. A reader that recognises events by their text may take them
 * here, and then moves the position behind them.
 */
interface EventText {
  /** Whole lines, each ended by a line feed. */
  readonly text: string;
  /** The index of the first character that was not returned as part of an event. */
  position: number;
  /** Whether nothing of an event was read before the position. */
  readonly isBetween: boolean;
}

/** Reads events from bytes, one at a time. Throws `UpstreamFailure` for what cannot be read. */
export interface EventReader extends EventText {
  /**
   * Takes the next piece, once all events before it were read. Nothing is written to a piece of
   * 64 KiB or more afterwards, which may be kept until its last event is complete.
   */
  read(chunk: Uint8Array): void;
  /** Notes that no more pieces come. */
  finish(): void;
  /** Returns the next event of what was read; undefined where more has to come. */
  next(): SseEvent | undefined;
}

/** Finds the events in a binary stream. */
export interface EventDecoder {
  push(chunk: Uint8Array): SseEvent[];
  end(): SseEvent[];
}

/**
 * A server-sent event: its `event:` name where it had one, and its data lines joined by line feeds.
 */
export interface SseEvent {
  event?: string;
  data: string;
}
