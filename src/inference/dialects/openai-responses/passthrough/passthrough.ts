import {
  editInParts,
  editMembers,
  joined,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";
import type { Loss } from "../../../canonical/request.ts";
import { isForeignReasoning, openProvenance } from "../../../canonical/reasoning.ts";
import { fittedCap } from "../../shared/output-cap.ts";
import type { OriginalRequest, Passthrough, TargetRoute } from "../../shared/exchange.ts";
import { removeRefused } from "../../shared/extras/charged-extras.ts";
import { wantsMetadataInLastEvent } from "../../shared/gateway-facts.ts";
import {
  clampEffort,
  flatEffort,
  reasonsAt,
  takesFormat,
  undeclaredFormat,
} from "../../shared/reasoning-rules.ts";
import { badRequest } from "../../shared/wire-fields.ts";
import type { DialectDeviations } from "../../deviations.ts";
import { takenCallId } from "../answer-fields.ts";
import { includedSeals } from "../decode-request.ts";
import { refusedFields } from "../../shared/refused-parameters.ts";
import { readResponse } from "./passthrough-answer.ts";
import { responsesGatewayFields, responsesLifecycleFields } from "../request-schema.ts";
import { AnswerReader } from "../../shared/stream/answer-reader.ts";
import { ResponsesStreamDecoder } from "../decode-stream.ts";
import { KeptWriter } from "./passthrough-stream.ts";

/**
 * Passes requests of Responses clients to Responses upstreams: the original bytes, with only those
 * members replaced that have to change.
 */
export function passThrough(request: OriginalRequest, route: TargetRoute): Passthrough {
  const { text, parts, losses } = requestText(request, route);
  const providerId = route.route.provider.id;
  return {
    requestText: text,
    requestParts: parts,
    losses,
    readWhole: (whole, body) => readResponse(whole, body, { request, providerId }),
    openStream(options) {
      const decoder = new ResponsesStreamDecoder();
      const reader = new AnswerReader(decoder, options);
      const metadataInLastEvent = wantsMetadataInLastEvent(request);
      const kept = { ...options, request, providerId, metadataInLastEvent, reader, decoder };
      return { reader, writer: new KeptWriter(kept) };
    },
  };
}

type Edits = Map<string, string | undefined>;

/** A request as it is sent upstream. */
interface RequestText {
  text: string;
  /** The same text in parts. */
  parts: readonly string[];
  losses: readonly Loss[];
}

/**
 * Returns the body for a candidate that speaks Responses too: the original text with only those
 * members replaced that have to change. Nothing is stored upstream; the gateway stores what is to
 * be kept.
 */
export function requestText(
  request: OriginalRequest,
  { route, model, outputCap }: TargetRoute,
): RequestText {
  const { body, text } = request;
  const edits: Edits = new Map([
    ["model", JSON.stringify(route.upstreamModel)],
    ["store", "false"],
  ]);
  for (const field of [...responsesGatewayFields, ...responsesLifecycleFields])
    if (field in body) edits.set(field, undefined);
  const { max_output_tokens: asked } = body;
  const fitted = fittedCap(asked, { field: "max_output_tokens", route, outputCap });
  if (fitted.cap !== undefined && fitted.cap !== asked)
    edits.set("max_output_tokens", String(fitted.cap));
  const summary = editReasoning(request, {
    edits,
    declared: route.reasoning ?? model.reasoning,
    takesSummary: route.provider.deviations.noReasoningSummary !== true,
  });
  if (asksForSeals(body, { route, model })) askForSeals(body, edits);
  const lifecycle = removeBackgroundOptions(body, edits);
  const { items, losses } = replayedItems(body["input"], route.provider);
  if (items !== undefined) edits.set("input", JSON.stringify(items));
  const stripped = [
    ...stripFormat(request, { edits, route }),
    ...removeRefused(body, { edits, deviations: route.provider.deviations }),
  ];
  const refused = removeForModel(body, { edits, route });
  const parts = editInParts(text, edits);
  return {
    text: joined(parts),
    parts,
    losses: [...fitted.losses, ...losses, ...lifecycle, ...summary, ...stripped, ...refused],
  };
}

/**
 * Removes the window within which a provider may run a response of the background, since the gateway
 * runs it itself and providers refuse the window without `background`.
 */
function removeBackgroundOptions(body: OriginalRequest["body"], edits: Edits): Loss[] {
  if (!("background_options" in body)) return [];
  edits.set("background_options", undefined);
  const { completion_window: window = "soonest", continuation_id: continuation } = Object(
    body["background_options"],
  ) as Readonly<Record<string, unknown>>;
  if (window === "soonest" && continuation === undefined) return [];
  const reason = "responses of the background are run by the gateway, at once";
  return [{ field: "background_options", reason }];
}

/** Removes what the model answers with 400: parameters, and reasoning where it has none. */
function removeForModel(
  body: OriginalRequest["body"],
  { edits, route }: { edits: Edits; route: TargetRoute["route"] },
): Loss[] {
  const { refuses } = route;
  if (refuses === undefined) return [];
  const { fields, losses } = refusedFields(body, {
    deviations: route.provider.deviations,
    refuses,
  });
  const gone = fields.filter((field) => !edits.has(field) || edits.get(field) !== undefined);
  for (const field of gone) edits.set(field, undefined);
  const removed = losses.filter(({ field }) => gone.includes(field));
  if (!refuses.always.includes("reasoning_effort")) return removed;
  const { include } = body;
  if (Array.isArray(include) && include.includes(includedSeals))
    edits.set("include", JSON.stringify(include.filter((name) => name !== includedSeals)));
  if (!body["reasoning"]) return removed;
  edits.set("reasoning", undefined);
  return [...removed, { field: "reasoning", reason: "the model does not reason" }];
}

/** Removes the response format for a route that does not declare it. */
function stripFormat(
  { body, text }: OriginalRequest,
  { edits, route }: { edits: Edits; route: TargetRoute["route"] },
): Loss[] {
  const { format } = Object(body["text"]) as { format?: { type?: unknown } | null };
  if (!format || format.type === "text" || takesFormat(route)) return [];
  const member = scanMembers(text).findLast(({ key }) => key === "text");
  if (member === undefined) return [];
  edits.set(
    "text",
    editMembers(text.slice(member.valueStart, member.valueEnd), new Map([["format", undefined]])),
  );
  return [undeclaredFormat("text.format")];
}

/**
 * Members of `reasoning` that only the gateway has, for what OpenAI expresses by an effort and by
 * summaries.
 */
const ownMembers = ["enabled", "max_tokens", "exclude"] as const;

/** Fits the caller's reasoning to what the model takes, and returns what was lost. */
function editReasoning(
  { body, text }: OriginalRequest,
  {
    edits,
    declared,
    takesSummary,
  }: { edits: Edits; declared: Parameters<typeof clampEffort>[1]; takesSummary: boolean },
): Loss[] {
  const reasoning = body["reasoning"] as Readonly<Record<string, unknown>> | null | undefined;
  const member = reasoning
    ? scanMembers(text).findLast(({ key }) => key === "reasoning")
    : undefined;
  if (!reasoning || member === undefined) return [];
  const inner: Edits = new Map(
    ownMembers.filter((name) => name in reasoning).map((name) => [name, undefined]),
  );
  const leavesSummary = (reasoning.exclude === true || !takesSummary) && "summary" in reasoning;
  if (leavesSummary) inner.set("summary", undefined);
  const asked = askedEffort(reasoning);
  const effort = asked === undefined ? undefined : clampEffort(asked, declared);
  if (asked !== undefined && effort !== reasoning.effort)
    inner.set("effort", effort === undefined ? undefined : JSON.stringify(effort));
  if (inner.size > 0)
    edits.set("reasoning", editMembers(text.slice(member.valueStart, member.valueEnd), inner));
  return leavesSummary && !takesSummary && reasoning["summary"] !== null
    ? [{ field: "reasoning.summary", reason: "the upstream takes no wish for summaries" }]
    : [];
}

/**
 * Returns the effort that the caller sets, or that its switch or its budget means; reasoning that
 * is merely on has none.
 */
function askedEffort({
  effort,
  enabled,
  max_tokens: budget,
}: Readonly<Record<string, unknown>>): string | undefined {
  if (enabled === false) return "none";
  if (typeof effort === "string") return effort;
  return typeof budget === "number" && enabled !== true
    ? flatEffort({ budgetTokens: budget })
    : undefined;
}

/**
 * Returns whether the provider is asked for its sealed reasoning: where the catalog says that the
 * model reasons, or the request does, by setting its reasoning or by returning some of this
 * provider's. OpenAI answers 400 for models that do not reason.
 */
function asksForSeals(
  body: OriginalRequest["body"],
  { route, model }: Pick<TargetRoute, "route" | "model">,
): boolean {
  if (route.refuses?.always.includes("reasoning_effort") === true) return false;
  if (reasonsAt({ model, route })) return true;
  const { effort, summary, enabled, max_tokens: budget } = Object(body["reasoning"]) as Item;
  if (enabled === false || effort === "none") return false;
  if (typeof effort === "string" || summary || enabled === true || budget) return true;
  const { input } = body;
  return Array.isArray(input) && input.some((item) => isSealedBy(Object(item), route.provider.id));
}

const isSealedBy = ({ type, encrypted_content: sealed }: Item, providerId: string): boolean =>
  type === "reasoning" &&
  typeof sealed === "string" &&
  openProvenance(sealed).provenance?.providerId === providerId;

/** Requests ciphertext, since without storage reasoning can be returned only in that form. */
function askForSeals(body: OriginalRequest["body"], edits: Edits): void {
  const include: unknown = body["include"] ?? [];
  if (!Array.isArray(include) || include.includes(includedSeals)) return;
  edits.set("include", JSON.stringify([...(include as unknown[]), includedSeals]));
}

type Item = Readonly<Record<string, unknown>>;

/** Input items in the form that one provider accepts. */
interface ReplayedItems {
  /** Undefined where the client's own text can stay as it is. */
  items: readonly unknown[] | undefined;
  losses: readonly Loss[];
}

/**
 * Returns the items with reasoning of earlier turns for this provider: its own without the
 * gateway's mark, none of another provider's, and no bare ids, since nothing is stored for them. Ids
 * of calls are those that it takes.
 * Throws `bad_request` for a reference that was not resolved.
 */
function replayedItems(
  input: unknown,
  { id: providerId, deviations }: TargetRoute["route"]["provider"],
): ReplayedItems {
  if (!Array.isArray(input)) return { items: undefined, losses: [] };
  const losses: Loss[] = [];
  let changed = false;
  let thoughtIsGone = false;
  const items = input.flatMap((value: unknown, index): unknown[] => {
    const item = Object(value) as Item;
    if (isReference(item))
      throw badRequest(
        `input[${index}]`,
        "names an item that is not stored here; send the item itself.",
      );
    if (item.type === "reasoning" || isAsked(item)) thoughtIsGone = false;
    const replayed = replayedItem(withTakenId(item, deviations), { providerId, thoughtIsGone });
    if (replayed === item) return [value];
    changed = true;
    if (typeof replayed !== "string") return [replayed];
    thoughtIsGone = true;
    losses.push({ field: `input[${index}]`, reason: replayed });
    return [];
  });
  return { items: changed ? items : undefined, losses };
}

/** Returns an item with the id of its call as the provider takes it. */
function withTakenId(item: Item, deviations: DialectDeviations): Item {
  const { call_id: id } = item;
  const taken = typeof id === "string" ? takenCallId(id, deviations) : id;
  return taken === id ? item : { ...item, call_id: taken };
}

/** Returns whether an item names another one; such items may omit their type. */
const isReference = ({ type, id, role }: Item): boolean =>
  type === "item_reference" || ((type ?? null) === null && role === undefined && id !== undefined);

/** Returns whether an item is a message to the model, with which another turn begins. */
export const isAsked = ({ role }: Item): boolean => role !== undefined && role !== "assistant";

/** The types of items that are accepted without an id; of searches, as Codex sends them. */
const idlessTypes: readonly unknown[] = [
  "message",
  "function_call",
  "custom_tool_call",
  "web_search_call",
];

/**
 * Returns the item itself, a changed one, or the reason why it is left out. What the model said or
 * called after reasoning that is left out has no id: OpenAI answers 400 "was provided without its
 * required 'reasoning' item" to such ids.
 */
function replayedItem(
  item: Item,
  { providerId, thoughtIsGone }: { providerId: string; thoughtIsGone: boolean },
): Item | string {
  if (item.type === "reasoning") return replayedThought(item, providerId);
  return thoughtIsGone ? withoutId(item) : item;
}

/** Returns what follows reasoning that is left out: without its id, where it may have none. */
export function withoutId(item: Item): Item {
  if (item.id === undefined || !idlessTypes.includes(item.type)) return item;
  const { id: _id, ...rest } = item;
  return rest;
}

/** Returns the reasoning item itself, a changed one, or the reason why it is left out. */
function replayedThought(item: Item, providerId: string): Item | string {
  const { encrypted_content: sealed, id: _id, ...rest } = item;
  if (typeof sealed !== "string" || sealed === "") {
    if (!isReadable(item)) return "an id without its content";
    return item.id === undefined ? item : rest;
  }
  const { seal, provenance } = openProvenance(sealed);
  if (provenance === undefined) return item;
  return isForeignReasoning({ provenance }, providerId)
    ? "sealed by another provider"
    : { ...item, encrypted_content: seal };
}

const isReadable = ({ summary, content }: Item): boolean =>
  (Array.isArray(summary) && summary.length > 0) || (Array.isArray(content) && content.length > 0);
