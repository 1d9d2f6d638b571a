import type { JsonObject } from "../../../canonical/json.ts";
import { asArray, asNumber, asObject, asString } from "../../shared/wire-fields.ts";

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

/** A kind of text: the type of item that contains it, and its part before it is filled. */
interface TextKind {
  item: "message" | "reasoning";
  part: JsonObject;
}

const outputText: TextKind = {
  item: "message",
  part: { type: "output_text", text: "", annotations: [], logprobs: [] },
};
const refusal: TextKind = { item: "message", part: { type: "refusal", refusal: "" } };
const reasoningText: TextKind = { item: "reasoning", part: { type: "reasoning_text", text: "" } };
const summaryText: TextKind = { item: "reasoning", part: { type: "summary_text", text: "" } };

/** The kind of text that an event adds to or ends, by the event's type. */
const kindByEvent: ReadonlyMap<string, TextKind> = new Map([
  ["response.output_text.delta", outputText],
  ["response.output_text.done", outputText],
  ["response.output_text.annotation.added", outputText],
  ["response.refusal.delta", refusal],
  ["response.refusal.done", refusal],
  ["response.reasoning_text.delta", reasoningText],
  ["response.reasoning_text.done", reasoningText],
  ["response.reasoning_summary_text.delta", summaryText],
  ["response.reasoning_summary_text.done", summaryText],
]);

/** The kind of text that a part contains, by the part's type. */
const kindByPart: ReadonlyMap<string, TextKind> = new Map(
  [outputText, refusal, reasoningText, summaryText].map((kind) => [String(kind.part.type), kind]),
);

/** The members of an item that later events fill, as they are at its start. */
const unfilled: Readonly<Record<string, JsonObject>> = {
  message: { content: [] },
  reasoning: { summary: [] },
  function_call: { arguments: "" },
  custom_tool_call: { input: "" },
};

/**
 * Tracks which items and parts of a stream have begun, and finds the starts that are missing.
 * OpenAI's clients throw at text whose item or part was never added, and some servers that imitate
 * OpenAI's leave these events out.
 */
export class StreamStarts {
  private readonly items = new Set<number>();
  private readonly parts = new Set<string>();

  constructor(private readonly responseId: string) {}

  /**
   * Returns the starts of an item and of a part that have to precede an event and are missing. A
   * call has none before it is done, since only then its name is known.
   */
  before(type: string, event: PlacedEvent): MissingEvent[] {
    const index = event.output_index;
    if (typeof index !== "number") return [];
    const kind = kindOf(type, event);
    const item = this.items.has(index) ? undefined : this.itemOf(type, { event, index, kind });
    const missing: MissingEvent[] =
      item === undefined
        ? []
        : [{ type: "response.output_item.added", fields: { output_index: index, item } }];
    if (item !== undefined) this.items.add(index);
    if (kind === undefined || type.endsWith("_part.added")) return missing;
    return [...missing, ...this.partOf(event, { index, kind })];
  }

  /** Records the item or the parts that an event begins. */
  note(type: string, event: PlacedEvent): void {
    const index = event.output_index;
    if (typeof index !== "number") return;
    if (type === "response.output_item.added") {
      this.items.add(index);
      const { content, summary } = asObject(event.item as JsonObject) ?? {};
      for (const place of (asArray(content) ?? []).keys()) this.parts.add(`${index}/c${place}`);
      for (const place of (asArray(summary) ?? []).keys()) this.parts.add(`${index}/s${place}`);
    } else if (type.endsWith("_part.added"))
      this.parts.add(partKey(event, { index, isSummary: type === summaryPartAdded }));
  }

  private itemOf(
    type: string,
    { event, index, kind }: { event: PlacedEvent; index: number; kind: TextKind | undefined },
  ): JsonObject | undefined {
    if (type === "response.output_item.done") {
      const item = asObject(event.item as JsonObject);
      const itemType = asString(item?.type) ?? "";
      if (item === undefined || !Object.hasOwn(unfilled, itemType)) return undefined;
      return { ...item, status: "in_progress", ...unfilled[itemType] };
    }
    if (kind === undefined) return undefined;
    const prefix = kind.item === "message" ? "msg" : "rs";
    return {
      id: asString(event.item_id as string) ?? `${prefix}_${this.responseId}_${index}`,
      type: kind.item,
      status: "in_progress",
      ...(kind.item === "message" && { role: "assistant" }),
      ...unfilled[kind.item],
    };
  }

  private partOf(
    event: PlacedEvent,
    { index, kind }: { index: number; kind: TextKind },
  ): MissingEvent[] {
    const isSummary = kind === summaryText;
    const key = partKey(event, { index, isSummary });
    if (this.parts.has(key)) return [];
    this.parts.add(key);
    const place = asNumber((isSummary ? event.summary_index : event.content_index) as number) ?? 0;
    const itemId = asString(event.item_id as string);
    return [
      {
        type: isSummary ? summaryPartAdded : "response.content_part.added",
        fields: {
          ...(itemId !== undefined && { item_id: itemId }),
          output_index: index,
          [isSummary ? "summary_index" : "content_index"]: place,
          part: kind.part,
        },
      },
    ];
  }
}

const summaryPartAdded = "response.reasoning_summary_part.added";

/** Returns the kind of text that an event is about; undefined where it is about none. */
function kindOf(type: string, { part }: PlacedEvent): TextKind | undefined {
  const isOfPart = type.endsWith("_part.added") || type.endsWith("_part.done");
  return isOfPart
    ? kindByPart.get(asString(asObject(part as JsonObject)?.type) ?? "")
    : kindByEvent.get(type);
}

/** Returns the name of an event's part: its item, and its place in `content` or `summary`. */
function partKey(
  event: PlacedEvent,
  { index, isSummary }: { index: number; isSummary: boolean },
): string {
  return isSummary
    ? `${index}/s${asNumber(event.summary_index as number) ?? 0}`
    : `${index}/c${asNumber(event.content_index as number) ?? 0}`;
}
