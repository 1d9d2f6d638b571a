import { openaiChat } from "../../../../inference/dialects/openai-chat/index.ts";
import {
  resultText,
  type MadeCall,
  type ToolFace,
  type Wire,
  type WireCall,
} from "../dialogue-rounds.ts";
import type { HiddenTurns } from "./hidden-turns.ts";

const isList = (value: unknown): value is Wire[] => Array.isArray(value);

/** Returns the calls of a message of the chat dialect. */
export function callsOfMessage({ tool_calls: calls }: Wire): WireCall[] {
  if (!isList(calls)) return [];
  return calls.map(({ id, function: called }) => {
    const { name, arguments: given } = Object(called) as { name?: unknown; arguments?: unknown };
    return {
      id: String(id),
      name: String(name),
      argumentsText: typeof given === "string" ? given : "",
    };
  });
}

function unansweredCalls(messages: readonly Wire[]): WireCall[] {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const answer = messages[last];
  if (answer === undefined) return [];
  const after = messages.slice(last + 1);
  if (after.some(({ role }) => role !== "tool")) return [];
  const answered = new Set(after.map((message) => message["tool_call_id"]));
  return callsOfMessage(answer).filter(({ id }) => !answered.has(id));
}

/** Returns the results of calls, and their pictures in a message behind them, where they fit. */
function resultMessages(calls: readonly MadeCall[], seesPictures: boolean): Wire[] {
  const results = calls.map(({ id, ran }) => ({
    role: "tool",
    tool_call_id: id,
    content: resultText(ran),
  }));
  const pictures = seesPictures ? calls.flatMap(({ ran }) => ran.pictures) : [];
  if (pictures.length === 0) return results;
  const shown = pictures.map(({ mediaType, base64 }) => ({
    type: "image_url",
    image_url: { url: `data:${mediaType};base64,${base64}` },
  }));
  const text = { type: "text", text: "Pictures from the results of the tools:" };
  return [...results, { role: "user", content: [text, ...shown] }];
}

/** Returns what the chat dialect says of tools, for the turns that a workspace's clients hide. */
export const chatFace = (turns: HiddenTurns, workspaceId: string): ToolFace => ({
  dialect: openaiChat,
  functionOf: ({ name, definition }) => ({
    type: "function",
    function: {
      name,
      description: definition.description ?? definition.title ?? "",
      parameters: definition.inputSchema,
    },
  }),
  // Clients do not see the calls that the gateway made, so they are put back here.
  modelMessages: (messages) =>
    messages.flatMap((message) => {
      const hidden = callsOfMessage(message).flatMap(
        ({ id }) => turns.before(workspaceId, id) ?? [],
      );
      return [...new Set(hidden), message];
    }),
  callsOf: callsOfMessage,
  unansweredCalls,
  resultMessages,
  noTools: "none",
});
