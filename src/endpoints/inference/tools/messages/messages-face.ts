import { ownSearchMark } from "../../../../inference/dialects/anthropic-messages/passthrough/foreign-searches.ts";
import { anthropicMessages } from "../../../../inference/dialects/anthropic-messages/index.ts";
import {
  resultText,
  type MadeCall,
  type ToolFace,
  type Wire,
  type WireCall,
} from "../dialogue-rounds.ts";
import { pagesText, searchDefinition } from "../../../../mcp/search/search-tool.ts";
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
    if (block["type"] === "web_search_tool_result") {
      results.push(searchResult(block));
      continue;
    }
    if (block["type"] === "mcp_tool_result") {
      const { tool_use_id: id, is_error: isError, content: blockContent } = block;
      results.push({
        type: "tool_result",
        tool_use_id: id,
        ...(isError === true && { is_error: true }),
        content: blockContent ?? "",
      });
      continue;
    }
    if (results.length > 0) {
      messages.push({ role: "assistant", content }, { role: "user", content: results });
      content = [];
      results = [];
    }
    content.push(isUse(block) ? usedBlock(block, tools) : withoutCitations(block));
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

/** Returns whether a block is a call that the gateway made. */
const isUse = ({ type, name }: Wire): boolean =>
  type === "mcp_tool_use" || (type === "server_tool_use" && name === searchDefinition.name);

/** Returns a text as its model wrote it: what it cites is in no conversation that a model is sent. */
function withoutCitations(block: Wire): Wire {
  const { citations: _, ...rest } = block;
  return block["type"] === "text" ? rest : block;
}

/** Returns the opaque form in which a client holds the text of a page. */
export const sealedText = (text: string): string =>
  ownSearchMark + Buffer.from(text, "utf8").toString("base64");

const openedText = (sealed: unknown): string =>
  Buffer.from(String(sealed).replace(ownSearchMark, ""), "base64").toString("utf8");

/** Returns the result of a search as the model was sent it. */
function searchResult({ tool_use_id: id, content }: Wire): Wire {
  const pages = Array.isArray(content)
    ? (content as Wire[]).map(({ url, title, encrypted_content: sealed, page_age: age }) => ({
        url: String(url),
        title: String(title),
        text: openedText(sealed),
        age: typeof age === "string" ? age : undefined,
      }))
    : undefined;
  return {
    type: "tool_result",
    tool_use_id: id,
    content: pages === undefined ? "The search failed." : pagesText(pages),
  };
}

/** Returns a conversation whose calls of the gateway's tools are calls of functions. */
function modelMessages(messages: readonly Wire[], tools: GatewayTools): Wire[] {
  const shown: Wire[] = [];
  let pending: Wire[] = [];
  for (const message of messages) {
    const holdsCalls = message["role"] === "assistant" && blocksOf(message).some(isUse);
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
