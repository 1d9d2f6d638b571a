import { GatewayError } from "../../platform/lib/errors.ts";
import type { ResponseItem } from "./stored-response.ts";

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The items of a request's `input`: a text is one message of the user. Throws 400 for what is neither text nor a list of items. */
export function itemsOfInput(input: unknown): readonly ResponseItem[] {
  if (input === undefined || input === null) return [];
  if (typeof input === "string")
    return [{ type: "message", role: "user", content: [{ type: "input_text", text: input }] }];
  if (!Array.isArray(input))
    throw new GatewayError("bad_request", "input: must be a text or a list of items", {
      param: "input",
    });
  input.forEach((item: unknown, index) => {
    if (!isObject(item))
      throw new GatewayError("bad_request", `input[${index}]: must be an object`, {
        param: `input[${index}]`,
      });
  });
  return input as readonly ResponseItem[];
}

/** What ids of an item's type begin with at the maker of the dialect. */
const idPrefixes: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  function_call_output: "fco",
};

/** Index digits of an id that was made here: more items than a body of 32 MB can hold. */
const indexDigits = 8;

const madeIdPattern = new RegExp(`^[a-z]+_([0-9a-f]{32})([0-9a-f]{${indexDigits}})$`);

/** The id of an input item that came without one: where it stands, so that it needs no place of its own. */
function madeId(type: string, { responseId, index }: ItemPlace): string {
  const digits =
    responseId.slice(responseId.indexOf("_") + 1) + index.toString(16).padStart(indexDigits, "0");
  return `${idPrefixes[type] ?? "item"}_${digits}`;
}

/** Where an input item stands. */
export interface ItemPlace {
  responseId: string;
  index: number;
}

/** Where an item stands by an id that was made here; undefined for every other id. */
export function storedItemPlace(id: string): ItemPlace | undefined {
  const [, digits, index] = madeIdPattern.exec(id) ?? [];
  return digits === undefined || index === undefined
    ? undefined
    : { responseId: `resp_${digits}`, index: Number.parseInt(index, 16) };
}

/** An input item as it is listed: with its type, an id, and content in parts. */
export function listedItem(item: ResponseItem, place: ItemPlace): ResponseItem & { id: string } {
  const type = typeof item["type"] === "string" ? item["type"] : "message";
  const id = typeof item["id"] === "string" ? item["id"] : madeId(type, place);
  if (type !== "message") return { ...item, type, id };
  const { content, role } = item;
  const partType =
    role === "assistant" ? { type: "output_text", annotations: [] } : { type: "input_text" };
  return {
    status: "completed",
    ...item,
    type,
    id,
    content: typeof content === "string" ? [{ ...partType, text: content }] : content,
  };
}

/** Which part of a list is asked for. */
export interface ItemsQuery {
  order: "asc" | "desc";
  limit: number;
  /** Id of the item before the first one wanted. */
  after: string | undefined;
}

/** One page of a list, as clients see it. */
export interface ItemsPage {
  object: "list";
  data: readonly ResponseItem[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}

/** A page of a response's input items. Throws 400 when `after` names none of them. */
export function pageOfItems(
  items: readonly ResponseItem[],
  { responseId, query: { order, limit, after } }: { responseId: string; query: ItemsQuery },
): ItemsPage {
  const listed = items.map((item, index) => listedItem(item, { responseId, index }));
  const ordered = order === "asc" ? listed : listed.toReversed();
  const start = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  if (start === 0 && after !== undefined) {
    throw new GatewayError("bad_request", `after: the response has no input item '${after}'.`, {
      param: "after",
    });
  }
  const data = ordered.slice(start, start + limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: start + limit < ordered.length,
  };
}
