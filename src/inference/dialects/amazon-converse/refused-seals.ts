import { editMembers } from "../../../platform/kernel/json/json-members.ts";
import type { JsonObject } from "../../canonical/json.ts";
import {
  concernsThoughts,
  type TurnForm,
  type Unreadable,
  type UnsealedRequest,
  withoutThoughts,
} from "../shared/refused-thoughts.ts";
import { asArray, asObject, asString } from "../shared/wire-fields.ts";

/** How Converse writes the blocks of turns. */
const turnForm: TurnForm = {
  sealOf(block) {
    const thought = asObject(block["reasoningContent"] as JsonObject | undefined);
    if (thought === undefined) return undefined;
    return asString(asObject(thought.reasoningText)?.signature ?? thought.redactedContent) ?? "";
  },
  isCall: (block) => "toolUse" in block,
  isResult: (block) => "toolResult" in block,
};

/** Joins neighbours of one side, between which a turn of thoughts alone stood: Converse refuses them. */
function alternating(messages: readonly unknown[]): JsonObject[] {
  const turns: JsonObject[] = [];
  for (const message of messages.map((each) => Object(each) as JsonObject)) {
    const last = turns.at(-1);
    if (last === undefined || last.role !== message.role) turns.push(message);
    else
      turns[turns.length - 1] = {
        ...last,
        content: [...(asArray(last.content) ?? []), ...(asArray(message.content) ?? [])],
      };
  }
  return turns;
}

/**
 * Returns a request without the thinking that another account signed. Calls under way that lose
 * theirs cannot go on with a budget, as on Claude's own API.
 */
export function withoutSeals(text: string, unreadable: Unreadable): UnsealedRequest | undefined {
  if (!concernsThoughts(unreadable)) return undefined;
  const { messages, additionalModelRequestFields: own } = JSON.parse(text) as JsonObject;
  const unsealed = withoutThoughts(asArray(messages) ?? [], unreadable, turnForm);
  if (unsealed === undefined) return undefined;
  const edits = new Map([["messages", JSON.stringify(alternating(unsealed.messages))]]);
  const { thinking, ...fields } = asObject(own) ?? {};
  const stopsThinking = unsealed.callsLackThoughts && asObject(thinking)?.type === "enabled";
  if (stopsThinking) edits.set("additionalModelRequestFields", JSON.stringify(fields));
  return { text: editMembers(text, edits), seals: unsealed.seals, stopsThinking };
}
