import type {
  AudioOutputPart,
  DocumentPart,
  ImagePart,
  MediaSource,
  RefusalPart,
  TextPart,
  AssistantMessage,
  AssistantPart,
  Message,
  ToolMessage,
  UserPart,
  ToolCallPart,
} from "../../../canonical/message.ts";
import type { JsonValue } from "../../../canonical/json.ts";
import {
  mediaSource,
  decodeCache,
  decodeInputAudio,
  fileBytes,
  markerFields,
} from "../../shared/openai-fields.ts";
import {
  asArray,
  asObject,
  asString,
  badRequest,
  RequestFields,
  withoutUndefined,
} from "../../shared/wire-fields.ts";
import { decodeReasoning, reasoningFields, thoughtSignature } from "../answer-fields.ts";

const knownFields: ReadonlySet<string> = new Set([
  "role",
  "content",
  "name",
  "tool_calls",
  "tool_call_id",
  "refusal",
  "audio",
  "function_call",
  ...reasoningFields,
]);
const knownCallFields: ReadonlySet<string> = new Set([
  "id",
  "type",
  "index",
  "function",
  "custom",
  "extra_content",
]);

/**
 * Decodes a conversation. Older `function` messages answer the latest `function_call` of that name.
 */
export function decodeMessages(body: RequestFields): Message[] {
  const legacy = new LegacyCalls();
  return withResultKinds(
    (body.nestedList("messages") ?? []).map((message) => decodeMessage(message, legacy)),
  );
}

/** Marks results of custom tools, which chat does not distinguish and Responses does. */
function withResultKinds(messages: readonly Message[]): Message[] {
  const customIds = new Set<string>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const part of message.parts)
      if (part.type === "tool-call" && part.kind === "custom") customIds.add(part.id);
  }
  return customIds.size === 0
    ? [...messages]
    : messages.map((message) =>
        message.role === "tool" && customIds.has(message.toolCallId)
          ? { ...message, kind: "custom" }
          : message,
      );
}

/** Gives older calls, which have no ids, ids by their order in the conversation. */
class LegacyCalls {
  private count = 0;
  private readonly latest = new Map<string, string>();

  call(name: string): string {
    this.count += 1;
    const id = `call_function_${this.count}`;
    this.latest.set(name, id);
    return id;
  }

  answer(name: string): string {
    return this.latest.get(name) ?? this.call(name);
  }
}

function decodeMessage(message: RequestFields, legacy: LegacyCalls): Message {
  const shared = withoutUndefined<{
    name?: string;
    extensions?: NonNullable<Message["extensions"]>;
  }>({
    name: message.string("name"),
    extensions: message.unknown("openai-chat", knownFields),
  });
  const role = message.requiredString("role");
  switch (role) {
    case "system":
      return { role, parts: decodeTexts(message), ...shared };
    case "developer":
      return { role: "system", developer: true, parts: decodeTexts(message), ...shared };
    case "user":
      return { role, parts: decodeUserContent(message), ...shared };
    case "assistant":
      return { role, parts: decodeAssistantParts(message, legacy), ...shared };
    case "tool":
      return decodeToolMessage(message, { id: message.requiredString("tool_call_id"), shared });
    case "function": {
      const name = message.requiredString("name");
      return decodeToolMessage(message, { id: legacy.answer(name), shared });
    }
    default:
      throw badRequest(
        message.pathOf("role"),
        "must be one of developer, system, user, assistant, tool, function.",
      );
  }
}

/**
 * Decodes a tool's message. Officially it is text alone; other parts are kept, since several
 * compatible servers accept images here.
 */
const decodeToolMessage = (
  message: RequestFields,
  facts: { id: string; shared: Partial<ToolMessage> },
): ToolMessage => ({
  role: "tool",
  toolCallId: facts.id,
  parts: decodeUserContent(message).map((part, index) => {
    if (part.type !== "audio") return part;
    throw badRequest(
      `${message.pathOf("content")}[${index}]`,
      "must be text; tool results carry no audio.",
    );
  }),
  ...facts.shared,
});

function decodeAssistantParts(
  message: RequestFields,
  legacy: LegacyCalls,
): AssistantMessage["parts"] {
  const { leading, beforeCall } = decodeReasoning(message.object);
  const parts: AssistantPart[] = [...leading, ...contentParts(message).map(decodeAssistantPart)];
  const refusal = message.string("refusal");
  if (refusal) parts.push({ type: "refusal", refusal });
  const audio = message.nested("audio");
  if (audio !== undefined)
    parts.push({ type: "audio-output", id: audio.requiredString("id") } satisfies AudioOutputPart);
  for (const call of message.nestedList("tool_calls") ?? []) {
    const part = decodeToolCall(call);
    parts.push(...(beforeCall.get(part.id) ?? []), part);
  }
  const functionCall = message.nested("function_call");
  if (functionCall !== undefined) parts.push(decodeFunctionCall(functionCall, legacy));
  return parts;
}

function decodeAssistantPart(part: RequestFields): AssistantPart {
  switch (part.requiredString("type")) {
    case "text":
    case "output_text":
      return decodeText(part);
    case "refusal":
      return { type: "refusal", refusal: part.requiredString("refusal") } satisfies RefusalPart;
    case "thinking":
      return { type: "reasoning", text: thinkingText(part.object.thinking), field: "content" };
    default:
      return { type: "opaque", dialect: "openai-chat", value: part.object };
  }
}

