import { isPictureType, pictureTypeOf } from "../../../../platform/kernel/picture-type.ts";
import {
  type DocumentPart,
  type ImagePart,
  type MediaSource,
  type OpaquePart,
  type TextPart,
  type AssistantMessage,
  type AssistantPart,
  type Message,
  splitLeadingSystem,
  type SystemMessage,
  type ToolMessage,
  type UserMessage,
  type UserPart,
  type ToolCallPart,
} from "../../../canonical/message.ts";
import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import {
  isForeignReasoning,
  isSealedReasoning,
  type ReasoningPart,
} from "../../../canonical/reasoning.ts";
import { type EncodePlace, type EncodeState, opaqueName } from "../../shared/encode-state.ts";
import { claudeAbilities } from "../../shared/reasoning-rules.ts";
import { withMembers } from "../../shared/schemas/member-names.ts";
import { argumentsObject, wrapInput } from "../../shared/tools.ts";
import { asArray, unsupportedContent, withoutUndefined } from "../../shared/wire-fields.ts";
import { cacheFields, legalCallId, replayCitation, takesLaterSystem } from "../answer-fields.ts";

/** Encodes the conversation, with its leading instructions separately. */
export function encodeMessages(state: EncodeState): {
  system: JsonValue | undefined;
  messages: JsonObject[];
} {
  const { leading, rest } = splitLeadingSystem(state.conversation);
  const system = leading.flatMap((message, index) =>
    encodeSystem(message, state.at(`messages[${index}]`)),
  );
  const turns = new TurnEncoder(state, leading.length);
  for (const message of rest) turns.add(message);
  const messages = turns.finish();
  if (messages.length + system.length === 0)
    throw unsupportedContent("messages", "say nothing; send a message with content.");
  // Anthropic requires a message, so a request of instructions alone is sent as the user's.
  if (messages.length === 0)
    return { system: undefined, messages: [{ role: "user", content: plainOrBlocks(system) }] };
  return { system: system.length === 0 ? undefined : plainOrBlocks(system), messages };
}

const encodeSystem = (message: SystemMessage, place: EncodePlace): JsonObject[] =>
  message.parts.flatMap((part, index) => encodeText(part, place.at(`.content[${index}]`)));

/** A message of the wire that may still grow. */
interface Turn {
  role: "user" | "assistant" | "system";
  blocks: JsonObject[];
  fields: JsonObject;
  /**
   * Whether it has only results of tools so far, so that the user's next message is appended to it.
   */
  resultsOnly: boolean;
}

/** The turn before a conversation that the model began. */
const openingTurn: Turn = {
  role: "user",
  blocks: [{ type: "text", text: "(The conversation begins.)" }],
  fields: {},
  resultsOnly: false,
};

/** The turn behind a conversation that ends in the model's own. */
const closingTurn: Turn = {
  role: "user",
  blocks: [{ type: "text", text: "Continue." }],
  fields: {},
  resultsOnly: false,
};

/**
 * Encodes message by message. Consecutive messages of one side become one where another dialect
 * wrote them.
 */
class TurnEncoder {
  private readonly turns: Turn[] = [];
  private index: number;

  constructor(
    private readonly state: EncodeState,
    firstIndex: number,
  ) {
    this.index = firstIndex;
  }

  add(message: Message): void {
    const place = this.state.at(`messages[${this.index}]`);
    this.index += 1;
    switch (message.role) {
      case "tool":
        this.push({
          role: "user",
          blocks: [encodeResult(message, place)],
          fields: {},
          resultsOnly: true,
        });
        break;
      case "user":
        this.push({
          ...sharedFields(message, place),
          role: "user",
          blocks: encodeUser(message, place),
        });
        break;
      case "assistant":
        this.push({
          ...sharedFields(message, place),
          role: "assistant",
          blocks: encodeAssistant(message, place),
        });
        break;
      case "system":
        this.push(this.laterSystem(message, place));
    }
  }

