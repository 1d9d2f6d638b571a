import type {
  DocumentPart,
  ImagePart,
  MediaSource,
  OpaquePart,
  TextPart,
  AssistantPart,
  Message,
  SystemMessage,
  ToolMessage,
  UserMessage,
  ToolCallPart,
} from "../../../canonical/message.ts";
import { decodeEach, writtenAt } from "../../../canonical/written-places.ts";
import { openProvenance, type ReasoningPart } from "../../../canonical/reasoning.ts";
import { asObject, badRequest, RequestFields, withoutUndefined } from "../../shared/wire-fields.ts";
import { decodeCache, extensionsOf, decodeCitations } from "../answer-fields.ts";

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

/** Decodes the instructions and the conversation. */
export const decodeMessages = (body: RequestFields): Message[] => [
  ...decodeSystem(body),
  ...(body.nestedList("messages") ?? []).flatMap(decodeMessage),
];

function decodeSystem(body: RequestFields): SystemMessage[] {
  const parts = decodeTexts(body, "system");
  return parts.length === 0 ? [] : [writtenAt("system", { role: "system", parts })];
}

function decodeMessage(message: RequestFields): Message[] {
  const extensions = extensionsOf(message, knownFields);
  const shared = extensions && { extensions };
  const role = message.requiredString("role");
  switch (role) {
    case "user":
      return decodeUser(message, shared);
    case "assistant":
      return [
        writtenAt(message.path, {
          role,
          parts: decodeEach(contentBlocks(message), decodeAssistantBlock),
          ...shared,
        }),
      ];
    case "system":
      return [writtenAt(message.path, decodeLaterSystem(message))];
    default:
      throw badRequest(message.pathOf("role"), "must be one of user, assistant, system.");
  }
}

/**
 * Decodes instructions within the conversation. Blocks that are no text (changes of the tools, in
 * beta) stay beside the texts.
 */
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
    parts: decodeEach(
      blocks.filter((block) => block.object.type === "text"),
      decodeText,
    ),
    ...(Object.keys(fields).length > 0 && {
      extensions: { dialect: "anthropic-messages", fields },
    }),
  };
}

/**
 * Decodes a user's message. Results of tools become messages of their own, followed by everything
 * else as one message.
 */
function decodeUser(
  message: RequestFields,
  shared: Pick<UserMessage, "extensions"> | undefined,
): Message[] {
  const blocks = contentBlocks(message);
  const results = decodeEach(
    blocks.filter((block) => block.object.type === "tool_result"),
    decodeToolResult,
  );
  const rest = blocks.filter((block) => block.object.type !== "tool_result");
  if (results.length > 0 && rest.length === 0) return results;
  const user: UserMessage = { role: "user", parts: decodeEach(rest, decodeUserBlock), ...shared };
  return [...results, writtenAt(message.path, user)];
}

