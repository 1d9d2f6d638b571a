import type { Loss } from "../../canonical/loss.ts";
import { isForeignReasoning, openProvenance } from "../../canonical/reasoning.ts";

/** How every seal begins that the gateway has marked with its maker. */
const mark = '"gw1:';

interface Block {
  type?: unknown;
  signature?: unknown;
  data?: unknown;
}

/**
 * The messages with seals as their maker wrote them. Answers that were translated carry their maker's
 * name in front of the seal; a conversation that moves to a native upstream brings such seals along. One
 * of the upstream's own is opened, and a block of another's is left out, which Anthropic allows. Bodies
 * without a mark, nearly all, are not looked into.
 */
export function openSeals(
  text: string,
  { messages, providerId }: { messages: unknown; providerId: string },
): { messages: readonly unknown[] | undefined; losses: readonly Loss[] } {
  if (!text.includes(mark) || !Array.isArray(messages)) return { messages: undefined, losses: [] };
  const losses: Loss[] = [];
  const opened = messages.map((message: unknown, index) => {
    const { content } = Object(message) as { content?: unknown };
    if (!Array.isArray(content)) return message;
    const blocks = content.flatMap((block: unknown, position) => {
      const own = openBlock(block, providerId);
      if (own === undefined) losses.push({ field: `messages[${index}].content[${position}]`, reason: "sealed by another provider" });
      return own === undefined ? [] : [own];
    });
    return { ...Object(message) as object, content: blocks };
  });
  return { messages: opened, losses };
}

/** The block with its seal as its maker wrote it; undefined where another provider made it. */
function openBlock(block: unknown, providerId: string): unknown {
  const { type, signature, data } = Object(block) as Block;
  const field = type === "thinking" ? "signature" : type === "redacted_thinking" ? "data" : undefined;
  const sealed = field === "signature" ? signature : data;
  if (field === undefined || typeof sealed !== "string") return block;
  const { seal, provenance } = openProvenance(sealed);
  if (provenance === undefined) return block;
  return isForeignReasoning({ provenance }, providerId) ? undefined : { ...Object(block) as object, [field]: seal };
}
