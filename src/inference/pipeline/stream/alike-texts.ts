import type { EventText } from "../../dialects/shared/stream/stream-relay.ts";
import type { ShownEvent } from "../../dialects/shared/stream/stream-writer.ts";

/** A piece of text that an event says; further members say where it belongs. */
interface Spoken {
  readonly text: string;
}

/** An event that was not decoded. */
interface AlikeText<Said extends Spoken> {
  /** What the event says from which the form was learned, with that event's text. */
  said: Said;
  /** The text of this event, and the same in JSON, with its quotes. */
  text: string;
  json: string;
}

/** Consecutive events that were not decoded. */
export interface AlikeRun<Said extends Spoken> {
  said: Said;
  /** What the client is sent of them. */
  frames: string;
  /** The number of events, and the characters of their texts. */
  count: number;
  characters: number;
  /** Their texts, one after another; empty where they are not asked for. */
  text: string;
}

/** How consecutive events are taken. */
export interface RunSearch {
  /** The `sequence_number` that the first has to have; absent where any will do. */
  number?: number | undefined;
  /** Whether the texts themselves are asked for. */
  keepsText: boolean;
  /** The most characters of texts that are taken; absent means any number. */
  charactersMax?: number | undefined;
}

/** The constant texts around the text of an event. */
interface Around {
  /**
   * The event up to and including its text's opening quote: the constant texts around the values
   * that no decoder reads.
   */
  before: readonly string[];
  /** The same from its text's closing quote on, up to the last brace and the spaces before it. */
  after: readonly string[];
}

/** The constant text around the text of similar events, as the upstream sends them. */
interface Form<Said extends Spoken> {
  scan: FormScan;
  /**
   * What the client gets of it: the upstream's own bytes, or others; undefined where that was not
   * given.
   */
  shown: ShownForm | "kept" | undefined;
  said: Said;
  /** Whether another event with another text confirmed that the text is at this place. */
  proved: boolean;
}

/**
 * The constant texts of events of which the client is sent something, with at most one unread value,
 * after the text: as they come, and as the client gets them.
 */
interface ShownForm {
  came: Pieces;
  sent: Pieces;
  /** Whether texts are written again. */
  isRewritten: boolean;
}

/** An event before its text, after it, and after the unread value; undefined where it has none. */
interface Pieces {
  before: string;
  after: string;
  last: string | undefined;
}

/** The most consecutive forms that fit no further event before no more are learned. */
const triesMax = 4;

const quote = 0x22;
const backslash = 0x5c;
const space = 0x20;

/**
 * Matches the values of members that differ in every event and mean nothing to a decoder: the
 * number of an event of OpenAI's, and the random characters with which OpenAI (`obfuscation`) and
 * Mistral (`p`) hide the length of a text.
 */
const unreadValue =
  /(?<="sequence_number":)(?:0|[1-9][0-9]*)|(?<="(?:obfuscation|p)":)"[a-zA-Z0-9]*"/;
const numberName = '"sequence_number":';
const unreadNames = [numberName, '"obfuscation":', '"p":'];

/** The end of an event; Anthropic hides the length of a text with spaces before it. */
const endText = "}\n\n";

