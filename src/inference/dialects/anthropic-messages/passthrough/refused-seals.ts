import { editMembers } from "../../../../platform/kernel/json/json-members.ts";
import {
  concernsThoughts,
  type Unreadable,
  type UnsealedRequest,
  withoutThoughts,
} from "../../shared/refused-thoughts.ts";
import { asArray } from "../../shared/wire-fields.ts";
import { turnForm } from "./replayed-thoughts.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns a request without the thinking that another vendor signed. Calls under way that lose
 * theirs cannot go on with a budget: Anthropic answers 400, so the request is sent without thinking.
 */
export function withoutSeals(text: string, unreadable: Unreadable): UnsealedRequest | undefined {
  if (!concernsThoughts(unreadable)) return undefined;
  const body = JSON.parse(text) as Fields;
  const { messages } = body;
  if (!Array.isArray(messages)) return undefined;
  const unsealed = withoutThoughts(messages, unreadable, turnForm);
  if (unsealed === undefined) return undefined;
  const edits = new Map<string, string | undefined>([
    ["messages", JSON.stringify(unsealed.messages)],
  ]);
  const { type } = Object(body["thinking"]) as Fields;
  const stopsThinking = unsealed.callsLackThoughts && type === "enabled";
  if (stopsThinking) {
    edits.set("thinking", undefined);
    for (const [field, value] of withoutClearing(body)) edits.set(field, value);
  }
  return { text: editMembers(text, edits), seals: unsealed.seals, stopsThinking };
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
