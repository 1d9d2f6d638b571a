import { editScanned, replaceEach, scanMembers } from "../../../platform/lib/json-members.ts";
import { readChatUsage } from "../../dialects/openai-chat/read-usage.ts";
import type { ClientRequest, ShownAnswer, WholeAnswer } from "../interpretation.ts";
import { fallbackMembers } from "../model-fallback.ts";
import { pricedUsageText } from "./chat-usage-text.ts";

interface ChoiceMessage {
  content?: unknown;
  refusal?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  tool_calls?: unknown;
  function_call?: unknown;
  audio?: unknown;
}

interface CompletionBody {
  id?: unknown;
  object?: unknown;
  created?: unknown;
  choices?: unknown;
  usage?: unknown;
}

const lengthOf = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  return Array.isArray(value) ? value.reduce<number>((sum, part: { text?: unknown } | null) => sum + lengthOf(part?.text), 0) : 0;
};

const toolLength = (value: unknown): number => (Array.isArray(value) && value.length > 0 ? JSON.stringify(value).length : 0);

/** Reads what settlement needs from a completion; undefined when it is none. */
export function readCompletion(
  text: string, body: CompletionBody, { nowSeconds }: Pick<ClientRequest, "nowSeconds">,
): WholeAnswer | undefined {
  const choices = body.choices;
  if (!Array.isArray(choices)) return undefined;
  let content = 0;
  let reasoning = 0;
  let other = 0;
  let finishReason: string | null = null;
  for (const choice of choices as ({ message?: ChoiceMessage; finish_reason?: unknown } | null)[]) {
    const message = choice?.message ?? {};
    content += lengthOf(message.content) + lengthOf(message.refusal);
    reasoning += lengthOf(message.reasoning_content ?? message.reasoning);
    other += toolLength(message.tool_calls);
    if (message.function_call || message.audio) other += 1;
    if (typeof choice?.finish_reason === "string") finishReason ??= choice.finish_reason;
  }
  const metered = readChatUsage(body.usage);
  const answered = content + other > 0;
  return {
    finishReason, metered,
    upstreamId: typeof body.id === "string" ? body.id : null,
    outputCharacters: content + reasoning + other,
    hasContent: answered || finishReason === "length" || finishReason === "content_filter" || (reasoning > 0 && finishReason !== "stop"),
    spentOnReasoning: !answered && finishReason === "length" && (reasoning > 0 || (metered?.usage.reasoningTokens ?? 0) > 0),
    render: (shown) => (body.object === objectName && Number.isInteger(body.created)
      ? renderCompletion(text, shown)
      : renderUnusual(text, shown, { object: objectName, created: secondsOf(body.created) ?? nowSeconds() })),
  };
}

const objectName = "chat.completion";

const secondsOf = (created: unknown): number | undefined => (typeof created === "number" ? Math.floor(created) : undefined);

/** What every answer shows of its own, in the order of `replaceEach`. */
const shownNames = ["id", "model", "usage"] as const;

/** The answer as the client gets it: the upstream's text with id, model, usage and fallback replaced. */
function renderCompletion(text: string, shown: ShownAnswer): string {
  const { metered, chargedNano, fallback } = shown;
  const usual = fallback !== undefined ? undefined : replaceEach(text, shownNames, (index, start, end) => {
    if (index < 2) return JSON.stringify(index === 0 ? shown.id : shown.model);
    return pricedUsageText({ original: text.slice(start, end), metered, chargedNano });
  });
  return usual ?? renderUnusual(text, shown);
}

/** The same for an answer that lacks any of them or what every completion has beside, or that has more to show. */
function renderUnusual(
  text: string, { id, model, metered, chargedNano, fallback }: ShownAnswer, lacking: Readonly<Record<string, string | number>> = {},
): string {
  const members = scanMembers(text);
  const usage = members.find((member) => member.key === "usage");
  const original = usage === undefined ? undefined : text.slice(usage.valueStart, usage.valueEnd);
  const edits = new Map<string, string | undefined>([
    ["id", JSON.stringify(id)],
    ["model", JSON.stringify(model)],
    ["usage", pricedUsageText({ original, metered, chargedNano })],
  ]);
  for (const key in lacking) edits.set(key, JSON.stringify(lacking[key]));
  for (const [key, value] of fallback === undefined ? [] : fallbackMembers(fallback)) edits.set(key, value);
  return editScanned(text, members, edits);
}
