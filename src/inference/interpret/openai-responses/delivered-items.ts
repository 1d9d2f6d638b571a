import type { JsonObject, JsonValue } from "../../canonical/json.ts";

interface DeliveredItem {
  item: Record<string, JsonValue | undefined>;
  isDone: boolean;
}

/** An event of an item as far as it is read. */
export interface ItemEvent {
  output_index?: unknown;
  content_index?: unknown;
  summary_index?: unknown;
  delta?: unknown;
  item?: unknown;
}

/** Which list of the item a delta adds to, and what stands there before it is filled. */
const partsOfDelta: Readonly<
  Record<string, { list: "content" | "summary"; field: "text" | "refusal"; empty: JsonObject }>
> = {
  "response.output_text.delta": {
    list: "content",
    field: "text",
    empty: { type: "output_text", text: "", annotations: [], logprobs: [] },
  },
  "response.refusal.delta": {
    list: "content",
    field: "refusal",
    empty: { type: "refusal", refusal: "" },
  },
  "response.reasoning_text.delta": {
    list: "content",
    field: "text",
    empty: { type: "reasoning_text", text: "" },
  },
  "response.reasoning_summary_text.delta": {
    list: "summary",
    field: "text",
    empty: { type: "summary_text", text: "" },
  },
};

const fieldOfDelta: Readonly<Record<string, "arguments" | "input">> = {
  "response.function_call_arguments.delta": "arguments",
  "response.custom_tool_call_input.delta": "input",
};

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** The items of a stream as far as they came, for the record of a response that broke off. */
export class DeliveredItems {
  private readonly items = new Map<number, DeliveredItem>();

  observe(type: string, event: ItemEvent): void {
    const index = event.output_index;
    if (typeof index !== "number" || !Number.isInteger(index)) return;
    const isDone = type === "response.output_item.done";
    if (isDone || type === "response.output_item.added")
      this.items.set(index, { item: { ...(Object(event.item) as JsonObject) }, isDone });
    else if (typeof event.delta === "string")
      this.append(type, { delta: event.delta, event, item: this.items.get(index)?.item });
  }

  /** In their order; those that were not finished say so. */
  output(): JsonObject[] {
    return [...this.items]
      .sort(([a], [b]) => a - b)
      .map(([, { item, isDone }]) => (isDone ? item : { ...item, status: "incomplete" }));
  }

  /** Those that have not ended, by their place, as far as they came. */
  unfinished(): [number, JsonObject][] {
    const open = [...this.items].sort(([a], [b]) => a - b).filter(([, { isDone }]) => !isDone);
    return open.map(([index, { item }]) => [index, { ...item, status: "incomplete" }]);
  }

  private append(
    type: string,
    {
      delta,
      event,
      item,
    }: { delta: string; event: ItemEvent; item: DeliveredItem["item"] | undefined },
  ): void {
    // The type is the upstream's word, and objects have names of their own.
    const field = Object.hasOwn(fieldOfDelta, type) ? fieldOfDelta[type] : undefined;
    const part = Object.hasOwn(partsOfDelta, type) ? partsOfDelta[type] : undefined;
    if (item === undefined) return;
    if (field !== undefined) item[field] = textOf(item[field]) + delta;
    if (part === undefined) return;
    const told = part.list === "summary" ? event.summary_index : event.content_index;
    const index = typeof told === "number" && Number.isInteger(told) ? told : 0;
    const list = Array.isArray(item[part.list])
      ? [...(item[part.list] as readonly JsonObject[])]
      : [];
    // A part that an upstream skips is nobody's: the text goes to the next one that there can be.
    const at = Math.max(0, Math.min(index, list.length));
    const before = list[at] ?? part.empty;
    list[at] = { ...before, [part.field]: textOf(before[part.field]) + delta };
    item[part.list] = list;
  }
}
