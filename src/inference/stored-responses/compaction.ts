import { GatewayError } from "../../platform/lib/errors.ts";
import type { ResponseItem } from "./stored-response.ts";

/** Begins what this gateway writes into a compaction item; items of providers begin otherwise and pass as they are. */
const mark = "swc1.";

/** Asks the model for what it needs to go on without the conversation. */
const instruction =
  "Summarise the conversation above so that you can go on with it from the summary alone. Write down the user's goals " +
  "and wishes in their own words, every decision and its reason, facts, names, numbers, paths and code that are still needed, what " +
  "was done, the results of tool calls that matter, and what is to be done next. Write the summary only. Call no tools.";

const introduction =
  "The conversation so far was replaced by this summary of it. Go on from here.\n\n";

const userMessage = (text: string): ResponseItem => ({
  type: "message",
  role: "user",
  content: [{ type: "input_text", text }],
});

/** Fields of a request that decide how a model answers and not what a summary is. */
const unusedFields = [
  "stream",
  "stream_options",
  "background",
  "text",
  "previous_response_id",
  "include",
  "tool_choice",
  "parallel_tool_calls",
  "truncation",
];

/** The request that has the model summarise a conversation. */
export function compactionRequest(
  body: Readonly<Record<string, unknown>>,
  conversation: readonly ResponseItem[],
): Record<string, unknown> {
  const kept = Object.fromEntries(
    Object.entries(body).filter(([name]) => !unusedFields.includes(name)),
  );
  const hasTools = Array.isArray(kept["tools"]) && kept["tools"].length > 0;
  return {
    ...kept,
    ...(hasTools ? { tool_choice: "none" } : {}),
    store: false,
    input: [...conversation, userMessage(instruction)],
  };
}

/**
 * A compaction item that holds a summary. The client holds it and cannot be kept from reading its own conversation, so it is
 * written and not encrypted: it can be continued on every model, on every gateway, and after a change of keys.
 */
export const compactionItem = (id: string, summary: string): ResponseItem => ({
  type: "compaction",
  id,
  encrypted_content: mark + Buffer.from(summary, "utf8").toString("base64url"),
});

/** The conversation with the gateway's own compaction items as messages that every model reads; the same list where there are none. */
export function openCompactions(items: readonly ResponseItem[]): readonly ResponseItem[] {
  if (!items.some(isOwn)) return items;
  return items.map((item, index) =>
    isOwn(item) ? userMessage(introduction + summaryOf(item, index)) : item,
  );
}

const isOwn = ({ type, encrypted_content: content }: ResponseItem): boolean =>
  (type === "compaction" || type === "compaction_summary") &&
  typeof content === "string" &&
  content.startsWith(mark);

function summaryOf({ encrypted_content: content }: ResponseItem, index: number): string {
  const summary = Buffer.from(String(content).slice(mark.length), "base64url").toString("utf8");
  if (summary !== "") return summary;
  const param = `input[${index}].encrypted_content`;
  throw new GatewayError(
    "bad_request",
    `${param}: holds no summary. Send the item as POST /responses/compact answered it.`,
    { param },
  );
}
