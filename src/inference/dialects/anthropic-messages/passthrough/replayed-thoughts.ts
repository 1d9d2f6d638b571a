import type { Loss } from "../../../canonical/request.ts";
import { isForeignReasoning, openProvenance } from "../../../canonical/reasoning.ts";
import type { DialectDeviations } from "../../deviations.ts";
import type { TargetRoute } from "../../shared/exchange.ts";
import {
  contentOf,
  isEmptied,
  type TurnForm,
  turnUnderWay,
} from "../../shared/refused-thoughts.ts";

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
export function openSeals(
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

const typeOf = (block: unknown): unknown => (Object(block) as Fields).type;

/** Returns whether a block is reasoning, shown or sealed. */
export const isThought = (block: unknown): boolean =>
  typeOf(block) === "thinking" || typeOf(block) === "redacted_thinking";

/** How Messages writes the blocks of turns. */
export const turnForm: TurnForm = {
  sealOf(block) {
    if (!isThought(block)) return undefined;
    const seal = block["type"] === "thinking" ? block["signature"] : block["data"];
    return typeof seal === "string" ? seal : "";
  },
  isCall: (block) => block["type"] === "tool_use",
  isResult: (block) => block["type"] === "tool_result",
};

/** Returns turns with calls that follow the user's last message. */
export function callsUnderWay(
  messages: readonly unknown[],
): { index: number; content: readonly unknown[] }[] {
  const from = turnUnderWay(messages, turnForm);
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
