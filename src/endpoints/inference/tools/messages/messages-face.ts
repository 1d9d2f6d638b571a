import { anthropicMessages } from "../../../../inference/dialects/anthropic-messages/index.ts";
import {
  resultText,
  type MadeCall,
  type ToolFace,
  type Wire,
  type WireCall,
} from "../dialogue-rounds.ts";
import type { GatewayTools } from "../gateway-tools.ts";

/** The blocks of a message; a text is one block. */
export function blocksOf({ content }: Wire): Wire[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? (content as Wire[]) : [];
}

const callOf = ({ id, name, input }: Wire): WireCall => ({
  id: String(id),
  name: String(name),
  argumentsText: JSON.stringify(input ?? {}),
});

const callsOf = (answer: Wire): WireCall[] =>
  blocksOf(answer)
    .filter(({ type }) => type === "tool_use")
    .map(callOf);

const resultsIn = (message: Wire | undefined): Set<unknown> =>
  new Set(
    message === undefined
      ? []
      : blocksOf(message)
          .filter(({ type }) => type === "tool_result")
          .map((block) => block["tool_use_id"]),
  );

function unansweredCalls(messages: readonly Wire[]): WireCall[] {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const answer = messages[last];
  if (answer === undefined || messages.length - last > 2) return [];
  const answered = resultsIn(messages[last + 1]);
  return callsOf(answer).filter(({ id }) => !answered.has(id));
}

/** Returns a message of the user that has these results first; it joins one that follows. */
const withResults = (results: readonly Wire[], message: Wire | undefined): Wire => ({
  role: "user",
  content: [...results, ...(message === undefined ? [] : blocksOf(message))],
});

/** Returns the result of a call as a model is sent it. */
function resultBlock({ id, ran }: MadeCall, seesPictures: boolean): Wire {
  const pictures = seesPictures ? ran.pictures : [];
  return {
    type: "tool_result",
    tool_use_id: id,
    ...(ran.error !== null && { is_error: true }),
    content: [
      { type: "text", text: resultText(ran) },
      ...pictures.map(({ mediaType, base64 }) => ({
        type: "image",
        source: { type: "base64", media_type: mediaType, data: base64 },
      })),
    ],
  };
}

/** Returns an answer's blocks as the messages of the model's own conversation. */
function answerMessages(
  blocks: readonly Wire[],
  tools: GatewayTools,
): { messages: Wire[]; results: Wire[] } {
  const messages: Wire[] = [];
  let content: Wire[] = [];
  let results: Wire[] = [];
  for (const block of blocks) {
    if (block["type"] === "mcp_tool_result") {
      const { tool_use_id: id, is_error: isError, content: told } = block;
      results.push({
        type: "tool_result",
        tool_use_id: id,
        ...(isError === true && { is_error: true }),
        content: told ?? "",
      });
      continue;
    }
    if (results.length > 0) {
      messages.push({ role: "assistant", content }, { role: "user", content: results });
      content = [];
      results = [];
    }
    content.push(block["type"] === "mcp_tool_use" ? usedBlock(block, tools) : block);
  }
  if (content.length > 0) messages.push({ role: "assistant", content });
  return { messages, results };
}

const usedBlock = ({ id, name, server_name: label, input }: Wire, tools: GatewayTools): Wire => ({
  type: "tool_use",
  id,
  name: tools.ofServer(String(label), String(name))?.name ?? name,
  input,
});

/** Returns a conversation whose calls of the gateway's tools are calls of functions. */
function modelMessages(messages: readonly Wire[], tools: GatewayTools): Wire[] {
  const shown: Wire[] = [];
  let pending: Wire[] = [];
  for (const message of messages) {
    const holdsCalls =
      message["role"] === "assistant" &&
      blocksOf(message).some(({ type }) => type === "mcp_tool_use");
    if (pending.length > 0) {
      const joins = message["role"] === "user";
      shown.push(withResults(pending, joins ? message : undefined));
      pending = [];
      if (joins) continue;
    }
    if (!holdsCalls) {
      shown.push(message);
      continue;
    }
    const { messages: own, results } = answerMessages(blocksOf(message), tools);
    shown.push(...own);
    pending = results;
  }
  return pending.length === 0 ? shown : [...shown, withResults(pending, undefined)];
}

/** What Messages says of tools. */
export const messagesFace: ToolFace = {
  dialect: anthropicMessages,
  functionOf: ({ name, definition }) => ({
    name,
    description: definition.description ?? definition.title ?? "",
    input_schema: definition.inputSchema,
  }),
  modelMessages,
  callsOf,
  unansweredCalls,
  resultMessages: (calls, seesPictures) => [
    { role: "user", content: calls.map((call) => resultBlock(call, seesPictures)) },
  ],
  noTools: { type: "none" },
};
