import type { EventText } from "./passthrough.ts";

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

/** The constant text around the text of similar events, as the upstream sends them. */
interface Form<Said extends Spoken> {
  /**
   * An event up to and including its text's opening quote: the constant texts around the values
   * that no decoder reads.
   */
  before: readonly string[];
  /** The same from its text's closing quote on, up to the last brace and the spaces before it. */
  after: readonly string[];
  said: Said;
  /** Whether another event with another text confirmed that the text is at this place. */
  proved: boolean;
}

/** The most consecutive forms that fit no further event before no more are learned. */
export const triesMax = 4;

const quote = 0x22;
const backslash = 0x5c;
const space = 0x20;

/**
 * The members, as alternatives of a pattern, whose random characters hide the length of an event's
 * text: OpenAI's and Mistral's.
 */
export const hidingMembers = "obfuscation|p";

/**
 * Matches the values of members that differ in every event and mean nothing to a decoder: the
 * number of an event of OpenAI's, and random characters.
 */
const unreadValue = new RegExp(
  `(?<="sequence_number":)(?:0|[1-9][0-9]*)|(?<="(?:${hidingMembers})":)"[a-zA-Z0-9]*"`,
);
const nextUnread = new RegExp(unreadValue, "y");
const numberName = '"sequence_number":';

/** Matches the end of an event; Anthropic hides the length of a text with spaces before it. */
const eventEnd = / *\}\n\n$/;
const endText = "}\n\n";

/** Matches characters that JSON text contains only escaped, and the escapes (RFC 8259, 7). */
export const needsReading = /["\\\x00-\x1f]/;

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
   * Takes the next event where it has the known form; undefined where it has to be decoded. With
   * `number`, an event that has another `sequence_number` has to be decoded.
   */
  take(events: EventText, number?: string): AlikeText<Said> | undefined {
    const { form } = this;
    if (form?.proved !== true || !events.isBetween) return undefined;
    const { text, position } = events;
    const start = endOfConstants(text, form.before, { start: position, number });
    const end = start < 0 ? -1 : endOfString(text, start);
    const next = end <= start ? -1 : endOfEvent(text, form.after, { start: end, number });
    if (next < 0) return undefined;
    const taken = readText(form.said, text.slice(start - 1, end + 1));
    if (taken !== undefined) events.position = next;
    return taken;
  }

  /** Notes where the event begins that is decoded next. */
  mark(events: EventText): void {
    this.events = events;
    this.start = events.isBetween ? events.position : -1;
  }

  /**
   * Learns from what the event said that was decoded since `mark`; undefined where it said anything
   * but a piece of text.
   */
  learn(said: Said | undefined): void {
    const event = this.latest();
    this.form =
      event === undefined || said === undefined
        ? undefined
        : (this.confirmed(event, said) ?? this.formOf(event, said));
  }

  /** Learns from an event of which the client was sent these frames: only from its own bytes. */
  learnKept(said: Said | undefined, frames: unknown): void {
    this.learn(said !== undefined && frames === this.latest() ? said : undefined);
  }

  private latest(): string | undefined {
    return this.start < 0 ? undefined : this.events?.text.slice(this.start, this.events.position);
  }

  /** Returns the present form where an event has it; undefined where it has another. */
  private confirmed(event: string, said: Said): Form<Said> | undefined {
    const { form } = this;
    if (form === undefined || !this.isSamePlace(form.said, said)) return undefined;
    const start = endOfConstants(event, form.before, { start: 0 });
    const end = start < 0 ? -1 : endOfString(event, start);
    if (end < 0 || endOfEvent(event, form.after, { start: end }) !== event.length) return undefined;
    if (readText(said, event.slice(start - 1, end + 1))?.text !== said.text) return undefined;
    // The same text again may still be that of another member.
    form.proved ||= said.text !== form.said.text;
    if (form.proved) this.triesLeft = triesMax;
    return form;
  }

  private formOf(event: string, said: Said): Form<Said> | undefined {
    const { text } = said;
    if (this.triesLeft === 0 || needsReading.test(text)) return undefined;
    const start = event.indexOf(`"${text}"`) + 1;
    const end = event.search(eventEnd);
    if (start === 0 || end < start) return undefined;
    this.triesLeft -= 1;
    return {
      before: event.slice(0, start).split(unreadValue),
      after: event.slice(start + text.length, end).split(unreadValue),
      said,
      proved: false,
    };
  }
}

/** Returns the index of the quote that closes a string; -1 where there is none. */
function endOfString(text: string, start: number): number {
  for (let index = start; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === quote) return index;
    if (code === backslash) index += 1;
  }
  return -1;
}

/** Where texts are looked for, and the number that an event has to have, if any. */
interface Search {
  start: number;
  number?: string | undefined;
}

/** Returns the index after the rest of an event; -1 where it is another. */
function endOfEvent(text: string, constants: readonly string[], search: Search): number {
  let end = endOfConstants(text, constants, search);
  if (end < 0) return -1;
  while (text.charCodeAt(end) === space) end += 1;
  return text.startsWith(endText, end) ? end + endText.length : -1;
}

/**
 * Returns the index after these texts, between which only unread values may differ; -1 where the
 * text is another.
 */
function endOfConstants(
  text: string,
  [first = "", ...more]: readonly string[],
  { start, number }: Search,
): number {
  if (!text.startsWith(first, start)) return -1;
  let end = start + first.length;
  let before = first;
  for (const constant of more) {
    end = endOfUnread(text, end, before.endsWith(numberName) ? number : undefined);
    if (end < 0 || !text.startsWith(constant, end)) return -1;
    end += constant.length;
    before = constant;
  }
  return end;
}

/** Returns the index after an unread value, which has to be `expected` where that is given. */
function endOfUnread(text: string, start: number, expected: string | undefined): number {
  if (expected !== undefined)
    return text.startsWith(expected, start) ? start + expected.length : -1;
  nextUnread.lastIndex = start;
  return nextUnread.test(text) ? nextUnread.lastIndex : -1;
}

/**
 * Reads a text that is given in JSON; undefined where it is not valid. The text is a copy, since
 * encoders keep it, and it must not keep everything around it in memory.
 */
function readText<Said extends Spoken>(said: Said, json: string): AlikeText<Said> | undefined {
  try {
    return { said, text: JSON.parse(json) as string, json };
  } catch {
    return undefined;
  }
}
