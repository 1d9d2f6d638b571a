import { isPictureType, pictureTypeOf } from "../../../platform/kernel/picture-type.ts";
import {
  type CacheMarker,
  type AudioPart,
  type DocumentPart,
  type ImagePart,
  type MediaSource,
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
  isBillingLine,
} from "../../canonical/message.ts";
import type { JsonObject } from "../../canonical/json.ts";
import {
  isForeignReasoning,
  isSealedReasoning,
  type ReasoningPart,
} from "../../canonical/reasoning.ts";
import {
  opaqueName,
  readableText,
  type EncodePlace,
  type EncodeState,
} from "../shared/encode-state.ts";
import { withMembers } from "../shared/schemas/member-names.ts";
import { argumentsObject, legalName, wrapInput } from "../shared/tools.ts";
import { unsupportedContent, withoutUndefined } from "../shared/wire-fields.ts";

const toolUseIdLengthMax = 64;

/** Encodes the conversation for Converse: instructions separately, then alternating turns. */
export function encodeMessages(state: EncodeState): {
  system: JsonObject[];
  messages: JsonObject[];
} {
  const { leading, rest } = splitLeadingSystem(state.conversation);
  const system = leading.flatMap((message, index) =>
    encodeSystem(message, state.at(`messages[${index}]`)),
  );
  const turns = new TurnEncoder(state);
  rest.forEach((message, index) =>
    turns.add(message, state.at(`messages[${leading.length + index}]`)),
  );
  const messages = turns.finish();
  if (messages.length > 0) return { system, messages };
  // Converse requires a message, so a request of instructions alone is sent as the user's.
  if (system.length > 0) return { system: [], messages: [{ role: "user", content: system }] };
  throw unsupportedContent("messages", "say nothing; send a message with content.");
}

const encodeSystem = (message: SystemMessage, place: EncodePlace): JsonObject[] =>
  message.parts
    .filter((part) => !isBillingLine(part.text))
    .flatMap((part, index) => encodeText(part, place.at(`.content[${index}]`)));

/** A message of the wire that may still grow. */
interface Turn {
  role: "user" | "assistant";
  content: JsonObject[];
}

/** Encodes message by message. Consecutive messages of one side become one. */
class TurnEncoder {
  private readonly blocks: BlockEncoder;
  private readonly turns: Turn[] = [];
  private readonly model: string;
  /** Images of results that the model sees beside them alone, behind the last of these. */
  private attachments: JsonObject[] = [];
  private imageCount = 0;

  constructor(state: EncodeState) {
    this.blocks = new BlockEncoder(state);
    this.model = state.options.upstreamModel;
  }

  add(message: Message, place: EncodePlace): void {
    if (message.role !== "tool") this.attach();
    switch (message.role) {
      case "tool":
        this.push({ role: "user", content: this.result(message, place) });
        break;
      case "user":
        this.push({ role: "user", content: this.user(message, place) });
        break;
      case "assistant":
        this.push({ role: "assistant", content: encodeAssistant(message, place) });
        break;
      case "system":
        this.push({ role: "user", content: laterInstructions(message, place) });
    }
  }

  /**
   * Returns the messages. Converse requires the user to begin, and refuses a last turn that ends in
   * white space.
   */
  finish(): JsonObject[] {
    this.attach();
    const { turns } = this;
    const last = turns.at(-1);
    const block = last?.content.at(-1);
    if (last?.role === "assistant" && typeof block?.text === "string")
      last.content[last.content.length - 1] = { text: block.text.trimEnd() };
    if (turns[0]?.role === "assistant")
      turns.unshift({ role: "user", content: [{ text: "(The conversation begins.)" }] });
    const apart = keepsCallsApart.test(this.model) ? turns.flatMap(callsApart) : turns;
    return apart.map(({ role, content }) => ({ role, content: withTextBesideDocuments(content) }));
  }

  private push(turn: Turn): void {
    if (turn.content.length === 0) return;
    const last = this.turns.at(-1);
    if (last?.role === turn.role) last.content.push(...turn.content);
    else this.turns.push(turn);
  }

  private user(message: UserMessage, place: EncodePlace): JsonObject[] {
    loseFields(message, place);
    return message.parts.flatMap((part, index) =>
      this.blocks.encode(part, place.at(`.content[${index}]`)),
    );
  }

