import type { Loss } from "../../canonical/loss.ts";
import { isForeignReasoning, openProvenance } from "../../canonical/reasoning.ts";
import type { ProviderQuirks } from "../../providers/provider-definition.ts";
import type { InterpretedRoute } from "../interpretation.ts";

/** How every seal begins that the gateway has marked with its maker. */
const mark = '"gw1:';

type Fields = Readonly<Record<string, unknown>>;

/** What one upstream is sent of the thoughts of earlier turns. */
export interface ReplayedThoughts {
  /** Undefined where the client's own text can stay as it is. */
  messages: readonly unknown[] | undefined;
  /** The calls under way have lost the thoughts that they were made with, which a thinking budget demands. */
  lacksThoughts: boolean;
  losses: readonly Loss[];
}

const unchanged: ReplayedThoughts = { messages: undefined, lacksThoughts: false, losses: [] };

/**
 * The messages with thoughts as their maker sealed them. Answers that were translated carry their maker's name in front of the seal, and
 * thoughts of models that seal nothing have an empty signature; a conversation that moves to a native upstream brings both along. A seal
 * of the upstream's own is opened; what another made, or nobody sealed, is left out, which Anthropic allows, while it answers 400 to a
 * seal that it cannot verify. Bodies without thoughts are not looked into.
 */
export function openSeals(
  text: string,
  { messages, route: { provider } }: { messages: unknown; route: InterpretedRoute["route"] },
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
      const own = replayedBlock(block, { providerId: provider.id, quirks: provider.quirks });
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
  // A turn that was nothing but such thoughts would be refused as an empty one.
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

/** Turns with calls, after the last words of the user. */
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

/** The block as its upstream takes it back, or why it does not. */
function replayedBlock(
  block: unknown,
  { providerId, quirks }: { providerId: string; quirks: ProviderQuirks },
): unknown {
  if (!isThought(block)) return block;
  const fields = Object(block) as Fields;
  const field = fields.type === "thinking" ? "signature" : "data";
  const sealed = fields[field];
  // Servers of other makers seal nothing and want their thoughts back.
  if (typeof sealed !== "string" || sealed === "")
    return quirks.reasoningReplay === "content" ? block : "a thought that nobody sealed";
  const { seal, provenance } = openProvenance(sealed);
  if (provenance === undefined) return block;
  return isForeignReasoning({ provenance }, providerId)
    ? "sealed by another provider"
    : { ...fields, [field]: seal };
}
