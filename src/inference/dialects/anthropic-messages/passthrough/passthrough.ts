import {
  editInParts,
  editMembers,
  joined,
  type MemberEdits,
  memberText,
} from "../../../../platform/kernel/json/json-members.ts";
import { answerFacts } from "../../../canonical/answer-meter.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import type { Loss } from "../../../canonical/request.ts";
import { removeRefused } from "../../shared/extras/charged-extras.ts";
import { fallbackMembers } from "../../shared/gateway-facts.ts";
import { budgetWithin } from "../../shared/reasoning-rules.ts";
import { fittedCap } from "../../shared/output-cap.ts";
import type {
  OriginalRequest,
  Passthrough,
  ShownAnswer,
  TargetRoute,
  WholeAnswer,
} from "../../shared/exchange.ts";
import { AnswerReader } from "../../shared/stream/answer-reader.ts";
import { asArray } from "../../shared/wire-fields.ts";
import { fittingEnd } from "../answer-fields.ts";
import { decodeResponse } from "../decode-response.ts";
import { MessagesStreamDecoder } from "../decode-stream.ts";
import { pricedUsageText } from "../usage.ts";
import { withoutForeignSearches } from "./foreign-searches.ts";
import { withTextLast } from "./late-thoughts.ts";
import { KeptWriter } from "./passthrough-stream.ts";
import { fitInstructions } from "./later-instructions.ts";
import { messagesGatewayFields } from "../request-schema.ts";
import { providerReferences } from "../threads.ts";
import { withoutClearing } from "./refused-seals.ts";
import { openSeals } from "./replayed-thoughts.ts";
import { fitThinking } from "./thinking-for-model.ts";

/**
 * Passes requests of Messages clients to Messages upstreams: the original bytes, with only those
 * members replaced that have to change.
 */
export function passThrough(request: OriginalRequest, route: TargetRoute): Passthrough {
  const { text, parts, losses } = requestText(request, route);
  const { traceId } = request;
  return {
    requestText: text,
    requestParts: parts,
    requestHeaders: requestHeaders(request.dialectHeaders),
    losses,
    readWhole: readMessage,
    openStream(options) {
      const decoder = new MessagesStreamDecoder();
      const reader = new AnswerReader(decoder, { ...options, hidesReasoning: true });
      return { reader, writer: new KeptWriter({ ...options, traceId, reader, decoder }) };
    },
  };
}

/**
 * Returns the body for an upstream that speaks the caller's dialect: the original text without the
 * gateway's own fields.
 */
export function requestText(
  { text, body, previousAnswers }: OriginalRequest,
  { route, outputCap }: TargetRoute,
): { text: string; parts: readonly string[]; losses: readonly Loss[] } {
  const edits = new Map<string, string | undefined>([
    ["model", JSON.stringify(route.upstreamModel)],
  ]);
  const references = providerReferences({ body, previousAnswers }, route);
  for (const [field, edited] of references.edits) edits.set(field, edited);
  for (const field of messagesGatewayFields) if (field in body) edits.set(field, undefined);
  const { max_tokens: asked } = body;
  const fitted = fittedCap(asked, { field: "max_tokens", route, outputCap });
  if (fitted.cap !== undefined && fitted.cap !== asked)
    lowerCaps({ text, body }, { edits, cap: fitted.cap });
  const { messages, lacksThoughts, losses } = openSeals(text, {
    messages: body["messages"],
    route,
  });
  const searched = withoutForeignSearches(text, messages ?? body["messages"]);
  const opened = searched.messages ?? messages;
  const instructed = fitInstructions(opened ?? body["messages"], route);
  const changed = instructed.messages ?? opened;
  if (changed !== undefined) edits.set("messages", JSON.stringify(changed));
  const refused = removeRefused(body, { edits, deviations: route.provider.deviations });
  if (instructed.tools.length > 0) offerTools(instructed.tools, { text, edits });
  const fittedThinking = fitThinking(
    { body, text },
    {
      edits,
      upstreamModel: route.upstreamModel,
      maxTokens: fitted.cap ?? asked,
    },
  );
  const takesBudget = fittedThinking.every(({ field }) => field !== "thinking.budget_tokens");
  const stopsThinking =
    lacksThoughts &&
    takesBudget &&
    (Object(body["thinking"]) as { type?: unknown }).type === "enabled";
  if (stopsThinking) edits.set("thinking", undefined);
  stopClearing(body, edits);
  const reason = "the calls under way were made without thoughts of this model";
  const unthought: Loss[] = stopsThinking ? [{ field: "thinking", reason }] : [];
  const parts = editInParts(text, edits satisfies MemberEdits);
  return {
    text: joined(parts),
    parts,
    losses: [
      ...references.losses,
      ...fitted.losses,
      ...losses,
      ...searched.losses,
      ...instructed.losses,
      ...refused,
      ...fittedThinking,
      ...unthought,
    ],
  };
}