/** Matches characters that JSON text contains only escaped, and the escapes (RFC 8259, 7). */
const needsReading = /["\\\x00-\x1f]/;

/**
 * Recognises similar events of an upstream's stream, in any dialect. Most events differ from the
 * one before only in their piece of text, so only the text is read once two events have shown
 * that it alone makes a difference. A form is forgotten as soon as any other event is decoded,
 * since that may change what an event of the form means.
 */
export class AlikeTexts<Said extends Spoken> {
  private readonly isSamePlace: (one: Said, other: Said) => boolean;
  private form: Form<Said> | undefined;
  private triesLeft = triesMax;
  private events: EventText | undefined;
  /** The position at which the event to be decoded begins; -1 where a part of it was read. */
  private start = -1;

  /** `isSamePlace` says whether two events differ at most in their text. */
  constructor(isSamePlace: (one: Said, other: Said) => boolean) {
    this.isSamePlace = isSamePlace;
  }

  /**
   * Takes the next event where it has the known form and no more characters; undefined where it has
   * to be decoded.
   */
  take(events: EventText, charactersMax = Infinity): AlikeText<Said> | undefined {
    const { form } = this;
    if (form?.proved !== true || !events.isBetween) return undefined;
    const taken = readAlike(form, events);
    if (taken === undefined || taken.text === "" || taken.text.length > charactersMax)
      return undefined;
    events.position = taken.end;
    return taken;
  }

  /**
   * Takes all consecutive events of the known form, where it was learned with what the client is
   * sent; undefined where the next one has to be decoded.
   */
  takeRun(events: EventText, search: RunSearch): AlikeRun<Said> | undefined {
    const { form } = this;
    if (form?.shown === undefined || !form.proved || !events.isBetween) return undefined;
    return readRun(form, events, search);
  }

  /** Notes where the event begins that is decoded next. */
  mark(events: EventText): void {
    this.events = events;
    this.start = events.isBetween ? events.position : -1;
  }

  /**
   * Learns from what the event said that was decoded since `mark`; undefined where it said anything
   * but a piece of text. With `shown`, what the client is sent of such events is learned too.
   */
  learn(said: Said | undefined, shown?: ShownEvent): void {
    const event = this.latest();
    this.form =
      event === undefined || said === undefined
        ? undefined
        : (this.confirmed(event, { said, shown }) ?? this.formOf(event, { said, shown }));
  }

  private latest(): string | undefined {
    return this.start < 0 ? undefined : this.events?.text.slice(this.start, this.events.position);
  }

  /** Returns the present form where an event has it; undefined where it has another. */
  private confirmed(event: string, { said, shown }: Decoded<Said>): Form<Said> | undefined {
    const { form } = this;
    if (form === undefined || !this.isSamePlace(form.said, said)) return undefined;
    const read = readAlike(form, { text: event, position: 0 });
    if (read?.end !== event.length || read.text !== said.text) return undefined;
    if (form.shown !== undefined && !writes(form, event, { said, shown })) return undefined;
    // The same text again may still be that of another member.
    form.proved ||= said.text !== form.said.text;
    if (form.proved) this.triesLeft = triesMax;
    return form;
  }

  private formOf(event: string, { said, shown }: Decoded<Said>): Form<Said> | undefined {
    const { text } = said;
    if (this.triesLeft === 0 || needsReading.test(text)) return undefined;
    const came = around(event, text);
    const isKept = shown?.frame === event && !shown.isRewritten;
    const sent = isKept ? "kept" : shown && shownForm(came, { shown, text });
    if (came === undefined || (shown !== undefined && sent === undefined)) return undefined;
    this.triesLeft -= 1;
    return { scan: new FormScan(came), shown: sent, said, proved: false };
  }
}

/** What a decoded event said, and what the client was sent of it. */
interface Decoded<Said extends Spoken> {
  said: Said;
  shown: ShownEvent | undefined;
}

/** Returns the constant texts around a text of an event; undefined where it is not found. */
function around(event: string, text: string): Around | undefined {
  const start = event.indexOf(`"${text}"`) + 1;
  let end = event.length - endText.length;
  while (event.charCodeAt(end - 1) === space) end -= 1;
  if (start === 0 || end < start || !event.endsWith(endText)) return undefined;
  return {
    before: betweenUnread(event.slice(0, start)),
    after: betweenUnread(event.slice(start + text.length, end)),
  };
}

/** Returns the constant texts between unread values. */
const betweenUnread = (text: string): readonly string[] =>
  unreadNames.some((name) => text.includes(name)) ? text.split(unreadValue) : [text];

/** Returns the index of the quote that closes a string; -1 where there is none, or it is invalid. */
function endOfText(text: string, start: number): number {
  for (let index = start; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === quote) return index;
    if (code < space) return -1;
    if (code === backslash) index += 1;
  }
  return -1;
}

/** Returns the form in which a client is sent events; undefined where it cannot be learned. */
function shownForm(
  came: Around | undefined,
  { shown, text }: { shown: ShownEvent; text: string },
): ShownForm | undefined {
  const sent = around(shown.frame, text);
  const [cameAt, sentAt] = [came && piecesOf(came), sent && piecesOf(sent)];
  if (cameAt === undefined || sentAt === undefined) return undefined;
  return { came: cameAt, sent: sentAt, isRewritten: shown.isRewritten };
}

function piecesOf({ before, after: [after = "", last, ...more] }: Around): Pieces | undefined {
  const [first = "", ...unread] = before;
  const isHidden = last === undefined || !after.endsWith(numberName);
  return unread.length > 0 || more.length > 0 || !isHidden
    ? undefined
    : { before: first, after, last };
}

/** Reads events of one form from a text, one after another. */
class FormScan {
  /** The index after the events that were read. */
  position = 0;
  /** Where the latest has its text, and where the constants after that end. */
  textStart = 0;
  textEnd = 0;
  bodyEnd = 0;
  text = "";

  constructor(private readonly came: Around) {}

  /** Begins with a text. */
  begin({ text, position }: Pick<EventText, "text" | "position">): void {
    this.text = text;
    this.position = position;
  }

  /** Reads the next event; false where it is another, or has another number than expected. */
  read(number?: number): boolean {
    const { text, came, position } = this;
    if (position >= text.length) return false;
    const start = this.endOf(came.before, position, number);
    const textEnd = start < 0 ? -1 : endOfText(text, start);
    const bodyEnd = textEnd < 0 ? -1 : this.endOf(came.after, textEnd, number);
    const end = bodyEnd < 0 ? -1 : endOfEvent(text, bodyEnd);
    if (end < 0) return false;
    this.textStart = start;
    this.textEnd = textEnd;
    this.bodyEnd = bodyEnd;
    this.position = end;
    return true;
  }