  private result(message: ToolMessage, place: EncodePlace): JsonObject[] {
    place.extensionFields(message.extensions);
    const blocks = message.parts.flatMap((part, index) =>
      this.blocks.encode(part, place.at(`.content[${index}]`)),
    );
    // Cache points are placed beside results, not in them.
    const points = blocks.filter((block) => "cachePoint" in block);
    const said = blocks
      .filter((block) => !points.includes(block))
      .map((block) => ("image" in block ? this.resultImage(block, message) : block));
    const isFailed = message.isError === true;
    const hasStatus = readsStatus.test(this.model);
    const content = isFailed && !hasStatus ? [{ text: "Error:" }, ...said] : said;
    return [
      {
        toolResult: {
          toolUseId: legalName(message.toolCallId, toolUseIdLengthMax),
          content: content.length > 0 ? content : [{ text: "(no output)" }],
          ...(isFailed && hasStatus && { status: "error" }),
        },
      },
      ...(message.cache === undefined ? points.slice(-1) : cachePoint(message.cache)),
    ];
  }

  /** Returns an image of a result, or a note of it where the image has to stand beside the result. */
  private resultImage(image: JsonObject, { toolCallId }: ToolMessage): JsonObject {
    if (seesResults.test(this.model)) return image;
    this.imageCount += 1;
    const name = `image ${this.imageCount}`;
    this.attachments.push({ text: `[${name}, from the result of tool call ${toolCallId}]` }, image);
    return { text: `[${name} attached below]` };
  }

  private attach(): void {
    this.push({ role: "user", content: this.attachments });
    this.attachments = [];
  }
}

/**
 * Models that take images within results; others answer 400 and take them beside these. Sources:
 * anomalyco/opencode#49443, #50272 (2026-09).
 */
const seesResults = /claude|nova|llama-?4/;

/**
 * Models that answer 400 to calls and results beside texts. Sources:
 * strands-agents/harness-sdk#1223, quarkiverse/quarkus-langchain4j#1983 (2025-11).
 */
const keepsCallsApart = /llama|mistral|pixtral|ai21\.|cohere\.|writer\./;

/** Models that read the status of a result: docs.aws.amazon.com, API_runtime_ToolResultBlock (2026-11). */
const readsStatus = /claude|nova/;

/** Returns a turn with its calls, or its results, apart from what else is in it. */
function callsApart({ role, content }: Turn): Turn[] {
  const isOfTools = (block: JsonObject): boolean => "toolUse" in block || "toolResult" in block;
  const ofTools = content.filter(isOfTools);
  const others = content.filter((block) => !isOfTools(block));
  // Reasoning belongs to the calls behind it, and a cache point to any block.
  const isBeside = (block: JsonObject): boolean =>
    "reasoningContent" in block || "cachePoint" in block;
  if (ofTools.length === 0 || others.every(isBeside)) return [{ role, content }];
  return role === "user"
    ? [
        { role, content: ofTools },
        { role: "assistant", content: [{ text: "Done." }] },
        { role, content: others },
      ]
    : [
        { role, content: others },
        { role: "user", content: [{ text: "Continue." }] },
        { role, content: ofTools },
      ];
}

/**
 * Adds text to a message that consists of documents, as Converse requires (`DocumentBlock` of the
 * API's reference).
 */
function withTextBesideDocuments(content: JsonObject[]): JsonObject[] {
  const needsText =
    content.some((block) => "document" in block) && !content.some((block) => "text" in block);
  return needsText ? [...content, { text: "(See the attached document.)" }] : content;
}

function loseFields(message: UserMessage | AssistantMessage, place: EncodePlace): void {
  if (message.name !== undefined) place.at(".name").lose("Converse has no such field");
  place.extensionFields(message.extensions);
}

/** Encodes later instructions at their place in the conversation, in the user's turn. */
function laterInstructions(message: SystemMessage, place: EncodePlace): JsonObject[] {
  const text = encodeSystem(message, place)
    .flatMap((block) => (typeof block.text === "string" ? [block.text] : []))
    .join("\n\n");
  return text === "" ? [] : [{ text: `<system-reminder>\n${text}\n</system-reminder>` }];
}

function encodeAssistant(message: AssistantMessage, place: EncodePlace): JsonObject[] {
  loseFields(message, place);
  return message.parts.flatMap((part, index) =>
    encodeAssistantPart(part, place.at(`.content[${index}]`)),
  );
}

