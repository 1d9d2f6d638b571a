import type { AssistantMessage, Message, ToolMessage } from "../canonical/message.ts";
import type { ToolCallPart } from "../canonical/tool.ts";

/**
 * The conversation with every tool call answered once, right after its turn, as every upstream demands:
 * a call that was never answered (the user interrupted) gets an error result, and a result that no call
 * asked for becomes a user's text after them. Conversations that are in order come back as they are.
 */
export function repairToolTurns(messages: readonly Message[]): readonly Message[] {
  if (!messages.some(isOfTools)) return messages;
  const repaired: Message[] = [];
  let open = new Map<string, ToolCallPart>();
  let orphans: Message[] = [];
  const closeTurn = (): void => {
    repaired.push(...missingResults(open), ...orphans);
    open = new Map();
    orphans = [];
  };
  for (const message of messages) {
    if (message.role === "tool") {
      if (open.delete(message.toolCallId)) repaired.push(message);
      else orphans.push(orphanAsText(message));
    } else {
      closeTurn();
      if (message.role === "assistant") open = callsById(message);
      repaired.push(message);
    }
  }
  closeTurn();
  return repaired;
}

const isOfTools = (message: Message): boolean =>
  message.role === "tool" ||
  (message.role === "assistant" && message.parts.some((part) => part.type === "tool-call"));

const callsById = (message: AssistantMessage): Map<string, ToolCallPart> =>
  new Map(
    message.parts.flatMap((part) => (part.type === "tool-call" ? [[part.id, part] as const] : [])),
  );

const missingResults = (open: ReadonlyMap<string, ToolCallPart>): ToolMessage[] =>
  [...open.values()].map((call) => ({
    role: "tool",
    toolCallId: call.id,
    parts: [{ type: "text", text: "(no result)" }],
    isError: true,
    ...(call.kind === "custom" && { kind: call.kind }),
  }));

function orphanAsText(message: ToolMessage): Message {
  const lead = `Result of the tool call ${message.toolCallId}:`;
  return { role: "user", parts: [{ type: "text", text: lead }, ...message.parts] };
}
