import { indexOf, type ChatChunk } from "./chat-stream-meter.ts";
import type { SwappedPrefix } from "./swapped-prefix.ts";

/** What events that differ in their text alone have around it. */
interface Form {
  /** The event up to its text's opening quote, as it came, and the frame up to there, as the client gets it. */
  before: string;
  shownBefore: string;
  /** The event from its text's closing quote on, and the frame from there on. */
  after: string;
  shownAfter: string;
  /** The choice that speaks. */
  index: number;
}

/** So many forms in a row may fit no further event before no more are learned. */
const triesMax = 4;

/** What a JSON text may not say within quotes as it is (RFC 8259, 7), and the escapes, which stand for something else. */
const needsReading = /["\\\x00-\x1f]/;

/** A text that stands in no event, for trying out whether a place is the one of the text. */
const probe = "\u2058text\u2058";

/** A piece of text that needed no reading: the client's frame, and what is counted. */
export interface AlikeEvent {
  frame: string;
  index: number;
  characters: number;
}

/**
 * Most events of a chat stream differ from the one before in nothing but their piece of text. Such an event need not be read: it is
 * known to be JSON, and what it says, once an event of its form was read.
 */
export class AlikeEvents {
  private form: Form | undefined;
  private triesLeft = triesMax;

  /** An event of the known form; undefined for every other, which is to be read. */
  find(data: string): AlikeEvent | undefined {
    const { form } = this;
    if (form === undefined || !data.startsWith(form.before) || !data.endsWith(form.after)) return undefined;
    const end = data.length - form.after.length;
    if (end <= form.before.length) return undefined;
    const text = data.slice(form.before.length, end);
    if (needsReading.test(text)) return undefined;
    this.triesLeft = triesMax;
    return { frame: form.shownBefore + text + form.shownAfter, index: form.index, characters: text.length };
  }

  /** Learns the form of an event that was read, where it says nothing but a piece of text and the client gets its start swapped. */
  learn(data: string, { chunk, prefix }: { chunk: ChatChunk; prefix: SwappedPrefix | undefined }): void {
    if (this.triesLeft === 0 || prefix === undefined) return;
    const text = textAlone(chunk);
    if (text === undefined || needsReading.test(text)) return;
    this.triesLeft -= 1;
    const start = data.indexOf(`"${text}"`) + 1;
    const before = data.slice(0, start);
    const after = data.slice(start + text.length);
    if (!before.startsWith(prefix.from) || textAlone(JSON.parse(before + probe + after) as ChatChunk) !== probe) return;
    const shownBefore = `data: ${prefix.to}${before.slice(prefix.from.length)}`;
    this.form = { before, after, shownBefore, shownAfter: `${after}\n\n`, index: indexOf(chunk.choices?.[0] ?? {}) };
  }
}

/** The one piece of text that is all that an event says; undefined where it says nothing, or more. */
function textAlone({ choices, usage, x_groq: groq }: ChatChunk): string | undefined {
  if ((usage ?? groq ?? undefined) !== undefined || !Array.isArray(choices) || choices.length !== 1) return undefined;
  const { delta, finish_reason: finishReason } = choices[0] ?? {};
  if (typeof delta !== "object" || delta === null || (finishReason ?? "") !== "") return undefined;
  if (delta.tool_calls || delta.function_call || delta.audio) return undefined;
  const said = [delta.content, delta.refusal, delta.reasoning_content ?? delta.reasoning].filter((text) => (text ?? "") !== "");
  return said.length === 1 && typeof said[0] === "string" ? said[0] : undefined;
}