function encodeAssistantPart(part: AssistantPart, place: EncodePlace): JsonObject[] {
  switch (part.type) {
    case "text":
      return encodeText(part, place);
    case "refusal":
      return part.refusal.trim() === "" ? [] : [{ text: part.refusal }];
    case "reasoning":
      return encodeThought(part, place);
    case "tool-call":
      return [encodeCall(part, place), ...cachePoint(part.cache)];
    case "image":
      return encodeImage(part, place);
    case "audio-output":
      place.lose("Converse takes no sound in the model's turns");
      return part.transcript ? [{ text: part.transcript }] : [];
    case "opaque":
      if (part.dialect === "amazon-converse") return [part.value];
      place.lose(`a ${opaqueName(part)} of ${part.dialect}`);
      return [];
  }
}

/** Matches models that are not Claude; the names of inference profiles say nothing. */
const otherMakers = /nova|llama|mistral|cohere|deepseek|gpt-oss|qwen|ai21|writer/;

/**
 * Encodes a reasoning block. It is sent back to its maker unchanged, or not at all, since the seal
 * is verified.
 */
function encodeThought(part: ReasoningPart, place: EncodePlace): JsonObject[] {
  const { signature, encrypted, text } = part;
  const { providerId, upstreamModel } = place.state.options;
  // A seal without its maker's name is Claude's own, as native answers of Messages have it.
  const isClaudes = isSealedReasoning(part) && part.provenance === undefined;
  if (isForeignReasoning(part, providerId) || (isClaudes && otherMakers.test(upstreamModel))) {
    place.lose("sealed by another provider");
    return [];
  }
  place.extensionFields(part.extensions);
  if (signature !== undefined && isSealedReasoning(part))
    return [{ reasoningContent: { reasoningText: { text: text ?? "", signature } } }];
  if (encrypted !== undefined && text === undefined && !part.summary?.length)
    return [{ reasoningContent: { redactedContent: encrypted } }];
  const words = text ?? part.summary?.join("\n\n");
  if (place.state.deviations.reasoningReplay === "content" && words)
    return [{ reasoningContent: { reasoningText: { text: words } } }];
  place.lose("the upstream takes back no thoughts that it did not seal");
  return [];
}

function encodeCall(call: ToolCallPart, place: EncodePlace): JsonObject {
  const { namer } = place.state;
  place.extensionFields(call.extensions);
  const input = argumentsObject(namer.wraps(call) ? wrapInput(call.arguments) : call.arguments);
  return {
    toolUse: {
      toolUseId: legalName(call.id, toolUseIdLengthMax),
      name: namer.wireName(call),
      input: withMembers(input, namer.membersOf(call)),
    },
  };
}

/** Returns the cache point behind a part with a cache marker; none without a marker. */
export function cachePoint(cache: CacheMarker | undefined): JsonObject[] {
  if (cache === undefined) return [];
  const { ttl } = cache;
  return [{ cachePoint: { type: "default", ...((ttl === "5m" || ttl === "1h") && { ttl }) } }];
}

/** Returns a text block; none when it is blank, which Converse answers with 400. */
function encodeText(part: TextPart, place: EncodePlace): JsonObject[] {
  if (part.text.trim() === "") return [];
  if (part.annotations?.length) place.at(".annotations").lose("Converse takes back text alone");
  place.extensionFields(part.extensions);
  return [{ text: part.text }, ...cachePoint(part.cache)];
}

/** Encodes an image of either side of the conversation. */
function encodeImage(part: ImagePart, place: EncodePlace): JsonObject[] {
  const { source, detail, cache, extensions } = part;
  if (detail !== undefined && detail !== "auto")
    place.at(".detail").lose("Converse has no such field");
  place.extensionFields(extensions);
  return [
    { image: { format: imageFormat(source, place), source: mediaSource(source, place) } },
    ...cachePoint(cache),
  ];
}

