import type { ReasoningDelta, StreamPart, TextDelta } from "../../canonical/response.ts";
import type { EventText } from "../../dialects/passthrough.ts";

type TextPart = TextDelta | ReasoningDelta;

/** The constant text around the text of similar events, as the upstream sends them. */
interface Form {
  /** An event up to and including its text's opening quote. */
  before: string;
  /**
   * An event from its text's closing quote on: the constant texts around the values that no decoder
   * reads.
   */
  after: readonly string[];
  /** The part of the event from which the form was learned. */
  part: TextPart;
  /** Whether another event with another text confirmed that the text is at this place. */
  proved: boolean;
}

/** The most consecutive forms that fit no further event before no more are learned. */
const triesMax = 4;

const quote = 0x22;
const backslash = 0x5c;

/**
 * Matches the values of members that differ in every event of OpenAI's, and mean nothing to a
 * decoder: the number of an event, and random characters that hide the length of its text.
 */
const unreadValue = /(?<="(?:sequence_number|obfuscation)":)(?:0|[1-9][0-9]*|"[a-zA-Z0-9]*")/;
const nextUnread = new RegExp(unreadValue, "y");

/** Matches characters that JSON text contains only escaped, and the escapes (RFC 8259, 7). */
const needsReading = /["\\\x00-\x1f]/;

/**
 * Recognises similar events of an upstream's stream, in any dialect. Most events differ from the
 * one before only in their piece of text, so only the text is read once two events have shown
 * that it alone makes their parts differ. A form is forgotten as soon as any other event is
 * decoded, since that may change what an event of the form means.
 */
export class AlikeTexts {
  private form: Form | undefined;
  private triesLeft = triesMax;
  private events: EventText | undefined;
  /** The position at which the event to be decoded begins; -1 where a part of it was read. */
  private start = -1;

  /** Takes the next event where it has the known form; undefined where it has to be decoded. */
  take(events: EventText): TextPart | undefined {
    const { form } = this;
    const { text, position } = events;
    if (form?.proved !== true || !text.startsWith(form.before, position) || !events.isBetween)
      return undefined;
    const start = position + form.before.length;
    const end = endOfString(text, start);
    const next = end <= start ? -1 : endAfter(text, end, form.after);
    if (next < 0) return undefined;
    const part = withText(form.part, text.slice(start - 1, end + 1));
    if (part !== undefined) events.position = next;
    return part;
  }

  /** Notes where the event begins that is decoded next. */
  mark(events: EventText): void {
    this.events = events;
    this.start = events.isBetween ? events.position : -1;
  }

  /** Learns from the parts of the event that was decoded since `mark`. */
  learn(parts: readonly StreamPart[]): void {
    const [part] = parts;
    const event =
      this.start < 0 ? undefined : this.events?.text.slice(this.start, this.events.position);
    this.form =
      event === undefined || part === undefined || parts.length > 1 || !isText(part)
        ? undefined
        : (this.confirmed(event, part) ?? this.formOf(event, part));
  }

  /** Returns the present form where an event has it; undefined where it has another. */
  private confirmed(event: string, part: TextPart): Form | undefined {
    const { form } = this;
    if (form === undefined || !event.startsWith(form.before) || !isSamePlace(form.part, part))
      return undefined;
    const start = form.before.length;
    const end = endOfString(event, start);
    if (end < start || endAfter(event, end, form.after) !== event.length) return undefined;
    if (withText(part, event.slice(start - 1, end + 1))?.text !== part.text) return undefined;
    // The same text again may still be that of another member.
    form.proved ||= part.text !== form.part.text;
    if (form.proved) this.triesLeft = triesMax;
    return form;
  }

  private formOf(event: string, part: TextPart): Form | undefined {
    const { text } = part;
    if (this.triesLeft === 0 || needsReading.test(text)) return undefined;
    const start = event.indexOf(`"${text}"`) + 1;
    if (start === 0) return undefined;
    this.triesLeft -= 1;
    return {
      before: event.slice(0, start),
      after: event.slice(start + text.length).split(unreadValue),
      part,
      proved: false,
    };
  }
}

const isText = (part: StreamPart): part is TextPart =>
  part.type === "text-delta" || part.type === "reasoning-delta";

const isSamePlace = (one: TextPart, other: TextPart): boolean =>
  one.type === other.type &&
  one.choiceIndex === other.choiceIndex &&
  one.itemIndex === other.itemIndex &&
  summaryOf(one) === summaryOf(other);

const summaryOf = (part: TextPart): number | undefined =>
  part.type === "reasoning-delta" ? part.summaryIndex : undefined;

/** Returns the index of the quote that closes a string; -1 where there is none. */
function endOfString(text: string, start: number): number {
  for (let index = start; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === quote) return index;
    if (code === backslash) index += 1;
  }
  return -1;
}

/**
 * Returns the index after the rest of an event, of which only unread values may differ; -1 where it
 * is another.
 */
function endAfter(text: string, start: number, [first = "", ...more]: readonly string[]): number {
  if (!text.startsWith(first, start)) return -1;
  let end = start + first.length;
  for (const constant of more) {
    nextUnread.lastIndex = end;
    if (!nextUnread.test(text) || !text.startsWith(constant, nextUnread.lastIndex)) return -1;
    end = nextUnread.lastIndex + constant.length;
  }
  return end;
}

/**
 * Returns a part with the text that is given in JSON; undefined where it is not valid. The text is
 * a copy, since encoders keep it, and it must not keep everything around it in memory.
 */
function withText(part: TextPart, json: string): TextPart | undefined {
  let text: string;
  try {
    text = JSON.parse(json) as string;
  } catch {
    return undefined;
  }
  if (part.type === "reasoning-delta") return { ...part, text };
  const { type, choiceIndex, itemIndex } = part;
  return json.includes("\\")
    ? { type, choiceIndex, itemIndex, text }
    : { type, choiceIndex, itemIndex, text, json };
}