const decodeToolResult = (block: RequestFields): ToolMessage =>
  withoutUndefined<ToolMessage>({
    role: "tool",
    toolCallId: block.requiredString("tool_use_id"),
    parts: decodeEach(contentBlocks(block), decodeUserBlock),
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

/**
 * Decodes a reasoning block with its maker's seal. Clients write an empty seal for unsealed
 * reasoning.
 */
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

/** Decodes a call. Older clients omit the input of tools that take none. */
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

/**
 * Returns whether the model itself called, which is the default in every dialect and which SDKs
 * write into every call.
 */
const isDirect = (caller: unknown): boolean => asObject(caller)?.type === "direct";

const knownBlockFields = {
  text: new Set(["type", "text", "citations", "cache_control"]),
  image: new Set(["type", "source", "cache_control"]),
  document: new Set(["type", "source", "title", "context", "citations", "cache_control"]),
  // A search result's type and source stay beside the canonical document, so that it can be
  // restored.
  searchResult: new Set(["content", "title", "citations", "cache_control"]),
};

/** Returns content as fields, one for each block; text is one block, and absent content is none. */
function contentBlocks(fields: RequestFields, key = "content"): RequestFields[] {
  const content = fields.object[key];
  const path = fields.pathOf(key);
  if (content === undefined || content === null || content === "") return [];
  if (typeof content === "string")
    return [new RequestFields({ type: "text", text: content }, path)];
  if (!Array.isArray(content))
    throw badRequest(path, "must be a string or an array of content blocks.");
  return content.map((block, index) => new RequestFields(block, `${path}[${index}]`));
}

/** Decodes blocks of instructions, which are text alone. */
function decodeTexts(fields: RequestFields, key: string): TextPart[] {
  return decodeEach(contentBlocks(fields, key), (block) => {
    const type = block.requiredString("type");
    if (type !== "text")
      throw badRequest(block.pathOf("type"), `must be "text" here, not "${type}".`);
    return decodeText(block);
  });
}

/**
 * Decodes a block that a user or a tool may send; blocks that only this dialect has are kept as
 * they are.
 */
function decodeUserBlock(block: RequestFields): TextPart | ImagePart | DocumentPart | OpaquePart {
  switch (block.requiredString("type")) {
    case "text":
      return decodeText(block);
    case "image":
      return decodeImage(block) ?? opaque(block);
    case "document":
      return decodeDocument(block) ?? opaque(block);
    case "search_result":
      return decodeSearchResult(block);
    default:
      return opaque(block);
  }
}

/** Keeps a block that no other dialect has. */
const opaque = (block: RequestFields): OpaquePart => ({
  type: "opaque",
  dialect: "anthropic-messages",
  value: block.object,
});

/** Decodes a text block. Throws `bad_request` when its text is not a string. */
const decodeText = (block: RequestFields): TextPart =>
  withoutUndefined<TextPart>({
    type: "text",
    text: block.requiredString("text"),
    annotations: decodeCitations(block.object.citations),
    cache: decodeCache(block.object),
    extensions: extensionsOf(block, knownBlockFields.text),
  });

function decodeImage(block: RequestFields): ImagePart | undefined {
  const source = mediaSource(requiredSource(block));
  return (
    source &&
    withoutUndefined<ImagePart>({
      type: "image",
      source,
      cache: decodeCache(block.object),
      extensions: extensionsOf(block, knownBlockFields.image),
    })
  );
}

function requiredSource(block: RequestFields): RequestFields {
  const source = block.nested("source");
  if (source === undefined) {
    throw badRequest(
      block.pathOf("source"),
      'is required: {"type": "base64", "media_type": "...", "data": "..."}.',
    );
  }
  return source;
}

function mediaSource(source: RequestFields): MediaSource | undefined {
  switch (source.requiredString("type")) {
    case "base64":
      return {
        type: "base64",
        mediaType: mediaTypeOf(source.requiredString("media_type")),
        data: source.requiredString("data"),
      };
    case "url":
      return { type: "url", url: source.requiredString("url") };
    case "file":
      return { type: "file", fileId: source.requiredString("file_id") };
    default:
      return undefined;
  }
}

/**
 * Normalises a media type: lower case, without parameters; `image/jpg` is not a registered type.
 */
function mediaTypeOf(written: string): string {
  const type = (written.split(";")[0] ?? "").trim().toLowerCase();
  return type === "image/jpg" ? "image/jpeg" : type;
}

function decodeDocument(block: RequestFields): DocumentPart | undefined {
  const source = documentSource(requiredSource(block));
  return (
    source &&
    withoutUndefined<DocumentPart>({
      type: "document",
      source,
      title: block.string("title"),
      context: block.string("context"),
      citations: block.nested("citations")?.boolean("enabled"),
      cache: decodeCache(block.object),
      extensions: extensionsOf(block, knownBlockFields.document),
    })
  );
}

function documentSource(source: RequestFields): DocumentPart["source"] | undefined {
  switch (source.requiredString("type")) {
    case "text": {
      const mediaType = source.string("media_type") ?? "text/plain";
      return {
        type: "text",
        text: source.requiredString("data"),
        ...(mediaType !== "text/plain" && { mediaType }),
      };
    }
    case "content": {
      const parts = contentBlocks(source).map(decodeUserBlock);
      const plain = parts.filter(
        (part): part is TextPart | ImagePart => part.type === "text" || part.type === "image",
      );
      return plain.length === parts.length ? { type: "parts", parts: plain } : undefined;
    }
    default:
      return mediaSource(source);
  }
}

/** Decodes a search result as a document of texts with an address. */
const decodeSearchResult = (block: RequestFields): DocumentPart =>
  withoutUndefined<DocumentPart>({
    type: "document",
    source: { type: "parts", parts: decodeTexts(block, "content") },
    title: block.string("title"),
    citations: block.nested("citations")?.boolean("enabled"),
    cache: decodeCache(block.object),
    extensions: extensionsOf(block, knownBlockFields.searchResult),
  });
