import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import type { ResponseStore } from "./response-store.ts";
import { hasEnded, outputItems, type ResponseItem } from "./stored-response.ts";
import { isObject } from "../../platform/kernel/json/json-members.ts";

/**
 * The most responses that may continue each other; beyond that a conversation has to be sent in
 * full.
 */
export const conversationDepthMax = 1_000;

/** The most items that one request may refer to by id. */
const referencesMax = 10_000;

/** The most bytes of a conversation: as many as a request may have that sends all of it. */
export const conversationBytesMax = 32 * 1024 * 1024;

const bytesLimit = `${conversationBytesMax} bytes`;

const previousField = "previous_response_id";

const notFound = (message: string, param: string): GatewayError =>
  new GatewayError("previous_response_not_found", message, { param });

const tooLong = (limit: string): GatewayError =>
  badField(
    previousField,
    `the conversation has more than ${limit}. Start a new one with what is still needed of it as input.`,
  );

/**
 * Returns the items that a continuation starts with: inputs and outputs of the response and of all
 * that it continues from, oldest first. Throws 400 when one of them was deleted or is in progress,
 * or when they are too many.
 */
export async function expandConversation(
  store: ResponseStore,
  { previousId, workspaceId }: { previousId: string; workspaceId: string },
): Promise<ResponseItem[]> {
  const chain = await store.ancestors(workspaceId, previousId, conversationDepthMax + 1);
  const [latest] = chain;
  if (latest === undefined)
    throw notFound(`Previous response with id '${previousId}' not found.`, previousField);
  if (!hasEnded(latest.status)) {
    const message = `${previousField}: the response ${previousId} is still ${latest.status}. Wait until it has ended.`;
    throw new GatewayError("bad_request", message, { param: previousField });
  }
  if (chain.length > conversationDepthMax) throw tooLong(`${conversationDepthMax} responses`);
  if (chain.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) > conversationBytesMax)
    throw tooLong(bytesLimit);
  const missing = chain.at(-1)?.previousResponseId ?? null;
  if (missing !== null) throw missingAncestor(previousId, missing);
  const ids = chain.map(({ id }) => id).reverse();
  const turns = await store.turns(workspaceId, ids);
  // Deleted between the two reads.
  const gone = ids.find((id) => !turns.some((turn) => turn.id === id));
  if (gone !== undefined) throw missingAncestor(previousId, gone);
  return turns.flatMap(({ inputItems, record }) => [...inputItems, ...outputItems(record)]);
}

const missingAncestor = (previousId: string, missing: string): GatewayError =>
  notFound(
    `Previous response with id '${missing}', which '${previousId}' continues from, not found.`,
    previousField,
  );

/**
 * Returns the id that an item refers to; undefined for every other item. The dialect lets
 * references omit their type.
 */
function referredId({ type = null, id, ...rest }: ResponseItem): string | undefined {
  if (typeof id !== "string") return undefined;
  return type === "item_reference" || (type === null && !("role" in rest)) ? id : undefined;
}

/** Returns whether an item references a stored one. */
export const isReference = (item: ResponseItem): boolean => referredId(item) !== undefined;

/**
 * Returns the items with each `item_reference` replaced by the item that it names. Throws 400 for
 * one that the workspace does not have.
 */
export async function resolveReferences(
  store: ResponseStore,
  { items, workspaceId }: { items: readonly ResponseItem[]; workspaceId: string },
): Promise<readonly ResponseItem[]> {
  const wanted = new Set(items.map(referredId).filter((id) => id !== undefined));
  if (wanted.size === 0) return items;
  if (wanted.size > referencesMax) throw tooMuchReferred("input", `${referencesMax} items`);
  const found = await findItems(store, { ids: [...wanted], workspaceId });
  let bytes = 0;
  return items.map((item, index) => {
    const id = referredId(item);
    if (id === undefined) return item;
    const param = `input[${index}].id`;
    const resolved = found.get(id);
    if (resolved === undefined)
      throw notFound(`Item with id '${id}' not found. Send the item itself.`, param);
    // A reference is short and the referenced item is not: a small body could ask for any amount of
    // text.
    bytes += resolved.bytes;
    if (bytes > conversationBytesMax) throw tooMuchReferred(param, bytesLimit);
    return resolved.item;
  });
}