  finish(): JsonObject[] {
    const { turns, state } = this;
    const { sameDialect } = state;
    const { refusesPrefill } = claudeAbilities(state.options.upstreamModel);
    const last = turns.at(-1);
    if (last?.role === "assistant") trimEnd(last.blocks);
    const filled = turns.filter(({ blocks }) => blocks.length > 0);
    if (filled[0]?.role === "assistant" && !sameDialect) filled.unshift(openingTurn);
    if (filled.at(-1)?.role === "assistant" && refusesPrefill && !sameDialect) {
      state.lose(`messages[${this.index - 1}]`, "the model takes no beginning of its answer");
      filled.push(closingTurn);
    }
    return filled.map(({ role, blocks, fields }) => ({
      role,
      content: plainOrBlocks(blocks),
      ...fields,
    }));
  }

  private push(turn: Turn): void {
    const last = this.turns.at(-1);
    const joins =
      last?.role === turn.role &&
      turn.role !== "system" &&
      (!this.state.sameDialect || last.resultsOnly);
    if (turn.blocks.length === 0 && !this.state.sameDialect) return;
    if (!joins) {
      this.turns.push(turn);
      return;
    }
    last.blocks.push(...turn.blocks);
    last.fields = { ...last.fields, ...turn.fields };
    last.resultsOnly &&= turn.resultsOnly;
  }

  /**
   * Encodes later instructions at their place in the conversation, since moving them to its head
   * would change their meaning and spoil the prompt cache. Rules that only this dialect's own
   * clients know limit where they may be placed, so those of other clients are sent as the user's.
   */
  private laterSystem(message: SystemMessage, place: EncodePlace): Turn {
    const { sameDialect, deviations, options } = this.state;
    const { content, ...fields } = place.extensionFields(message.extensions);
    const blocks = encodeSystem(message, place);
    if (sameDialect && takesLaterSystem(options.upstreamModel, deviations)) {
      return {
        role: "system",
        blocks: [...blocks, ...((asArray(content) ?? []) as readonly JsonObject[])],
        fields,
        resultsOnly: false,
      };
    }
    const text = blocks.map((block) => String(block.text)).join("\n\n");
    const reminder =
      text === "" ? [] : [{ type: "text", text: `<system-reminder>\n${text}\n</system-reminder>` }];
    return { role: "user", blocks: reminder, fields: {}, resultsOnly: false };
  }
}

function sharedFields(
  message: UserMessage | AssistantMessage,
  place: EncodePlace,
): Pick<Turn, "fields" | "resultsOnly"> {
  if (message.name !== undefined) place.at(".name").lose("messages has no such field");
  return { fields: place.extensionFields(message.extensions), resultsOnly: false };
}

const encodeUser = (message: UserMessage, place: EncodePlace): JsonObject[] =>
  message.parts.flatMap((part, index) => encodeUserPart(part, place.at(`.content[${index}]`)));

function encodeResult(message: ToolMessage, place: EncodePlace): JsonObject {
  const blocks = message.parts.flatMap((part, index) =>
    encodeUserPart(part, place.at(`.content[${index}]`)),
  );
  return {
    type: "tool_result",
    tool_use_id: legalCallId(message.toolCallId),
    ...(blocks.length > 0 && { content: plainOrBlocks(blocks) }),
    ...(message.isError !== undefined && { is_error: message.isError }),
    ...cacheFields(message.cache),
    ...place.extensionFields(message.extensions),
  };
}

/** Removes white space from the end of the model's last turn, which Anthropic refuses. */
function trimEnd(blocks: JsonObject[]): void {
  const last = blocks.at(-1);
  if (last?.type === "text" && typeof last.text === "string")
    blocks[blocks.length - 1] = { ...last, text: last.text.trimEnd() };
}

/** Encodes a turn of the model as blocks, in the order in which they were generated. */
const encodeAssistant = (message: AssistantMessage, place: EncodePlace): JsonObject[] =>
  message.parts.flatMap((part, index) => encodePart(part, place.at(`.content[${index}]`)));