/** Returns the format of the bytes themselves, which a client may have declared wrongly. */
function imageFormat(source: MediaSource, place: EncodePlace): string {
  const named =
    source.type === "base64" ? source.mediaType.replace(/^image\//, "") : extensionOf(source);
  const seen = source.type === "base64" ? pictureTypeOf(source.data) : undefined;
  const format = seen?.replace(/^image\//, "") ?? (named === "jpg" ? "jpeg" : named);
  if (isPictureType(`image/${format}`)) return format;
  throw place.unsupported(
    `has the unsupported image type ${named || "of no name"}; send a JPEG, PNG, GIF or WebP.`,
  );
}

const extensionOf = (source: Exclude<MediaSource, { type: "base64" }>): string =>
  /\.([a-z0-9]+)$/i.exec(source.type === "url" ? source.url : source.fileId)?.[1]?.toLowerCase() ??
  "";

/** Encodes a source of media. Converse fetches from Amazon's own storage alone. */
function mediaSource(source: MediaSource, place: EncodePlace): JsonObject {
  if (source.type === "base64") return { bytes: source.data };
  const address = source.type === "url" ? source.url : source.fileId;
  if (address.startsWith("s3://")) return { s3Location: { uri: address } };
  throw place.unsupported(
    "names an address or an upload that this model's provider cannot read; send the bytes as base64.",
  );
}

/** Encodes the parts of users and tools. Documents are named one after another. */
class BlockEncoder {
  private readonly documentNames = new Set<string>();

  constructor(private readonly state: EncodeState) {}

  /** Encodes one part as blocks; a cache marker becomes a block behind it. */
  encode(part: UserPart, place: EncodePlace): JsonObject[] {
    switch (part.type) {
      case "text":
        return encodeText(part, place);
      case "image":
        return encodeImage(part, place);
      case "document":
        return this.document(part, place);
      case "audio":
        return [encodeAudio(part, place), ...cachePoint(part.cache)];
      case "opaque": {
        if (part.dialect === this.state.dialect) return [part.value];
        const text = readableText(part);
        if (text !== undefined) return [{ text }];
        throw place.unsupported(
          `has the type ${JSON.stringify(opaqueName(part))}, which this model's provider does not know.`,
        );
      }
    }
  }

  private document(part: DocumentPart, place: EncodePlace): JsonObject[] {
    const { source, title, context, citations, cache } = part;
    place.extensionFields(part.extensions);
    if (source.type === "parts") {
      if (citations === true) place.at(".citations").lose("Converse cites whole documents only");
      const inner = source.parts.flatMap((one, index) =>
        this.encode(one, place.at(`.source[${index}]`)),
      );
      return [...(title ? [{ text: title }] : []), ...inner, ...cachePoint(cache)];
    }
    const bytes =
      source.type === "text"
        ? { bytes: Buffer.from(source.text).toString("base64") }
        : mediaSource(source, place);
    return [
      {
        document: withoutUndefined<JsonObject>({
          format: documentFormat(source, place),
          name: this.documentName(title),
          source: bytes,
          context,
          citations: citations === true ? { enabled: true } : undefined,
        }),
      },
      ...cachePoint(cache),
    ];
  }

  /**
   * Returns a name that Converse accepts: letters, digits, single spaces, hyphens and brackets,
   * unique within the request.
   */
  private documentName(title: string | undefined): string {
    const clean = (title ?? "")
      .replace(/\.[a-z0-9]{1,5}$/i, "")
      .replace(/[^a-zA-Z0-9\s\-()[\]]+/g, " ")
      .replace(/\s+/g, " ")
      .trim()
      .slice(0, 180);
    const base = clean === "" ? "Document" : clean;
    let name = base;
    for (let count = 2; this.documentNames.has(name); count += 1) name = `${base} ${count}`;
    this.documentNames.add(name);
    return name;
  }
}

/** Formats of documents by media type; other kinds of text are sent as plain text. */
const documentFormats: Readonly<Record<string, string>> = {
  "application/pdf": "pdf",
  "text/csv": "csv",
  "application/msword": "doc",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
  "application/vnd.ms-excel": "xls",
  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
  "text/html": "html",
  "text/markdown": "md",
};

function documentFormat(
  source: Exclude<DocumentPart["source"], { type: "parts" }>,
  place: EncodePlace,
): string {
  if (source.type === "url" || source.type === "file") {
    const extension = extensionOf(source);
    return extension === "" ? "txt" : extension;
  }
  const mediaType = source.mediaType ?? "text/plain";
  const format = documentFormats[mediaType] ?? (mediaType.startsWith("text/") ? "txt" : undefined);
  if (format !== undefined) return format;
  throw place.unsupported(
    `has the unsupported document type ${mediaType}; send a PDF, an Office document or text.`,
  );
}

function encodeAudio({ data, format, extensions }: AudioPart, place: EncodePlace): JsonObject {
  place.extensionFields(extensions);
  return { audio: { format: format === "pcm16" ? "pcm" : format, source: { bytes: data } } };
}