const tooMuchReferred = (param: string, limit: string): GatewayError =>
  badField(param, `more than ${limit} are referred to. Refer to fewer.`);

async function findItems(
  store: ResponseStore,
  { ids, workspaceId }: { ids: readonly string[]; workspaceId: string },
): Promise<Map<string, { item: ResponseItem; bytes: number }>> {
  const holders = await store.holdersOf(workspaceId, ids);
  const responseOf = (id: string): string | undefined =>
    holders.get(id) ?? storedItemPlace(id)?.responseId;
  const responseIds = [...new Set(ids.map(responseOf).filter((id) => id !== undefined))];
  if ((await store.sizeOf(workspaceId, responseIds)) > conversationBytesMax)
    throw tooMuchReferred("input", bytesLimit);
  const turns = new Map(
    (await store.turns(workspaceId, responseIds)).map((turn) => [turn.id, turn]),
  );
  return new Map(
    ids.flatMap((id) => {
      const turn = turns.get(responseOf(id) ?? "");
      if (turn === undefined) return [];
      const item = holders.has(id)
        ? outputItems(turn.record).find((output) => output["id"] === id)
        : turn.inputItems[storedItemPlace(id)?.index ?? -1];
      return item === undefined
        ? []
        : [[id, { item, bytes: Buffer.byteLength(JSON.stringify(item)) }] as const];
    }),
  );
}

/**
 * Returns the items of a request's `input`: a text is one message of the user. Throws 400 for what
 * is neither text nor a list of items.
 */
export function itemsOfInput(input: unknown): readonly ResponseItem[] {
  if (input === undefined || input === null) return [];
  if (typeof input === "string")
    return [{ type: "message", role: "user", content: [{ type: "input_text", text: input }] }];
  if (!Array.isArray(input)) throw badField("input", "must be a text or a list of items");
  input.forEach((item: unknown, index) => {
    if (!isObject(item))
      throw new GatewayError("bad_request", `input[${index}]: must be an object`, {
        param: `input[${index}]`,
      });
  });
  return input as readonly ResponseItem[];
}

/** The prefixes of an item's ids by its type, as OpenAI has them. */
const idPrefixes: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  function_call_output: "fco",
};

/**
 * Digits of the index in an id that was created here: for more items than a body of 32 MB can hold.
 */
const indexDigits = 8;

const madeIdPattern = new RegExp(`^[a-z]+_([0-9a-f]{32})([0-9a-f]{${indexDigits}})$`);

/**
 * Returns the id of an input item that came without one. It encodes the item's place, so that it
 * need not be stored.
 */
function madeId(type: string, { responseId, index }: ItemPlace): string {
  const digits =
    responseId.slice(responseId.indexOf("_") + 1) + index.toString(16).padStart(indexDigits, "0");
  return `${idPrefixes[type] ?? "item"}_${digits}`;
}

/** The place of an input item. */
export interface ItemPlace {
  responseId: string;
  index: number;
}

/** Returns the place of an item by an id that was created here; undefined for every other id. */
export function storedItemPlace(id: string): ItemPlace | undefined {
  const [, digits, index] = madeIdPattern.exec(id) ?? [];
  return digits === undefined || index === undefined
    ? undefined
    : { responseId: `resp_${digits}`, index: Number.parseInt(index, 16) };
}

/** Returns an input item as it is listed: with its type, an id, and content in parts. */
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

/** The requested part of a list. */
export interface ItemsQuery {
  order: "asc" | "desc";
  limit: number;
  /** The id of the item before the first requested one. */
  after: string | undefined;
}

/** A page of a list, as clients see it. */
export interface ItemsPage {
  object: "list";
  data: readonly ResponseItem[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}

/** Returns a page of a response's input items. Throws 400 when `after` names none of them. */
export function pageOfItems(
  items: readonly ResponseItem[],
  { responseId, query: { order, limit, after } }: { responseId: string; query: ItemsQuery },
): ItemsPage {
  const listed = items.map((item, index) => listedItem(item, { responseId, index }));
  const ordered = order === "asc" ? listed : listed.toReversed();
  const start = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  if (start === 0 && after !== undefined) {
    throw badField("after", `the response has no input item '${after}'.`);
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
