import { editScanned, scanMembers } from "../platform/lib/json-members.ts";
import { boundUsage } from "./bound-usage.ts";
import type { MeteredUsage } from "./canonical/usage.ts";
import { pricedUsageText } from "./chat-usage-text.ts";
import { estimateUsage, readChatUsage } from "./dialects/openai-chat/read-usage.ts";
import { fallbackMembers, type ModelFallback } from "./fallback-block.ts";

/** A chat completion as an upstream sent it: its text, and of its values only those that are read. */
export interface WholeAnswer {
  text: string;
  upstreamId: string | null;
  finishReason: string | null;
  /** The provider's usage; undefined when it sent none. */
  metered: MeteredUsage | undefined;
  /** Characters of everything that the model said, for an estimate. */
  outputCharacters: number;
  /** Whether there is anything that a client can use. */
  hasContent: boolean;
  /** The whole output budget went into reasoning and nothing came out. */
  spentOnReasoning: boolean;
}

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
  choices?: unknown;
  usage?: unknown;
}

const lengthOf = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  return Array.isArray(value) ? value.reduce<number>((sum, part: { text?: unknown } | null) => sum + lengthOf(part?.text), 0) : 0;
};

const toolLength = (value: unknown): number => (Array.isArray(value) && value.length > 0 ? JSON.stringify(value).length : 0);

/** Reads what settlement needs from a completion; undefined when it is none. */
export function readWholeAnswer(text: string, body: CompletionBody): WholeAnswer | undefined {
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
    text, finishReason, metered,
    upstreamId: typeof body.id === "string" ? body.id : null,
    outputCharacters: content + reasoning + other,
    hasContent: answered || finishReason === "length" || finishReason === "content_filter" || (reasoning > 0 && finishReason !== "stop"),
    spentOnReasoning: !answered && finishReason === "length" && (reasoning > 0 || (metered?.usage.reasoningTokens ?? 0) > 0),
  };
}

/** The usage to settle with: the provider's as far as it can be true, or an estimate from the texts. */
export const meteredOf = (answer: WholeAnswer, { inputTokens, windowTokens }: { inputTokens: number; windowTokens: number }): MeteredUsage =>
  (answer.metered === undefined
    ? estimateUsage({ inputCharacters: inputTokens * 4, outputCharacters: answer.outputCharacters })
    : boundUsage(answer.metered, windowTokens));

/** The answer as the client gets it: the upstream's text with id, model, usage and fallback replaced. */
export function wholeAnswerText(answer: WholeAnswer, shown: {
  id: string;
  model: string;
  metered: MeteredUsage;
  chargedNano: bigint;
  fallback: ModelFallback | undefined;
}): string {
  const members = scanMembers(answer.text);
  const usage = members.find((member) => member.key === "usage");
  const original = usage === undefined ? undefined : answer.text.slice(usage.valueStart, usage.valueEnd);
  const edits = new Map<string, string | undefined>([
    ["id", JSON.stringify(shown.id)],
    ["model", JSON.stringify(shown.model)],
    ["usage", pricedUsageText({ original, metered: shown.metered, chargedNano: shown.chargedNano })],
  ]);
  for (const [key, value] of shown.fallback === undefined ? [] : fallbackMembers(shown.fallback)) edits.set(key, value);
  return editScanned(answer.text, members, edits);
}
