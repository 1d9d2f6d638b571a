import {
  editInParts,
  editMembers,
  joined,
  type MemberEdits,
  memberText,
} from "../../../../platform/kernel/json/json-members.ts";
import type { Loss } from "../../../canonical/request.ts";
import { removeRefused } from "../../shared/charged-extras.ts";
import { fallbackMembers } from "../../shared/gateway-facts.ts";
import {
  budgetWithin,
  fittedCap,
  type OriginalRequest,
  type Passthrough,
  type ShownAnswer,
  type TargetRoute,
  type WholeAnswer,
} from "../../shared/passthrough.ts";
import { pricedUsageText, readUsage } from "../usage.ts";
import { withTextLast } from "./late-thoughts.ts";
import { MessagesRelay } from "./passthrough-stream.ts";
import { fittingEnd, isQuietEnd } from "../answer-fields.ts";
import { messagesGatewayFields } from "../request-schema.ts";
import { providerReferences } from "../threads.ts";
import { openSeals } from "./replayed-thoughts.ts";
import { fitThinking } from "./thinking-for-model.ts";

/**
 * Passes requests of Messages clients to Messages upstreams: the original bytes, with only those
 * members replaced that have to change.
 */
export function passThrough(request: OriginalRequest, route: TargetRoute): Passthrough {
  const { text, parts, losses } = requestText(request, route);
  return {
    requestText: text,
    requestParts: parts,
    requestHeaders: requestHeaders(request.dialectHeaders),
    losses,
    readWhole: readMessage,
    createRelay: (options) => new MessagesRelay({ ...options, traceId: request.traceId }),
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
  if (messages !== undefined) edits.set("messages", JSON.stringify(messages));
  const refused = removeRefused(body, { edits, deviations: route.provider.deviations });
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
      ...refused,
      ...fittedThinking,
      ...unthought,
    ],
  };
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

interface Block {
  type?: unknown;
  text?: unknown;
  thinking?: unknown;
  data?: unknown;
}

const lengthOf = (value: unknown): number => (typeof value === "string" ? value.length : 0);

/** The members of a message that the gateway reads. */
interface MessageBody {
  content?: unknown;
  stop_reason?: unknown;
  usage?: unknown;
  id?: unknown;
  type?: unknown;
  role?: unknown;
}

/** Reads what settlement needs from a message; returns undefined for any other value. */
export function readMessage(
  text: string,
  { content, stop_reason: reason, usage, id, type, role }: MessageBody,
): WholeAnswer | undefined {
  if (!Array.isArray(content)) return undefined;
  let visible = 0;
  let thought = 0;
  let callsTools = false;
  for (const block of content as (Block | null)[]) {
    if (block?.type === "tool_use") callsTools = true;
    if (block?.type === "thinking" || block?.type === "redacted_thinking")
      thought += Math.max(1, lengthOf(block.thinking));
    else if (block?.type === "text") visible += lengthOf(block.text);
    else visible += JSON.stringify(block).length;
  }
  const finishReason = fittingEnd(typeof reason === "string" ? reason : null, callsTools);
  const metered = readUsage(usage);
  const ordered = thought > 0 ? withTextLast(content) : undefined;
  const thinks = thought > 0 || (metered?.usage.reasoningTokens ?? 0) > 0;
  return {
    upstreamId: typeof id === "string" ? id : null,
    finishReason,
    metered,
    outputCharacters: visible + thought,
    hasContent: visible + thought > 0 || !isQuietEnd(finishReason),
    spentOnReasoning: visible === 0 && finishReason === "max_tokens" && thinks,
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
