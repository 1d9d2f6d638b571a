import type { Content } from "../../insights/archive/content-insert.ts";
import { fieldsOf, entriesOf } from "../../platform/kernel/json/json-members.ts";

/** The texts that a model answered and reasoned; null where it did not. */
interface AnswerTexts {
  completion: string | null;
  reasoning: string | null;
}

/** Collects the texts of an answer, from any part of it. */
class TextGatherer {
  private readonly said: string[] = [];
  private readonly thought: string[] = [];

  /** Takes a whole answer, or an event of one, in its client's dialect. */
  take(value: unknown): void {
    const part = fieldsOf(value);
    for (const choice of entriesOf(part["choices"])) {
      const { delta, message, text } = fieldsOf(choice);
      this.say(text);
      this.takeMessage(fieldsOf(delta ?? message));
    }
    // Messages: blocks of a whole answer, and what streams add to them.
    for (const block of entriesOf(part["content"])) this.takeBlock(fieldsOf(block));
    this.takeBlock(fieldsOf(part["delta"]));
    // Responses: items of a whole answer, and what streams add to their texts.
    for (const item of entriesOf(part["output"])) this.takeItem(fieldsOf(item));
    const type = String(part["type"]);
    if (type === "response.output_text.delta") this.say(part["delta"]);
    if (/^response\.reasoning(?:_summary)?_text\.delta$/.test(type)) this.think(part["delta"]);
  }

  get texts(): AnswerTexts {
    const joined = (parts: readonly string[]): string | null =>
      parts.length === 0 ? null : parts.join("");
    return { completion: joined(this.said), reasoning: joined(this.thought) };
  }

  private takeMessage(message: Record<string, unknown>): void {
    this.say(message["content"]);
    this.think(message["reasoning"]);
  }

  private takeBlock({ text, thinking }: Record<string, unknown>): void {
    this.say(text);
    this.think(thinking);
  }

  private takeItem(item: Record<string, unknown>): void {
    for (const part of entriesOf(item["summary"])) this.think(fieldsOf(part)["text"]);
    const isThought = item["type"] === "reasoning";
    for (const part of entriesOf(item["content"]))
      if (isThought) this.think(fieldsOf(part)["text"]);
      else this.say(fieldsOf(part)["text"]);
  }

  private say(text: unknown): void {
    if (typeof text === "string" && text !== "") this.said.push(text);
  }

  private think(text: unknown): void {
    if (typeof text === "string" && text !== "") this.thought.push(text);
  }
}

/** Parses JSON; undefined for a text that was cut. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns what a sound says: JSON, the last event of a stream, or a text or captions as they are. */
function transcriptOf({
  streamed,
  answer: { text },
}: Pick<Content, "streamed" | "answer">): string | null {
  if (!streamed && !text.startsWith("{")) return text;
  const events = streamed
    ? [...text.matchAll(/^data: ?(\{.*)$/gm)].map(([, data]) => data)
    : [text];
  const { text: said } = fieldsOf(parsed(events.at(-1) ?? ""));
  return typeof said === "string" ? said : null;
}

/**
 * Returns the texts of an answer, as far as they can be read from what was kept. Those of a whole
 * answer that was cut are unknown. Pictures and speech have none.
 */
export function answerTexts({
  surface,
  streamed,
  answer,
}: Pick<Content, "surface" | "streamed" | "answer">): AnswerTexts {
  if (surface === "transcriptions")
    return { completion: transcriptOf({ streamed, answer }), reasoning: null };
  if (surface === "images" || surface === "speech") return { completion: null, reasoning: null };
  const gatherer = new TextGatherer();
  if (!streamed) gatherer.take(parsed(answer.text));
  else
    for (const [, data = ""] of answer.text.matchAll(/^data: ?(\{.*)$/gm))
      gatherer.take(parsed(data));
  return gatherer.texts;
}
