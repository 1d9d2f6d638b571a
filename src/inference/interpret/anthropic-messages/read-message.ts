import { editMembers } from "../../../platform/lib/json-members.ts";
import { readUsage } from "../../dialects/anthropic-messages/read-usage.ts";
import type { ShownAnswer, WholeAnswer } from "../interpretation.ts";
import { fallbackMembers } from "../model-fallback.ts";
import { isQuietEnd } from "./quiet-end.ts";
import { memberText } from "./member-text.ts";
import { pricedUsageText } from "./message-usage-text.ts";

interface Block {
  type?: unknown;
  text?: unknown;
  thinking?: unknown;
  data?: unknown;
}

const lengthOf = (value: unknown): number => (typeof value === "string" ? value.length : 0);

/** Reads what settlement needs from a message; undefined when it is none. */
export function readMessage(
  text: string,
  {
    content,
    stop_reason: reason,
    usage,
    id,
  }: { content?: unknown; stop_reason?: unknown; usage?: unknown; id?: unknown },
): WholeAnswer | undefined {
  if (!Array.isArray(content)) return undefined;
  let visible = 0;
  let thought = 0;
  for (const block of content as (Block | null)[]) {
    if (block?.type === "thinking" || block?.type === "redacted_thinking")
      thought += Math.max(1, lengthOf(block.thinking));
    else if (block?.type === "text") visible += lengthOf(block.text);
    else visible += JSON.stringify(block).length;
  }
  const finishReason = typeof reason === "string" ? reason : null;
  const metered = readUsage(usage);
  const thinks = thought > 0 || (metered?.usage.reasoningTokens ?? 0) > 0;
  return {
    upstreamId: typeof id === "string" ? id : null,
    finishReason,
    metered,
    outputCharacters: visible + thought,
    hasContent: visible > 0 || (finishReason !== null && !isQuietEnd(finishReason)),
    spentOnReasoning: visible === 0 && finishReason === "max_tokens" && thinks,
    render: (shown) => renderMessage(text, shown),
  };
}

/** The answer as the client gets it: the upstream's text with id, model, usage and fallback replaced. */
function renderMessage(
  text: string,
  { id, model, metered, chargedNano, fallback }: ShownAnswer,
): string {
  const usage = pricedUsageText({ original: memberText(text, "usage"), metered, chargedNano });
  return editMembers(
    text,
    new Map([
      ["id", JSON.stringify(id)],
      ["model", JSON.stringify(model)],
      ["usage", usage],
      ...(fallback === undefined ? [] : fallbackMembers(fallback)),
    ]),
  );
}