/** Returns the text of Mistral's thinking part: a list of text parts, or text. */
export const thinkingText = (thinking: unknown): string =>
  asString(thinking) ??
  (asArray(thinking) ?? []).map((part) => asString(asObject(part)?.text) ?? "").join("");

function decodeToolCall(call: RequestFields): ToolCallPart {
  const id = call.requiredString("id");
  const custom = call.string("type") === "custom" ? call.nested("custom") : undefined;
  const named = custom ?? call.nested("function");
  if (named === undefined)
    throw badRequest(call.pathOf("function"), 'is required: {"name": "...", "arguments": "{}"}.');
  return withoutUndefined<ToolCallPart>({
    type: "tool-call",
    kind: custom ? "custom" : "function",
    id,
    name: named.requiredString("name"),
    arguments: custom ? (custom.string("input") ?? "") : argumentsText(named.object.arguments),
    ...thoughtSignature(call.object.extra_content),
    extensions: call.unknown("openai-chat", knownCallFields),
  });
}

/**
 * Returns arguments as JSON text; some clients send the object itself, or nothing for a tool
 * without parameters.
 */
export function argumentsText(value: unknown): string {
  if (typeof value === "string") return value.trim() === "" ? "{}" : value;
  return value === undefined || value === null ? "{}" : JSON.stringify(value);
}

const decodeFunctionCall = (call: RequestFields, legacy: LegacyCalls): ToolCallPart => {
  const name = call.requiredString("name");
  return {
    type: "tool-call",
    kind: "function",
    id: legacy.call(name),
    name,
    arguments: argumentsText(call.object.arguments),
  };
};

const knownPartFields = {
  text: new Set(["type", "text", ...markerFields]),
  image: new Set(["type", "image_url", ...markerFields]),
  audio: new Set(["type", "input_audio", ...markerFields]),
  file: new Set(["type", "file", ...markerFields]),
};

/**
 * Returns content as fields, one for each part; a string is one text part, and absent content is
 * none.
 */
function contentParts(fields: RequestFields): RequestFields[] {
  const { content } = fields.object;
  const path = fields.pathOf("content");
  if (content === undefined || content === null || content === "") return [];
  if (typeof content === "string")
    return [new RequestFields({ type: "text", text: content }, path)];
  if (!Array.isArray(content))
    throw badRequest(path, "must be a string or an array of content parts.");
  return content.map(
    (part: JsonValue, index) =>
      new RequestFields(
        typeof part === "string" ? { type: "text", text: part } : part,
        `${path}[${index}]`,
      ),
  );
}

/** Decodes content that may only be text: instructions and the results of tools. */
function decodeTexts(fields: RequestFields): TextPart[] {
  return contentParts(fields).map((part) => {
    const type = part.requiredString("type");
    if (type !== "text")
      throw badRequest(part.pathOf("type"), `must be "text" here, not "${type}".`);
    return decodeText(part);
  });
}

/** Decodes content of a user's message; unknown types are kept as they are. */
const decodeUserContent = (fields: RequestFields): UserPart[] =>
  contentParts(fields).map(decodeUserPart);

function decodeUserPart(part: RequestFields): UserPart {
  switch (part.requiredString("type")) {
    case "text":
      return decodeText(part);
    case "image_url":
      return decodeImage(part);
    case "input_audio":
      return decodeInputAudio(part, { dialect: "openai-chat", known: knownPartFields.audio });
    case "file":
      return decodeFile(part);
    default:
      return { type: "opaque", dialect: "openai-chat", value: part.object };
  }
}

/** Decodes a text part. Throws `bad_request` when its text is not a string. */
function decodeText(part: RequestFields): TextPart {
  return withoutUndefined<TextPart>({
    type: "text",
    text: part.requiredString("text"),
    cache: decodeCache(part),
    extensions: part.unknown("openai-chat", knownPartFields.text),
  });
}

function decodeImage(part: RequestFields): ImagePart {
  const shorthand = asString(part.object.image_url);
  const image = shorthand === undefined ? part.nested("image_url") : undefined;
  const url = shorthand ?? image?.requiredString("url");
  if (url === undefined)
    throw badRequest(
      part.pathOf("image_url"),
      'is required: {"url": "https://... or data:image/..."}.',
    );
  return withoutUndefined<ImagePart>({
    type: "image",
    source: mediaSource(url),
    detail: image?.string("detail"),
    cache: decodeCache(part),
    extensions: part.unknown("openai-chat", knownPartFields.image),
  });
}

function decodeFile(part: RequestFields): DocumentPart {
  const file = part.nested("file");
  const fileId = file?.string("file_id");
  const data = file?.string("file_data");
  if (fileId === undefined && data === undefined)
    throw badRequest(part.pathOf("file"), "needs file_data or file_id.");
  return withoutUndefined<DocumentPart>({
    type: "document",
    source: data === undefined ? { type: "file", fileId: fileId ?? "" } : fileSource(data),
    title: file?.string("filename"),
    cache: decodeCache(part),
    extensions: part.unknown("openai-chat", knownPartFields.file),
  });
}

/** Returns the source of a file: bytes, or an address, which some servers accept too. */
const fileSource = (data: string): MediaSource =>
  /^https?:\/\//i.test(data) ? { type: "url", url: data } : fileBytes(data);
