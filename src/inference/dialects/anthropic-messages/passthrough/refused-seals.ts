import { editMembers } from "../../../../platform/kernel/json/json-members.ts";
import type { Refusal, UnsealedRequest } from "../../dialect.ts";
import { asArray } from "../../shared/wire-fields.ts";
import {
  callsUnderWay,
  contentOf,
  isEmptied,
  isThought,
  turnUnderWay,
} from "./replayed-thoughts.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Anthropic's words, which Bedrock and Google repeat, with or without the marks of code. */
const refusedWords = /invalid `?(?:signature|data)`? in `?(?:redacted_)?thinking`? block/i;
const refusedPlace = /messages\.(\d+)\.content/;

/**
 * Returns a request without the thinking that another vendor signed. The turn under way keeps its
 * own, unless the refusal names it or no other is left. Calls under way that lose theirs cannot go on
 * with a budget: Anthropic answers 400, so the request is sent without thinking.
 */
export function withoutSeals(text: string, { message }: Refusal): UnsealedRequest | undefined {
  if (!refusedWords.test(message)) return undefined;
  const body = JSON.parse(text) as Fields;
  const { messages } = body;
  if (!Array.isArray(messages)) return undefined;
  const turn = turnUnderWay(messages);
  const hasEarlier = messages.slice(0, turn).some((each) => contentOf(each).some(isThought));
  const named = Number(refusedPlace.exec(message)?.[1] ?? 0);
  const isOfTurn = !hasEarlier || named >= turn;
  const end = isOfTurn ? messages.length : turn;
  let blocks = 0;
  const kept = messages.map((each: unknown, index): unknown => {
    const content = contentOf(each);
    const spoken = index < end ? content.filter((block) => !isThought(block)) : content;
    blocks += content.length - spoken.length;
    return spoken.length === content.length
      ? each
      : { ...(Object(each) as Fields), content: spoken };
  });
  if (blocks === 0) return undefined;
  const edits = new Map<string, string | undefined>([
    ["messages", JSON.stringify(kept.filter((each) => !isEmptied(each)))],
  ]);
  const { type } = Object(body["thinking"]) as Fields;
  const stopsThinking = isOfTurn && type === "enabled" && callsUnderWay(messages).length > 0;
  if (stopsThinking) {
    edits.set("thinking", undefined);
    for (const [field, value] of withoutClearing(body)) edits.set(field, value);
  }
  return { text: editMembers(text, edits), blocks, stopsThinking };
}

/**
 * Returns the edit of a request that is sent without thinking: Anthropic answers 400 to the clearing
 * of thinking then, which Claude Code always asks for.
 */
export function withoutClearing({
  context_management: management,
}: Fields): ReadonlyMap<string, string | undefined> {
  const fields = Object(management) as Fields;
  const asked = asArray(fields["edits"]) ?? [];
  const kept = asked.filter(
    (edit) => !String((Object(edit) as Fields)["type"]).startsWith("clear_thinking"),
  );
  if (kept.length === asked.length) return new Map();
  const rest = { ...fields, edits: kept };
  const written = kept.length === 0 ? undefined : JSON.stringify(rest);
  return new Map([["context_management", written]]);
}
