import { GatewayError } from "../../platform/lib/errors.ts";
import type { FrameSource } from "../../platform/lib/frame-source.ts";
import { openCompactions } from "./compaction.ts";
import { expandConversation, resolveReferences } from "./conversation.ts";
import { itemsOfInput } from "./input-items.ts";
import { endIn, eventsIn } from "./response-event.ts";
import type { ResponseStore } from "./response-store.ts";
import type { NewResponse, ResponseItem, ResponseRecord } from "./stored-response.ts";

/** What a request to answer says about storage, and the conversation that it continues. */
export interface StoredRequest {
  /** Whether the response is kept; the dialect keeps it unless it is told not to. */
  store: boolean;
  background: boolean;
  previousResponseId: string | null;
  /** The items that the request itself brings, references resolved: what is kept with its response. */
  inputItems: readonly ResponseItem[];
  /** Everything that is to be answered, oldest first. */
  conversation: readonly ResponseItem[];
  /** The conversation is not what the body's own `input` says: of stored responses, or with the summary of a compaction. */
  expanded: boolean;
}

function flag(
  body: Readonly<Record<string, unknown>>,
  { name, absent }: { name: string; absent: boolean },
): boolean {
  const value = body[name] ?? absent;
  if (typeof value !== "boolean")
    throw new GatewayError("bad_request", `${name}: must be true or false`, { param: name });
  return value;
}

function previousOf({
  previous_response_id: previous,
}: Readonly<Record<string, unknown>>): string | null {
  if (previous === undefined || previous === null) return null;
  if (typeof previous === "string") return previous;
  throw new GatewayError("bad_request", "previous_response_id: must be the id of a response", {
    param: "previous_response_id",
  });
}

/**
 * Reads a request's body as far as stored responses are concerned. Throws 400 for fields that do not fit
 * together, and for responses and items that the workspace does not have.
 */
export async function readStoredRequest(
  store: ResponseStore,
  { body, workspaceId }: { body: Readonly<Record<string, unknown>>; workspaceId: string },
): Promise<StoredRequest> {
  const storing = flag(body, { name: "store", absent: true });
  const background = flag(body, { name: "background", absent: false });
  if (background && !storing) {
    throw new GatewayError(
      "bad_request",
      "background: needs store to be true, since a background response is read from storage.",
      {
        param: "background",
      },
    );
  }
  const previousResponseId = previousOf(body);
  const sent = itemsOfInput(body["input"]);
  const inputItems = await resolveReferences(store, { items: sent, workspaceId });
  const history =
    previousResponseId === null
      ? []
      : await expandConversation(store, { previousId: previousResponseId, workspaceId });
  const items = [...history, ...inputItems];
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

/** Whose response is kept, and since when it is one. */
export type ResponseOrigin = Pick<NewResponse, "id" | "workspaceId" | "keyId" | "createdAtMs">;

/** Keeps a response that has ended; does nothing where its request said `store: false`. Resolves when it is durable. */
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

/** A background response as it is handed to the runner: nothing of it has been answered yet. */
export function queuedResponse({
  request,
  origin,
  record,
  requestText,
}: {
  request: StoredRequest;
  origin: ResponseOrigin;
  record: ResponseRecord;
  requestText: string;
}): NewResponse {
  const { previousResponseId, inputItems } = request;
  return {
    ...origin,
    completedAtMs: null,
    background: true,
    previousResponseId,
    inputItems,
    requestText,
    record: { ...record, status: "queued" },
  };
}

/**
 * The frames of a stream, whose response is kept before the client hears of its end. A response that
 * cannot be kept is answered all the same, since it has been paid for; `keep` tells of it.
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