function encodePart(part: AssistantPart, place: EncodePlace): JsonObject[] {
  switch (part.type) {
    case "text":
      return encodeText(part, place);
    case "refusal":
      return part.refusal.trim() === "" ? [] : [{ type: "text", text: part.refusal }];
    case "reasoning":
      return encodeThought(part, place);
    case "tool-call":
      return [encodeCall(part, place)];
    case "image":
      place.lose("messages history holds no images of the model's");
      return [];
    case "audio-output":
      place.lose("messages history holds no sound");
      return [];
    case "opaque":
      if (part.dialect === "anthropic-messages") return [part.value];
      place.lose(`a ${opaqueName(part)} of ${part.dialect}`);
      return [];
  }
}

/**
 * Encodes a reasoning block. It is sent back to its maker unchanged, or not at all: Anthropic
 * verifies the seal, and accepts a turn without its reasoning. Unsealed reasoning is sent only to
 * servers that ask for it.
 */
function encodeThought(part: ReasoningPart, place: EncodePlace): JsonObject[] {
  const { signature, encrypted, text } = part;
  if (isForeignReasoning(part, place.state.options.providerId)) {
    place.lose("sealed by another provider");
    return [];
  }
  const own = place.extensionFields(part.extensions);
  if (signature !== undefined && isSealedReasoning(part))
    return [{ type: "thinking", thinking: text ?? "", signature, ...own }];
  if (encrypted !== undefined && text === undefined && !part.summary?.length) {
    return [{ type: "redacted_thinking", data: encrypted, ...own }];
  }
  const words = text ?? part.summary?.join("\n\n");
  if (place.state.deviations.reasoningReplay === "content" && words)
    return [{ type: "thinking", thinking: words, signature: "" }];
  place.lose("the upstream takes back no thoughts that it did not seal");
  return [];
}

function encodeCall(call: ToolCallPart, place: EncodePlace): JsonObject {
  const { namer } = place.state;
  const input = argumentsObject(namer.wraps(call) ? wrapInput(call.arguments) : call.arguments);
  return {
    type: "tool_use",
    id: legalCallId(call.id),
    name: namer.wireName(call),
    input: withMembers(input, namer.membersOf(call)),
    ...cacheFields(call.cache),
    ...place.extensionFields(call.extensions),
  };
}

/**
 * Encodes a block of a user's message or of a tool's result; none for blank text, which Anthropic
 * answers with 400.
 */
function encodeUserPart(part: UserPart, place: EncodePlace): JsonObject[] {
  switch (part.type) {
    case "text":
      return encodeText(part, place);
    case "image":
      return [encodeImage(part, place)];
    case "document":
      return [encodeDocument(part, place)];
    case "audio":
      throw place.unsupported(
        "is sound, which this model's provider does not take; send its transcript.",
      );
    case "opaque":
      return [encodeOpaque(part, place)];
  }
}

/** Encodes a text block with its citations; none when it is blank. */
function encodeText(part: TextPart, place: EncodePlace): JsonObject[] {
  if (part.text.trim() === "") return [];
  const { annotations = [], cache, extensions } = part;
  if (annotations.length === 0 && cache === undefined && extensions === undefined)
    return [{ type: "text", text: part.text }];
  const citations = annotations.flatMap(replayCitation);
  if (citations.length < annotations.length)
    place.at(".annotations").lose("citations of another dialect or of another model");
  return [
    {
      type: "text",
      text: part.text,
      ...(citations.length > 0 && { citations }),
      ...cacheFields(cache),
      ...place.extensionFields(extensions),
    },
  ];
}

/** Returns one plain text as a string, which every server accepts; otherwise blocks. */
function plainOrBlocks(blocks: readonly JsonObject[]): JsonValue {
  const [first] = blocks;
  const plain = blocks.length === 1 && first?.type === "text" && Object.keys(first).length === 2;
  return plain && typeof first.text === "string" ? first.text : blocks;
}

