import {
  editInParts,
  editMembers,
  joined,
  type MemberEdits,
  memberText,
} from "../../../../platform/kernel/json/json-members.ts";
import type { Loss } from "../../../canonical/request.ts";
import { isForeignReasoning, openProvenance } from "../../../canonical/reasoning.ts";
import { removeRefused } from "../../shared/charged-extras.ts";
import type { DialectDeviations } from "../../dialect.ts";
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
import { MessagesRelay } from "./passthrough-stream.ts";
import { fittingEnd, isQuietEnd } from "../answer-fields.ts";
import { messagesGatewayFields } from "../request-schema.ts";
import { providerReferences } from "../threads.ts";

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
  const stopsThinking =
    lacksThoughts && (Object(body["thinking"]) as { type?: unknown }).type === "enabled";
  if (stopsThinking) edits.set("thinking", undefined);
  const reason = "the calls under way were made without thoughts of this model";
  const unthought: Loss[] = stopsThinking ? [{ field: "thinking", reason }] : [];
  const parts = editInParts(text, edits satisfies MemberEdits);
  return {
    text: joined(parts),
    parts,
    losses: [...references.losses, ...fitted.losses, ...losses, ...refused, ...unthought],
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

/** The beginning of every seal that the gateway has marked with its maker. */
const mark = '"gw1:';

type Fields = Readonly<Record<string, unknown>>;

/** The reasoning of earlier turns, as one upstream is sent it. */
interface ReplayedThoughts {
  /** Undefined where the client's own text can stay as it is. */
  messages: readonly unknown[] | undefined;
  /**
   * Whether calls in progress have lost the reasoning that they were made with, which a reasoning
   * budget requires.
   */
  lacksThoughts: boolean;
  losses: readonly Loss[];
}

const unchanged: ReplayedThoughts = { messages: undefined, lacksThoughts: false, losses: [] };

/**
 * Returns the messages with reasoning as its maker sealed it. Translated answers carry their
 * maker's name in front of the seal, and reasoning of models that seal nothing has an empty
 * signature; a conversation that moves to a native upstream contains both. A seal of the upstream's
 * own is opened. Reasoning that another maker sealed, or that is unsealed, is left out: Anthropic
 * allows that, while it answers 400 to a seal that it cannot verify. Bodies without reasoning stay
 * unchanged.
 */
function openSeals(
  text: string,
  { messages, route: { provider } }: { messages: unknown; route: TargetRoute["route"] },
): ReplayedThoughts {
  if (
    !Array.isArray(messages) ||
    ![mark, '"thinking"', '"redacted_thinking"'].some((part) => text.includes(part))
  )
    return unchanged;
  const losses: Loss[] = [];
  let isChanged = false;
  const stripped = new Set<number>();
  const opened = messages.map((message: unknown, index): unknown => {
    const { content } = Object(message) as Fields;
    if (!Array.isArray(content)) return message;
    const blocks = content.flatMap((block: unknown, position): unknown[] => {
      const own = replayedBlock(block, {
        providerId: provider.id,
        deviations: provider.deviations,
      });
      if (typeof own !== "string") return [own];
      losses.push({ field: `messages[${index}].content[${position}]`, reason: own });
      return [];
    });
    if (
      blocks.length === content.length &&
      blocks.every((block, position) => block === content[position])
    )
      return message;
    isChanged = true;
    if (blocks.length < content.length) stripped.add(index);
    return { ...(Object(message) as object), content: blocks };
  });
  if (!isChanged) return unchanged;
  const lacksThoughts = callsUnderWay(opened).some(
    ({ index, content }) => stripped.has(index) && !content.some(isThought),
  );
  // A turn that consisted of such reasoning alone would be refused as empty.
  return { messages: opened.filter((message) => !isEmptied(message)), lacksThoughts, losses };
}

const contentOf = (message: unknown): readonly unknown[] => {
  const { content } = Object(message) as Fields;
  return Array.isArray(content) ? content : [];
};

const isEmptied = (message: unknown): boolean => {
  const { role, content } = Object(message) as Fields;
  return role === "assistant" && Array.isArray(content) && content.length === 0;
};

const typeOf = (block: unknown): unknown => (Object(block) as Fields).type;

const isThought = (block: unknown): boolean =>
  typeOf(block) === "thinking" || typeOf(block) === "redacted_thinking";

/** Returns turns with calls that follow the user's last message. */
function callsUnderWay(
  messages: readonly unknown[],
): { index: number; content: readonly unknown[] }[] {
  const isUserTurn = (message: unknown): boolean =>
    (Object(message) as Fields).role === "user" &&
    !contentOf(message).some((block) => typeOf(block) === "tool_result");
  const from = messages.findLastIndex(isUserTurn) + 1;
  return messages
    .slice(from)
    .map((message, offset) => ({ index: from + offset, content: contentOf(message) }))
    .filter(({ content }) => content.some((block) => typeOf(block) === "tool_use"));
}

/**
 * Returns the block in the form in which its upstream accepts it, or the reason why it does not.
 */
function replayedBlock(
  block: unknown,
  { providerId, deviations }: { providerId: string; deviations: DialectDeviations },
): unknown {
  if (!isThought(block)) return block;
  const fields = Object(block) as Fields;
  const field = fields.type === "thinking" ? "signature" : "data";
  const sealed = fields[field];
  // Servers of other makers seal nothing and expect their reasoning back.
  if (typeof sealed !== "string" || sealed === "")
    return deviations.reasoningReplay === "content" ? block : "a thought without a seal";
  const { seal, provenance } = openProvenance(sealed);
  if (provenance === undefined) return block;
  return isForeignReasoning({ provenance }, providerId)
    ? "sealed by another provider"
    : { ...fields, [field]: seal };
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
        new Map([
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
  changed: ReadonlyMap<string, string>,
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
