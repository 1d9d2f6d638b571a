import { GatewayError } from "../../platform/lib/errors.ts";
import { storedItemPlace } from "./input-items.ts";
import type { ResponseStore } from "./response-store.ts";
import { hasEnded, outputItems, type ResponseItem } from "./stored-response.ts";

/** Responses that one may continue from each other; beyond that a conversation has to be sent in full. */
export const conversationDepthMax = 1_000;

/** Items that one request may refer to by their ids. */
const referencesMax = 10_000;

/** Bytes of a conversation: as many as a request may have that sends all of it. */
export const conversationBytesMax = 32 * 1024 * 1024;

const bytesLimit = `${conversationBytesMax} bytes`;

const previousField = "previous_response_id";

const notFound = (message: string, param: string): GatewayError =>
  new GatewayError("previous_response_not_found", message, { param });

const tooLong = (limit: string): GatewayError =>
  new GatewayError(
    "bad_request",
    `${previousField}: the conversation has more than ${limit}. Start a new one with what is still needed of it as input.`,
    { param: previousField },
  );

/**
 * The items that a continuation starts with: inputs and outputs of the response and of all that it
 * continues from, oldest first. Throws 400 when one of them is gone or under way, or when they are too many.
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

/** Id that an item refers to; undefined for every other item. The dialect lets references leave out their type. */
function referredId({ type = null, id, ...rest }: ResponseItem): string | undefined {
  if (typeof id !== "string") return undefined;
  return type === "item_reference" || (type === null && !("role" in rest)) ? id : undefined;
}

/** The items with each `item_reference` replaced by the item that it names. Throws 400 for one that nobody has. */
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
    // A reference is short and what it names is not: a small body could ask for any amount of text.
    bytes += resolved.bytes;
    if (bytes > conversationBytesMax) throw tooMuchReferred(param, bytesLimit);
    return resolved.item;
  });
}

const tooMuchReferred = (param: string, limit: string): GatewayError =>
  new GatewayError("bad_request", `${param}: more than ${limit} are referred to. Refer to fewer.`, {
    param,
  });

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