function encodeImage(part: ImagePart, place: EncodePlace): JsonObject {
  if (part.detail !== undefined) place.at(".detail").lose("messages has no such field");
  return {
    type: "image",
    source: mediaSource(part.source, { place, data: imageBytes }),
    ...cacheFields(part.cache),
    ...place.extensionFields(part.extensions),
  };
}

interface SourceWriter {
  place: EncodePlace;
  /** Encodes inline bytes as a source. */
  data(source: Extract<MediaSource, { type: "base64" }>, place: EncodePlace): JsonObject;
}

function mediaSource(source: MediaSource, { place, data }: SourceWriter): JsonObject {
  switch (source.type) {
    case "url":
      return { type: "url", url: source.url };
    case "base64":
      return data(source, place);
    case "file":
      if (place.state.sameDialect) return { type: "file", file_id: source.fileId };
      throw place.unsupported(
        "names an uploaded file, which this model's provider cannot read; send its bytes or address.",
      );
  }
}

/**
 * Encodes bytes under the type that they really have: Anthropic compares the two and refuses a
 * mismatch.
 */
function imageBytes(
  { mediaType, data }: { mediaType: string; data: string },
  place: EncodePlace,
): JsonObject {
  const type = place.state.sameDialect
    ? mediaType
    : (pictureTypeOf(data) ?? (isPictureType(mediaType) ? mediaType : undefined));
  if (type === undefined) {
    throw place.unsupported(
      `has the unsupported image type ${mediaType}; send a JPEG, PNG, GIF or WebP.`,
    );
  }
  return { type: "base64", media_type: type, data };
}

const encodeDocument = (part: DocumentPart, place: EncodePlace): JsonObject => {
  const search =
    part.extensions?.fields.type === "search_result" &&
    part.extensions.dialect === "anthropic-messages";
  const citations = part.citations === undefined ? undefined : { enabled: part.citations };
  return withoutUndefined<JsonObject>({
    ...(search
      ? searchContent(part, place)
      : { type: "document", source: documentSource(part, place) }),
    title: part.title,
    context: part.context,
    citations,
    ...cacheFields(part.cache),
    ...place.extensionFields(part.extensions),
  });
};

/** Encodes a search result, which has texts where a document has a source. */
const searchContent = ({ source }: DocumentPart, place: EncodePlace): JsonObject => ({
  content: source.type === "parts" ? innerBlocks(source.parts, place) : [],
});

const innerBlocks = (parts: readonly (TextPart | ImagePart)[], place: EncodePlace): JsonObject[] =>
  parts.flatMap((inner, index) => encodeUserPart(inner, place.at(`.source[${index}]`)));

function documentSource({ source }: DocumentPart, place: EncodePlace): JsonObject {
  switch (source.type) {
    case "text":
      return { type: "text", media_type: source.mediaType ?? "text/plain", data: source.text };
    case "parts":
      return { type: "content", content: innerBlocks(source.parts, place) };
    default:
      return mediaSource(source, { place, data: documentBytes });
  }
}

function documentBytes(
  { mediaType, data }: { mediaType: string; data: string },
  place: EncodePlace,
): JsonObject {
  if (mediaType === "application/pdf" || place.state.sameDialect)
    return { type: "base64", media_type: mediaType, data };
  if (mediaType.startsWith("text/")) {
    return {
      type: "text",
      media_type: "text/plain",
      data: Buffer.from(data, "base64").toString("utf8"),
    };
  }
  throw place.unsupported(
    `has the unsupported document type ${mediaType}; send a PDF or plain text.`,
  );
}

/**
 * Encodes a user's part of another dialect, or throws: it cannot be left out without changing the
 * request.
 */
function encodeOpaque(part: OpaquePart, place: EncodePlace): JsonObject {
  if (part.dialect === "anthropic-messages") return part.value;
  throw place.unsupported(
    `has the type ${JSON.stringify(opaqueName(part))}, which this model's provider does not know.`,
  );
}
