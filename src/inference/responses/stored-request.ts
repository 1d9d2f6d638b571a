import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import type { FrameSource } from "../../platform/kernel/frame-source.ts";
import {
  expandConversation,
  isReference,
  itemsOfInput,
  resolveReferences,
} from "./conversation.ts";
import {
  endIn,
  eventsIn,
  type NewResponse,
  type ResponseItem,
  type ResponseRecord,
} from "./stored-response.ts";
import type { ResponseStore } from "./response-store.ts";

/** A request's choices about storage, and the conversation that it continues. */
export interface StoredRequest {
  /** Whether the response is stored, which is the dialect's default. */
  store: boolean;
  background: boolean;
  previousResponseId: string | null;
  /**
   * The items of the request itself, with references resolved, which are stored with its response.
   */
  inputItems: readonly ResponseItem[];
  /** The whole conversation to be answered, oldest first. */
  conversation: readonly ResponseItem[];
  /**
   * Whether the conversation differs from the body's own `input`: it contains stored responses, or
   * the summary of a compaction.
   */
  expanded: boolean;
}

function flag(
  body: Readonly<Record<string, unknown>>,
  { name, absent }: { name: string; absent: boolean },
): boolean {
  const value = body[name] ?? absent;
  if (typeof value !== "boolean") throw badField(name, "must be true or false");
  return value;
}

function previousOf({
  previous_response_id: previous,
}: Readonly<Record<string, unknown>>): string | null {
  if (previous === undefined || previous === null) return null;
  if (typeof previous === "string") return previous;
  throw badField("previous_response_id", "must be the id of a response");
}

/**
 * Reads the storage fields of a request's body. Throws 400 for fields that exclude each other, and
 * for responses and items that the workspace does not have.
 */
export async function readStoredRequest(
  store: ResponseStore,
  {
    body,
    workspaceId,
    counted,
    recall,
  }: {
    body: Readonly<Record<string, unknown>>;
    workspaceId: string;
    /** Returns the conversation of a response that need not be stored; undefined for any other. */
    recall?: ((responseId: string) => readonly ResponseItem[] | undefined) | undefined;
    /** Rejects where rate windows refuse the request, in which case nothing is read. */
    counted?: Promise<void> | undefined;
  },
): Promise<StoredRequest> {
  const storing = flag(body, { name: "store", absent: true });
  const background = flag(body, { name: "background", absent: false });
  if (background && !storing) {
    throw badField(
      "background",
      "needs store to be true, since a background response is read from storage.",
    );
  }
  const previousResponseId = previousOf(body);
  const sent = itemsOfInput(body["input"]);
  if (previousResponseId !== null || sent.some(isReference)) await counted;
  const inputItems = await resolveReferences(store, { items: sent, workspaceId });
  const history =
    previousResponseId === null
      ? []
      : (recall?.(previousResponseId) ??
        (await expandConversation(store, { previousId: previousResponseId, workspaceId })));
  const items = [...history, ...inputItems];
  if (previousResponseId !== null) refuseUnaskedResults(inputItems, items);
  const conversation = openCompactions(items);
  return {
    store: storing,
    background,
    previousResponseId,
    inputItems,
    conversation,
    expanded: history.length > 0 || inputItems !== sent || conversation !== items,
  };
}

/** The items that are results of calls which may be missing. */
const resultTypes: ReadonlySet<unknown> = new Set([
  "function_call_output",
  "custom_tool_call_output",
]);

/**
 * Throws 400, as OpenAI does, for the result of a call that the continued conversation does not
 * have. Calls may be part of a compaction, which only its provider can read.
 */
function refuseUnaskedResults(sent: readonly ResponseItem[], items: readonly ResponseItem[]): void {
  const results = sent.filter(({ type }) => resultTypes.has(type));
  if (results.length === 0 || items.some(isCompaction)) return;
  // Of any type: Codex answers the call of a local shell as that of a function.
  const calls = items.filter(({ type }) => !resultTypes.has(type));
  const known = new Set(calls.map(({ call_id: id }) => id));
  const unasked = results.find(({ call_id: id }) => !known.has(id));
  if (unasked === undefined) return;
  const message = `No tool call found for function call output with call_id ${String(unasked["call_id"])}.`;
  throw new GatewayError("bad_request", message, { param: "input" });
}

/** The owner of a stored response, and when it was created. */
export type ResponseOrigin = Pick<NewResponse, "id" | "workspaceId" | "keyId" | "createdAtMs">;

/**
 * Stores a response that has ended; does nothing where its request said `store: false`. Resolves
 * when it is durable.
 */