  /** Returns the index after these texts, between which only unread values differ; else -1. */
  private endOf(constants: readonly string[], start: number, number: number | undefined): number {
    const { text } = this;
    let before = constants[0] ?? "";
    if (!text.startsWith(before, start)) return -1;
    let at = start + before.length;
    for (let index = 1; index < constants.length; index += 1) {
      at = before.endsWith(numberName) ? this.endOfNumber(at, number) : endOfHidden(text, at);
      before = constants[index] ?? "";
      if (at < 0 || !text.startsWith(before, at)) return -1;
      at += before.length;
    }
    return at;
  }

  /** Returns the index after the expected number, or any; -1 where there is another value. */
  private endOfNumber(at: number, expected: number | undefined): number {
    const { text } = this;
    let end = at;
    let number = 0;
    for (let code = text.charCodeAt(end); isDigit(code); code = text.charCodeAt(end)) {
      number = number * 10 + code - zero;
      end += 1;
    }
    const isWhole = end > at && (end === at + 1 || text.charCodeAt(at) !== zero);
    return isWhole && (expected === undefined || number === expected) ? end : -1;
  }
}

/** An event of a form, with the index after it. */
type ReadText<Said extends Spoken> = AlikeText<Said> & { end: number };

/**
 * Reads the event of a form that begins there; undefined where it is another. The text is a copy,
 * since encoders keep it, and it must not keep everything around it in memory.
 */
function readAlike<Said extends Spoken>(
  { scan, said }: Form<Said>,
  events: Pick<EventText, "text" | "position">,
): ReadText<Said> | undefined {
  scan.begin(events);
  if (!scan.read()) return undefined;
  const json = events.text.slice(scan.textStart - 1, scan.textEnd + 1);
  const text = parsedText(json);
  return text === undefined ? undefined : { said, text, json, end: scan.position };
}

/**
 * Reads consecutive events of a form, and writes what the client is sent of them; undefined where
 * there are none.
 */
function readRun<Said extends Spoken>(
  { scan, shown, said }: Form<Said>,
  events: EventText,
  { number, keepsText, charactersMax = Infinity }: RunSearch,
): AlikeRun<Said> | undefined {
  const { text: event, position: from } = events;
  scan.begin(events);
  const sent = shown === "kept" ? undefined : shown;
  let frames = "";
  let text = "";
  let characters = 0;
  let count = 0;
  while (scan.read(number === undefined ? undefined : number + count)) {
    let written = event.slice(scan.textStart, scan.textEnd);
    // A text that is kept is a copy, as above.
    const isParsed = keepsText || written.includes("\\");
    const meant = isParsed
      ? parsedText(event.slice(scan.textStart - 1, scan.textEnd + 1))
      : written;
    if (meant === undefined || meant === "" || characters + meant.length > charactersMax) break;
    if (keepsText) text += meant;
    if (sent !== undefined) {
      if (sent.isRewritten && meant !== written) written = JSON.stringify(meant).slice(1, -1);
      frames += sent.sent.before + written + sent.sent.after + restOf(sent, scan);
    }
    characters += meant.length;
    count += 1;
    events.position = scan.position;
  }
  if (count === 0) return undefined;
  if (shown === "kept") frames = event.slice(from, events.position);
  return { said, frames, count, characters, text };
}

/** Returns what the client is sent of an event after the constants that follow its text. */
function restOf({ came, sent }: ShownForm, { text, textEnd, bodyEnd, position }: FormScan): string {
  const start = textEnd + came.after.length;
  if (came.last === sent.last) return text.slice(start, position);
  const valueEnd = bodyEnd - (came.last ?? "").length;
  return text.slice(start, valueEnd) + (sent.last ?? "") + text.slice(bodyEnd, position);
}

/** Returns whether a form writes of an event what the client was sent. */
function writes<Said extends Spoken>(
  form: Form<Said>,
  event: string,
  { said, shown }: Decoded<Said>,
): boolean {
  const events = { text: event, position: 0, isBetween: true };
  const run = readRun(form, events, { keepsText: false });
  return run?.frames === shown?.frame && run?.characters === said.text.length;
}

/** Returns the text that is given in JSON; undefined where it is not valid. */
function parsedText(json: string): string | undefined {
  try {
    return JSON.parse(json) as string;
  } catch {
    return undefined;
  }
}

/** Returns the index after the end of an event; -1 where it does not end there. */
function endOfEvent(text: string, start: number): number {
  let end = start;
  while (text.charCodeAt(end) === space) end += 1;
  return text.startsWith(endText, end) ? end + endText.length : -1;
}

/** Returns the index after random characters in quotes; -1 where there are others. */
function endOfHidden(text: string, start: number): number {
  if (text.charCodeAt(start) !== quote) return -1;
  for (let index = start + 1; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === quote) return index + 1;
    const letter = code | 0x20;
    if (!isDigit(code) && (letter < 0x61 || letter > 0x7a)) return -1;
  }
  return -1;
}

const zero = 0x30;
const isDigit = (code: number): boolean => code >= zero && code <= 0x39;
