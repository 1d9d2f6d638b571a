import type {
  AssistantPart,
  Message,
  SystemMessage,
  ToolMessage,
  UserMessage,
} from "../../canonical/message.ts";
import { openProvenance, type ReasoningPart } from "../../canonical/reasoning.ts";
import type { ToolCallPart } from "../../canonical/tool.ts";
import { asObject, badRequest, type RequestFields } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { decodeCache } from "./cache-fields.ts";
import {
  contentBlocks,
  decodeText,
  decodeTexts,
  decodeUserBlock,
  opaque,
} from "./decode-blocks.ts";
import { extensionsOf } from "./own-fields.ts";

const knownFields: ReadonlySet<string> = new Set(["role", "content"]);
const knownCallFields: ReadonlySet<string> = new Set([
  "type",
  "id",
  "name",
  "input",
  "cache_control",
]);
const knownDirectCallFields: ReadonlySet<string> = new Set([...knownCallFields, "caller"]);
const knownResultFields: ReadonlySet<string> = new Set([
  "type",
  "tool_use_id",
  "content",
  "is_error",
  "cache_control",
]);
const knownThinkingFields: ReadonlySet<string> = new Set(["type", "thinking", "signature", "data"]);

/** The instructions and the conversation from the wire. */
export const decodeMessages = (body: RequestFields): Message[] => [
  ...decodeSystem(body),
  ...(body.nestedList("messages") ?? []).flatMap(decodeMessage),
];

function decodeSystem(body: RequestFields): SystemMessage[] {
  const parts = decodeTexts(body, "system");
  return parts.length === 0 ? [] : [{ role: "system", parts }];
}

function decodeMessage(message: RequestFields): Message[] {
  const extensions = extensionsOf(message, knownFields);
  const shared = extensions && { extensions };
  const role = message.requiredString("role");
  switch (role) {
    case "user":
      return decodeUser(message, shared);
    case "assistant":
      return [{ role, parts: contentBlocks(message).map(decodeAssistantBlock), ...shared }];
    case "system":
      return [decodeLaterSystem(message)];
    default:
      throw badRequest(message.pathOf("role"), "must be one of user, assistant, system.");
  }
}

/** Instructions within the conversation. Blocks that are no text (changes of the tools, in beta) stay beside the texts. */
function decodeLaterSystem(message: RequestFields): SystemMessage {
  const blocks = contentBlocks(message);
  const others = blocks
    .filter((block) => block.object.type !== "text")
    .map((block) => block.object);
  const fields = {
    ...extensionsOf(message, knownFields)?.fields,
    ...(others.length > 0 && { content: others }),
  };
  return {
    role: "system",
    parts: blocks.filter((block) => block.object.type === "text").map(decodeText),
    ...(Object.keys(fields).length > 0 && {
      extensions: { dialect: "anthropic-messages", fields },
    }),
  };
}

/** Results of tools are messages of their own; what else the user sends along follows them as one. */
function decodeUser(
  message: RequestFields,
  shared: Pick<UserMessage, "extensions"> | undefined,
): Message[] {
  const blocks = contentBlocks(message);
  const results = blocks
    .filter((block) => block.object.type === "tool_result")
    .map(decodeToolResult);
  const rest = blocks.filter((block) => block.object.type !== "tool_result");
  if (results.length > 0 && rest.length === 0) return results;
  return [...results, { role: "user", parts: rest.map(decodeUserBlock), ...shared }];
}

const decodeToolResult = (block: RequestFields): ToolMessage =>
  withoutUndefined<ToolMessage>({
    role: "tool",
    toolCallId: block.requiredString("tool_use_id"),
    parts: contentBlocks(block).map(decodeUserBlock),
    isError: block.boolean("is_error"),
    cache: decodeCache(block.object),
    extensions: extensionsOf(block, knownResultFields),
  });

function decodeAssistantBlock(block: RequestFields): AssistantPart {
  switch (block.requiredString("type")) {
    case "text":
      return decodeText(block);
    case "thinking":
      return decodeThinking(block);
    case "redacted_thinking":
      return decodeRedacted(block);
    case "tool_use":
      return decodeToolUse(block);
    default:
      return opaque(block);
  }
}

/** A thought with its maker's seal; clients write an empty one for thoughts that nobody sealed. */
function decodeThinking(block: RequestFields): ReasoningPart {
  const sealed = block.string("signature");
  const { seal, provenance } = sealed ? openProvenance(sealed) : {};
  return withoutUndefined<ReasoningPart>({
    type: "reasoning",
    text: block.string("thinking") || undefined,
    signature: seal,
    provenance,
    extensions: extensionsOf(block, knownThinkingFields),
  });
}

function decodeRedacted(block: RequestFields): ReasoningPart {
  const { seal, provenance } = openProvenance(block.requiredString("data"));
  return withoutUndefined<ReasoningPart>({
    type: "reasoning",
    encrypted: seal,
    provenance,
    extensions: extensionsOf(block, knownThinkingFields),
  });
}

/** A call; older clients leave out the input of tools that take none. */
const decodeToolUse = (block: RequestFields): ToolCallPart =>
  withoutUndefined<ToolCallPart>({
    type: "tool-call",
    kind: "function",
    id: block.requiredString("id"),
    name: block.requiredString("name"),
    arguments: JSON.stringify(block.object.input ?? {}),
    cache: decodeCache(block.object),
    extensions: extensionsOf(
      block,
      isDirect(block.object.caller) ? knownDirectCallFields : knownCallFields,
    ),
  });

/** That the model itself called is what every dialect takes for granted; SDKs write it into every call. */
const isDirect = (caller: unknown): boolean => asObject(caller)?.type === "direct";