/** Leaves out the clearing of thinking where the request's thinking was left out. */
function stopClearing(body: OriginalRequest["body"], edits: Map<string, string | undefined>): void {
  const { type } = Object(body["thinking"]) as { type?: unknown };
  const isStopped = edits.has("thinking") && edits.get("thinking") === undefined;
  if (type === undefined || type === "disabled" || !isStopped) return;
  for (const [field, edited] of withoutClearing(body))
    if (!edits.has(field)) edits.set(field, edited);
}

/** Offers further tools behind those of the request. */
function offerTools(
  tools: readonly JsonObject[],
  { text, edits }: { text: string; edits: Map<string, string | undefined> },
): void {
  const written = edits.has("tools") ? edits.get("tools") : memberText(text, "tools");
  const offered = asArray(JSON.parse(written ?? "[]")) ?? [];
  edits.set("tools", JSON.stringify([...offered, ...tools]));
}

/** Lowers the output cap, and a reasoning budget below it. */
function lowerCaps(
  { text, body }: Pick<OriginalRequest, "text" | "body">,
  { edits, cap }: { edits: Map<string, string | undefined>; cap: number },
): void {
  edits.set("max_tokens", String(cap));
  const budget = (body["thinking"] as { budget_tokens?: unknown } | null | undefined)
    ?.budget_tokens;
  const written =
    typeof budget === "number" && budget >= cap ? memberText(text, "thinking") : undefined;
  if (written === undefined || typeof budget !== "number") return;
  edits.set(
    "thinking",
    editMembers(written, new Map([["budget_tokens", String(budgetWithin(cap, budget))]])),
  );
}

/**
 * The version that every Messages server supports. That of 2026-10-21 refuses requests that only
 * its own clients write correctly.
 */
export const versionDefault = "2023-06-01";

/** Request headers that name something at Anthropic: whose request it is, and its workspace. */
export const providerHeaders = ["anthropic-user-profile-id", "anthropic-workspace-id"] as const;

/**
 * Returns the headers that a Messages upstream needs beside its credential: version, betas and
 * what names something at the provider, from the client's own headers, where the client speaks
 * Messages too.
 */
export function requestHeaders(
  dialectHeaders: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const { "anthropic-version": version = versionDefault, "anthropic-beta": beta } = dialectHeaders;
  const headers: Record<string, string> = { "anthropic-version": version };
  if (beta !== undefined) headers["anthropic-beta"] = beta;
  for (const name of providerHeaders) {
    const value = dialectHeaders[name];
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

/** The members of a message that may have to change. */
interface MessageBody {
  content?: unknown;
  stop_reason?: unknown;
  type?: unknown;
  role?: unknown;
}

/** Reads what settlement needs from a message; returns undefined for any other value. */
export function readMessage(text: string, body: MessageBody): WholeAnswer | undefined {
  const { content, stop_reason: reason, type, role } = body;
  if (!Array.isArray(content)) return undefined;
  const response = decodeResponse(body);
  const callsTools = response.choices.some(({ parts }) =>
    parts.some((part) => part.type === "tool-call"),
  );
  const finishReason = fittingEnd(typeof reason === "string" ? reason : null, callsTools);
  const ordered = withTextLast(content);
  return {
    ...answerFacts(response, true),
    finishReason,
    render: (shown) =>
      renderMessage(
        text,
        shown,
        new Map<string, unknown>([
          ...(ordered === undefined ? [] : [["content", ordered] as const]),
          ...(finishReason === reason ? [] : [["stop_reason", finishReason] as const]),
          ...(typeof type === "string" ? [] : [["type", "message"] as const]),
          ...(typeof role === "string" ? [] : [["role", "assistant"] as const]),
        ]),
      ),
  };
}

/**
 * Returns the answer for the client: the upstream's text with the id, model, usage and fallback
 * replaced, and with corrections for members that are missing or contradict the content.
 */
function renderMessage(
  text: string,
  { id, model, metered, chargedNano, fallback }: ShownAnswer,
  changed: ReadonlyMap<string, unknown>,
): string {
  const usage = pricedUsageText({ original: memberText(text, "usage"), metered, chargedNano });
  return editMembers(
    text,
    new Map([
      ["id", JSON.stringify(id)],
      ["model", JSON.stringify(model)],
      ["usage", usage],
      ...[...changed].map(([name, value]) => [name, JSON.stringify(value)] as const),
      ...(fallback === undefined ? [] : fallbackMembers(fallback)),
    ]),
  );
}
