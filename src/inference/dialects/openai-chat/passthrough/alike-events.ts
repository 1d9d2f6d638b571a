import { hidingMembers, needsReading, triesMax } from "../../shared/alike-texts.ts";
import type { EventText } from "../../shared/passthrough.ts";
import {
  editMembers,
  replaceEach,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";
import type { ChatChunk } from "./passthrough-stream.ts";

/** Returns the index of a choice; servers that send one choice may omit it. */
export const indexOf = ({ index }: { index?: unknown }): number =>
  typeof index === "number" ? index : 0;

/** The constant text around the text of similar events. */
interface Form {
  came: Around;
  /** The same as the client gets it. */
  shown: Around;
  /** The index of the choice. */
  index: number;
  /** Whether a trial confirmed that the text is at this place. */
  proved: boolean;
}

/** The constant text of an event, with the line that it is in. */
interface Around {
  /** The event up to its text's opening quote. */
  before: string;
  /** The event from its text's closing quote on, up to its random characters if it has any. */
  after: string;
  /** The event after them; undefined where it has none. */
  last: string | undefined;
}

/** Matches the random characters that differ in every event. */
const hiding = new RegExp(`(?<="(?:${hidingMembers})":")[a-zA-Z0-9]*(?=")`);
const nextHiding = /[a-zA-Z0-9]*/y;

const dataLine = "data: ";
const lineEnd = "\n\n";

/** Returns the constant text of an event, given what is before and after its text. */
function around(head: string, rest: string): Around {
  const before = dataLine + head;
  const found = hiding.exec(rest);
  if (found === null) return { before, after: rest + lineEnd, last: undefined };
  const end = found.index + found[0].length;
  return { before, after: rest.slice(0, found.index), last: rest.slice(end) + lineEnd };
}

const quote = 0x22;
const backslash = 0x5c;
const space = 0x20;
const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** A text that occurs in no event, with which the place of the text is tried out. */
const probe = "\u2058text\u2058";

/** Pieces of text from events that were not parsed: the client's frames, and what is counted. */
interface AlikeRun {
  frames: string;
  index: number;
  characters: number;
}

/**
 * Recognises similar events. Most events of a chat stream differ from the previous one only in
 * their piece of text. Such an event need not be parsed: once an event of its form was parsed, it
 * is known to be JSON, and what it says.
 */
export class AlikeEvents {
  private form: Form | undefined;
  private triesLeft = triesMax;
  /**
   * The characters by which the escapes of the latest text exceed the characters that they mean.
   */
  private surplus = 0;

  /** Returns an event of the known form; undefined for any other, which has to be parsed. */
  find(data: string): AlikeRun | undefined {
    if (this.form === undefined || data.includes("\n")) return undefined;
    const events = { text: dataLine + data + lineEnd, position: 0, isBetween: true };
    const run = this.take(events);
    return events.position === events.text.length ? run : undefined;
  }

  /**
   * Takes all consecutive events of the known form from the position on; undefined where the next
   * one has to be parsed.
   */
  take(events: EventText): AlikeRun | undefined {
    const { form } = this;
    const { text } = events;
    if (
      form === undefined ||
      !text.startsWith(form.came.before, events.position) ||
      !events.isBetween ||
      !this.proves(form)
    )
      return undefined;
    const { came, shown, index } = form;
    let frames = "";
    let characters = 0;
    do {
      const start = events.position + came.before.length;
      const end = this.endOfText(text, start);
      if (end <= start || !text.startsWith(came.after, end)) break;
      const rest = end + came.after.length;
      const hidden = came.last === undefined ? "" : hiddenAt(text, rest);
      const next = rest + hidden.length;
      if (came.last !== undefined && !text.startsWith(came.last, next)) break;
      frames += shown.before + text.slice(start, end) + shown.after;
      if (shown.last !== undefined) frames += hidden + shown.last;
      characters += end - start - this.surplus;
      events.position = next + (came.last?.length ?? 0);
    } while (text.startsWith(came.before, events.position));
    if (characters === 0) return undefined;
    this.triesLeft = triesMax;
    return { frames, index, characters };
  }

  /**
   * Learns the form of a parsed event, where it says nothing but a piece of text, and of what the
   * client is shown of it.
   */
  learn(
    data: string,
    {
      chunk,
      prefix,
      shown,
    }: { chunk: ChatChunk; prefix: SwappedPrefix | undefined; shown: string },
  ): void {
    if (
      this.triesLeft === 0 ||
      prefix === undefined ||
      !data.startsWith(prefix.from) ||
      data.includes("\n")
    )
      return;
    const text = textAlone(chunk);
    if (text === undefined || needsReading.test(text)) return;
    this.triesLeft -= 1;
    const start = data.indexOf(`"${text}"`, prefix.from.length) + 1;
    const shownStart = shown.indexOf(`"${text}"`, shown.indexOf('"choices"')) + 1;
    if (shownStart === 0) return;
    this.form = {
      came: around(data.slice(0, start), data.slice(start + text.length)),
      shown: around(shown.slice(0, shownStart), shown.slice(shownStart + text.length)),
      index: indexOf(chunk.choices?.[0] ?? {}),
      proved: false,
    };
  }

  /**
   * Tries a form out when it first occurs again, since the first event of many streams has a form
   * of its own.
   */
  private proves(form: Form): boolean {
    form.proved ||= saysText(form);
    if (!form.proved) this.form = undefined;
    return form.proved;
  }

  /**
   * Returns the index of the quote that closes the text; -1 where the text is not valid in JSON.
   */
  private endOfText(data: string, start: number): number {
    this.surplus = 0;
    for (let index = start; index < data.length; index += 1) {
      const code = data.charCodeAt(index);
      if (code === quote) return index;
      if (code < space) return -1;
      if (code !== backslash) continue;
      escape.lastIndex = index;
      if (!escape.test(data)) return -1;
      this.surplus += escape.lastIndex - index - 1;
      index = escape.lastIndex - 1;
    }
    return -1;
  }
}

/** Returns the random characters at this index. */
function hiddenAt(text: string, start: number): string {
  nextHiding.lastIndex = start;
  return nextHiding.exec(text)?.[0] ?? "";
}

/**
 * Returns whether a text in the form's place is what the event says: the first text found there may
 * be another member's.
 */
function saysText({ came, shown }: Form): boolean {
  if ((came.last === undefined) !== (shown.last === undefined)) return false;
  try {
    return [came, shown].every(({ before, after, last = "" }) => {
      const event = JSON.parse(
        `${before}${probe}${after}${last}`.slice(dataLine.length),
      ) as ChatChunk;
      return textAlone(event) === probe;
    });
  } catch {
    return false;
  }
}

/**
 * Returns the piece of text that is all that an event says; undefined where it says nothing, or
 * more.
 */
function textAlone({ choices, usage, x_groq: groq }: ChatChunk): string | undefined {
  if ((usage ?? groq ?? undefined) !== undefined || !Array.isArray(choices) || choices.length !== 1)
    return undefined;
  const { delta, finish_reason: finishReason } = choices[0] ?? {};
  if (typeof delta !== "object" || delta === null || (finishReason ?? "") !== "") return undefined;
  if (delta.tool_calls || delta.function_call || delta.audio) return undefined;
  const said = [delta.content, delta.refusal, delta.reasoning_content ?? delta.reasoning].filter(
    (text) => (text ?? "") !== "",
  );
  return said.length === 1 && typeof said[0] === "string" ? said[0] : undefined;
}

/** The prefix that all events of a stream share, as it came and as the client gets it. */
export interface SwappedPrefix {
  from: string;
  to: string;
}

const names = ["id", "model", "choices"] as const;
const choicesIndex = 2;

/**
 * Returns an event with another id and model, given as JSON text, and the prefix that events like
 * it share: the text before `choices`; undefined prefix where id or model are elsewhere.
 */
export function swapped(
  data: string,
  shown: { id: string; model: string },
): { text: string; prefix: SwappedPrefix | undefined } {
  let placedBefore = 0;
  let start = 0;
  const text = replaceEach(data, names, (index, valueStart, valueEnd) => {
    if (index === choicesIndex) {
      start = data.lastIndexOf('"choices"', valueStart);
      return data.slice(valueStart, valueEnd);
    }
    if (start === 0) placedBefore += 1;
    return index === 0 ? shown.id : shown.model;
  });
  if (text === undefined) return swappedByName(data, shown);
  const from = data.slice(0, start);
  const isFirst = placedBefore === choicesIndex;
  return {
    text,
    prefix: isFirst ? { from, to: text.slice(0, start + text.length - data.length) } : undefined,
  };
}

/** Does the same where a member is missing, repeated or has an escape in its name. */
function swappedByName(
  data: string,
  shown: { id: string; model: string },
): ReturnType<typeof swapped> {
  const edits = new Map(Object.entries(shown));
  return { text: editMembers(data, edits), prefix: swappedPrefix(data, edits) };
}

function swappedPrefix(
  data: string,
  edits: ReadonlyMap<string, string>,
): SwappedPrefix | undefined {
  const members = scanMembers(data);
  const index = members.findIndex((member) => member.key === "choices");
  const choices = members[index];
  const last = members[index - 1];
  if (choices === undefined || last === undefined) return undefined;
  const leading = new Set(members.slice(0, index).map((member) => member.key));
  if (!leading.has("id") || !leading.has("model")) return undefined;
  const head = editMembers(`${data.slice(0, last.valueEnd)}}`, edits);
  return {
    from: data.slice(0, choices.keyStart),
    to: head.slice(0, -1) + data.slice(last.valueEnd, choices.keyStart),
  };
}