export async function keepResponse(
  store: ResponseStore,
  {
    request,
    origin,
    record,
    endedAtMs,
  }: { request: StoredRequest; origin: ResponseOrigin; record: ResponseRecord; endedAtMs: number },
): Promise<void> {
  if (!request.store) return;
  const { background, previousResponseId, inputItems } = request;
  await store.insert({
    ...origin,
    completedAtMs: endedAtMs,
    background,
    previousResponseId,
    inputItems,
    record,
    requestText: null,
  });
}

/**
 * Returns a background response as it is submitted to the runner, before any of it was answered.
 */
export function queuedResponse({
  request,
  origin,
  record,
  requestText,
  presetId,
}: {
  request: StoredRequest;
  origin: ResponseOrigin;
  record: ResponseRecord;
  requestText: string;
  presetId: string | undefined;
}): NewResponse {
  const { previousResponseId, inputItems } = request;
  return {
    ...origin,
    completedAtMs: null,
    background: true,
    previousResponseId,
    inputItems,
    requestText,
    presetId,
    record: { ...record, status: "queued" },
  };
}

/**
 * Returns the frames of a stream, whose response is stored before the client receives its end. A
 * response that cannot be stored is answered all the same, since it has been paid for; `keep`
 * reports it.
 */
export function keptStream(
  source: FrameSource,
  keep: (record: ResponseRecord) => Promise<void>,
): FrameSource {
  return {
    async next() {
      const frames = await source.next();
      const end = frames?.includes("response.") ? endIn(eventsIn(frames)) : undefined;
      if (end !== undefined) await keep(end.record);
      return frames;
    },
    cancel: () => source.cancel(),
  };
}

/**
 * The prefix of what this gateway writes into a compaction item; items of providers have another
 * and pass unchanged.
 */
const mark = "swc1.";

/** Asks the model for what it needs to continue without the conversation. */
const instruction =
  "Summarise the conversation above so that you can go on with it from the summary alone. Write down the user's goals " +
  "and wishes in their own words, every decision and its reason, facts, names, numbers, paths and code that are still needed, what " +
  "was done, the results of tool calls that matter, and what is to be done next. Write the summary only. Call no tools.";

const introduction =
  "The conversation so far was replaced by this summary of it. Go on from here.\n\n";

const userMessage = (text: string): ResponseItem => ({
  type: "message",
  role: "user",
  content: [{ type: "input_text", text }],
});

/** Fields of a request that affect how a model answers and not the summary. */
const unusedFields = [
  "stream",
  "stream_options",
  "background",
  "text",
  "previous_response_id",
  "include",
  "tool_choice",
  "parallel_tool_calls",
  "truncation",
];

/** Returns the request that makes the model summarise a conversation. */
export function compactionRequest(
  body: Readonly<Record<string, unknown>>,
  conversation: readonly ResponseItem[],
): Record<string, unknown> {
  const kept = Object.fromEntries(
    Object.entries(body).filter(([name]) => !unusedFields.includes(name)),
  );
  const hasTools = Array.isArray(kept["tools"]) && kept["tools"].length > 0;
  return {
    ...kept,
    ...(hasTools ? { tool_choice: "none" } : {}),
    store: false,
    input: [...conversation, userMessage(instruction)],
  };
}

/**
 * Returns a compaction item with a summary. The client holds it and may read its own conversation,
 * so it is plain text and not encrypted: it can be continued on every model, on every gateway, and
 * after a change of keys.
 */
export const compactionItem = (id: string, summary: string): ResponseItem => ({
  type: "compaction",
  id,
  encrypted_content: mark + Buffer.from(summary, "utf8").toString("base64url"),
});

/**
 * Returns the conversation with the gateway's own compaction items as messages that every model
 * reads; the same list where there are none.
 */
function openCompactions(items: readonly ResponseItem[]): readonly ResponseItem[] {
  if (!items.some(isOwn)) return items;
  return items.map((item, index) =>
    isOwn(item) ? userMessage(introduction + summaryOf(item, index)) : item,
  );
}

const isCompaction = ({ type }: ResponseItem): boolean =>
  type === "compaction" || type === "compaction_summary";

const isOwn = (item: ResponseItem): boolean =>
  isCompaction(item) && String(item["encrypted_content"]).startsWith(mark);

function summaryOf({ encrypted_content: content }: ResponseItem, index: number): string {
  const summary = Buffer.from(String(content).slice(mark.length), "base64url").toString("utf8");
  if (summary !== "") return summary;
  const param = `input[${index}].encrypted_content`;
  throw badField(param, "holds no summary. Send the item as POST /responses/compact answered it.");
}
