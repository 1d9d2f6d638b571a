import type { JsonObject } from "../../../canonical/json.ts";
import { asArray, asNumber, asObject, asString } from "../../wire-fields.ts";

/** An event that the provider left out. */
interface MissingEvent {
  type: string;
  fields: JsonObject;
}

/** The places of an event that are read; a provider may write anything into them. */
interface PlacedEvent {
  output_index?: unknown;
  content_index?: unknown;
  summary_index?: unknown;
  item_id?: unknown;
  item?: unknown;
  part?: unknown;
}

/** The text that an event belongs to: the type of its part, and the kind of item that has it. */
interface Words {
  item: "message" | "reasoning";
  part: JsonObject;
}

const outputText: Words = {
  item: "message",
  part: { type: "output_text", text: "", annotations: [], logprobs: [] },
};
const refusal: Words = { item: "message", part: { type: "refusal", refusal: "" } };
const thought: Words = { item: "reasoning", part: { type: "reasoning_text", text: "" } };
const summary: Words = { item: "reasoning", part: { type: "summary_text", text: "" } };

/** The words that an event is about, by its type. */
const wordsOfEvent: ReadonlyMap<string, Words> = new Map([
  ["response.output_text.delta", outputText],
  ["response.output_text.done", outputText],
  ["response.output_text.annotation.added", outputText],
  ["response.refusal.delta", refusal],
  ["response.refusal.done", refusal],
  ["response.reasoning_text.delta", thought],
  ["response.reasoning_text.done", thought],
  ["response.reasoning_summary_text.delta", summary],
  ["response.reasoning_summary_text.done", summary],
]);

/** The words of a part that is added or done, by the type of the part. */
const wordsOfPart: ReadonlyMap<string, Words> = new Map(
  [outputText, refusal, thought, summary].map((words) => [String(words.part.type), words]),
);

/** The members of an item that are filled by later events, before they are. */
const unfilled: Readonly<Record<string, JsonObject>> = {
  message: { content: [] },
  reasoning: { summary: [] },
  function_call: { arguments: "" },
  custom_tool_call: { input: "" },
};

/**
 * Knows which items and parts of a stream have begun. Clients throw at words whose item or part
 * was never added, which some servers that imitate OpenAI's leave out.
 */
export class StreamStarts {
  private readonly items = new Set<number>();
  private readonly parts = new Set<string>();
  private readonly responseId: string;

  constructor(responseId: string) {
    this.responseId = responseId;
  }

  /**
   * Returns the starts of an item and of a part that must precede an event and are missing. The
   * start of a call cannot be known before the call is done.
   */
  before(type: string, event: PlacedEvent): MissingEvent[] {
    const index = event.output_index;
    if (typeof index !== "number") return [];
    const words = wordsOf(type, event);
    const item = this.items.has(index) ? undefined : this.itemOf(type, { event, index, words });
    const missing: MissingEvent[] =
      item === undefined
        ? []
        : [{ type: "response.output_item.added", fields: { output_index: index, item } }];
    if (item !== undefined) this.items.add(index);
    if (words === undefined || type.endsWith("_part.added")) return missing;
    return [...missing, ...this.partOf(event, { index, words })];
  }

  /** Notes what an event begins. */
  note(type: string, event: PlacedEvent): void {
    const index = event.output_index;
    if (typeof index !== "number") return;
    if (type === "response.output_item.added") {
      this.items.add(index);
      const { content, summary: thoughts } = asObject(event.item as JsonObject) ?? {};
      for (const place of (asArray(content) ?? []).keys()) this.parts.add(`${index}/c${place}`);
      for (const place of (asArray(thoughts) ?? []).keys()) this.parts.add(`${index}/s${place}`);
    } else if (type.endsWith("_part.added")) this.parts.add(partKey(event, index));
  }

  private itemOf(
    type: string,
    { event, index, words }: { event: PlacedEvent; index: number; words: Words | undefined },
  ): JsonObject | undefined {
    if (type === "response.output_item.done") {
      const item = asObject(event.item as JsonObject);
      const kind = asString(item?.type) ?? "";
      if (item === undefined || !Object.hasOwn(unfilled, kind)) return undefined;
      return { ...item, status: "in_progress", ...unfilled[kind] };
    }
    if (words === undefined) return undefined;
    const prefix = words.item === "message" ? "msg" : "rs";
    return {
      id: asString(event.item_id as string) ?? `${prefix}_${this.responseId}_${index}`,
      type: words.item,
      status: "in_progress",
      ...(words.item === "message" && { role: "assistant" }),
      ...unfilled[words.item],
    };
  }

  private partOf(
    event: PlacedEvent,
    { index, words }: { index: number; words: Words },
  ): MissingEvent[] {
    const key = partKey(event, index, words);
    if (this.parts.has(key)) return [];
    this.parts.add(key);
    const isSummary = words === summary;
    const place = asNumber((isSummary ? event.summary_index : event.content_index) as number) ?? 0;
    const itemId = asString(event.item_id as string);
    return [
      {
        type: isSummary ? "response.reasoning_summary_part.added" : "response.content_part.added",
        fields: {
          ...(itemId !== undefined && { item_id: itemId }),
          output_index: index,
          [isSummary ? "summary_index" : "content_index"]: place,
          part: words.part,
        },
      },
    ];
  }
}

function wordsOf(type: string, { part }: PlacedEvent): Words | undefined {
  const isOfPart = type.endsWith("_part.added") || type.endsWith("_part.done");
  return isOfPart
    ? wordsOfPart.get(asString(asObject(part as JsonObject)?.type) ?? "")
    : wordsOfEvent.get(type);
}

function partKey(event: PlacedEvent, index: number, words?: Words): string {
  const isSummary = words === summary || (words === undefined && event.summary_index !== undefined);
  return isSummary
    ? `${index}/s${asNumber(event.summary_index as number) ?? 0}`
    : `${index}/c${asNumber(event.content_index as number) ?? 0}`;
}
