import type {
  DocumentPart,
  ImagePart,
  MediaSource,
  TextPart,
  AssistantMessage,
  AssistantPart,
  Message,
  ToolMessage,
  ToolResultPart,
  UserPart,
  ToolKind,
  ToolCallPart,
} from "../../../canonical/message.ts";
import type { Extensions } from "../../../canonical/dialect-id.ts";
import type { JsonValue } from "../../../canonical/json.ts";
import { decodeEach, writtenAt } from "../../../canonical/written-places.ts";
import type { Tool } from "../../../canonical/request.ts";
import {
  mediaSource,
  decodeCache,
  decodeInputAudio,
  fileBytes,
  markerFields,
} from "../../shared/openai-fields.ts";
import { badRequest, RequestFields, withoutUndefined } from "../../shared/wire-fields.ts";
import { type CallSignature, decodeAnnotations, decodeReasoningItem } from "../answer-fields.ts";
import { decodeTool } from "./decode-tools.ts";

const knownMessageFields = new Set(["type", "role", "content", "id", "status", "phase"]);
const knownCallFields = new Set([
  "type",
  "id",
  "status",
  "call_id",
  "name",
  "arguments",
  "input",
  "namespace",
]);
const knownOutputFields = new Set(["type", "id", "status", "call_id", "output"]);

/** A conversation with the tools that its items define. */
interface DecodedInput {
  messages: Message[];
  tools: Tool[];
}

/** Decodes `instructions` and `input` as messages; consecutive items of the model are one turn. */
export function decodeInput(body: RequestFields): DecodedInput {
  const decoder = new InputDecoder();
  const instructions = body.string("instructions");
  if (instructions)
    decoder.addAt("instructions", {
      role: "system",
      parts: [writtenAt("instructions", { type: "text", text: instructions })],
    });
  const { input } = body.object;
  if (typeof input === "string") {
    decoder.addAt("input", {
      role: "user",
      parts: input === "" ? [] : [writtenAt("input", { type: "text", text: input })],
    });
  } else {
    for (const item of body.nestedList("input") ?? []) decoder.add(item);
  }
  return { messages: decoder.finish(), tools: decoder.tools };
}

/** Reads item by item, and collects what the model generated until an item of another author. */
class InputDecoder {
  readonly messages: Message[] = [];
  readonly tools: Tool[] = [];
  private turn: AssistantPart[] = [];
  private turnExtensions: Extensions | undefined;
  private hasMessage = false;
  /** The ids of calls without a result, in order. */
  private readonly openCalls = new Set<string>();
  private readonly signatures = new Map<string, CallSignature>();

  add(item: RequestFields): void {
    switch (typeOf(item)) {
      case "message":
        this.addMessage(item);
        break;
      case "function_call":
        this.addCall(item, "function");
        break;
      case "custom_tool_call":
        this.addCall(item, "custom");
        break;
      case "function_call_output":
        this.addResult(item, "function");
        break;
      case "custom_tool_call_output":
        this.addResult(item, "custom");
        break;
      case "reasoning":
        this.addReasoning(item);
        break;
      case "item_reference":
        throw badRequest(item.path, "names an item that is not stored here; send the item itself.");
      case "additional_tools":
        this.addTools(item);
        break;
      case "tool_search_output":
        this.addTools(item);
        this.addOpaque(item);
        break;
      default:
        this.addOpaque(item);
    }
  }

  /** Adds a message that the client wrote at a path. */
  addAt(path: string, message: Message): void {
    this.messages.push(writtenAt(path, message));
  }

  finish(): Message[] {
    this.closeTurn();
    return this.messages;
  }

  private addMessage(item: RequestFields): void {
    const role = item.requiredString("role");
    if (role === "assistant") {
      this.addAssistantMessage(item);
      return;
    }
    this.closeTurn();
    const extensions = item.unknown("openai-responses", knownMessageFields);
    const shared = extensions && { extensions };
    switch (role) {
      case "user":
        this.addAt(item.path, {
          role,
          parts: decodeEach(contentParts(item, "content"), decodeUserPart),
          ...shared,
        });
        break;
      case "system":
        this.addAt(item.path, { role, parts: decodeInstructions(item), ...shared });
        break;
      case "developer":
        this.addAt(item.path, {
          role: "system",
          developer: true,
          parts: decodeInstructions(item),
          ...shared,
        });
        break;
      default:
        throw badRequest(item.pathOf("role"), "must be one of user, assistant, system, developer.");
    }
  }

  /**
   * Adds a message of the model. Later messages of one turn are separated, and each part keeps the
   * phase of its message.
   */
  private addAssistantMessage(item: RequestFields): void {
    const phase = item.string("phase");
    const parts = decodeEach(contentParts(item, "content"), decodeAssistantPart);
    parts.forEach((part, index) => {
      if (part.type !== "text") return;
      if (phase !== undefined) part.phase = phase;
      if (index === 0 && this.hasMessage) part.startsMessage = true;
    });
    this.hasMessage = true;
    this.turn.push(...parts);
    this.turnExtensions ??= item.unknown("openai-responses", knownMessageFields);
  }

  private addCall(item: RequestFields, kind: ToolKind): void {
    const id = item.requiredString("call_id");
    this.openCalls.add(id);
    const { signature, provenance } = this.signatures.get(id) ?? {};
    const call = withoutUndefined<ToolCallPart>({
      type: "tool-call",
      kind,
      id,
      name: item.requiredString("name"),
      arguments:
        kind === "custom" ? (item.string("input") ?? "") : argumentsText(item.object.arguments),
      namespace: item.string("namespace"),
      signature,
      provenance,
      itemId: item.string("id"),
      extensions: item.unknown("openai-responses", knownCallFields),
    });
    this.turn.push(writtenAt(item.path, call));
  }

  private addResult(item: RequestFields, kind: ToolKind): void {
    this.closeTurn();
    this.addAt(
      item.path,
      withoutUndefined<ToolMessage>({
        role: "tool",
        toolCallId: this.answeredCall(item),
        parts: decodeEach(contentParts(item, "output"), decodeResultPart),
        kind: kind === "custom" ? kind : undefined,
        extensions: item.unknown("openai-responses", knownOutputFields),
      }),
    );
  }

  /** Returns the call that a result answers: the one that it names, or the earliest open one. */
  private answeredCall(item: RequestFields): string {
    const named = item.string("call_id");
    const open = named ?? this.openCalls.values().next().value;
    if (open === undefined)
      throw badRequest(item.pathOf("call_id"), "is required: no call before it is unanswered.");
    this.openCalls.delete(open);
    return open;
  }

  private addReasoning(item: RequestFields): void {
    const thought = decodeReasoningItem(item.object);
    if ("callId" in thought) this.signatures.set(thought.callId, thought);
    else this.turn.push(writtenAt(item.path, thought));
  }

  private addTools(item: RequestFields): void {
    this.tools.push(...(item.nestedList("tools") ?? []).flatMap((tool) => decodeTool(tool)));
  }

  /** Keeps items that no other dialect has: calls that the provider ran, with their results. */
  private addOpaque(item: RequestFields): void {
    const part = { type: "opaque", dialect: "openai-responses", value: item.object } as const;
    this.turn.push(writtenAt(item.path, part));
  }

  private closeTurn(): void {
    if (this.turn.length > 0 || this.hasMessage) {
      const extensions = this.turnExtensions;
      this.messages.push({
        role: "assistant",
        parts: this.turn,
        ...(extensions && { extensions }),
      } satisfies AssistantMessage);
    }
    this.turn = [];
    this.turnExtensions = undefined;
    this.hasMessage = false;
  }
}

/** Returns an item's type. Messages may omit it, and so may references, which have no role. */
const typeOf = (item: RequestFields): string =>
  item.string("type") ??
  (item.object.role === undefined && item.object.id !== undefined ? "item_reference" : "message");

/**
 * Returns arguments as JSON text; some clients send the object itself, or nothing for a tool
 * without parameters.
 */
export function argumentsText(value: JsonValue | undefined): string {
  if (typeof value === "string") return value.trim() === "" ? "{}" : value;
  return value === undefined || value === null ? "{}" : JSON.stringify(value);
}

const knownFields = {
  text: new Set(["type", "text", "annotations", "logprobs", ...markerFields]),
  image: new Set(["type", "image_url", "file_id", "detail", ...markerFields]),
  audio: new Set(["type", "input_audio", ...markerFields]),
  file: new Set(["type", "file_data", "file_id", "file_url", "filename", ...markerFields]),
};

/**
 * Returns a member that is text or parts, as parts: `content` of a message, `output` of a result.
 */
function contentParts(fields: RequestFields, key: string): RequestFields[] {
  const content = fields.object[key];
  const path = fields.pathOf(key);
  if (content === undefined || content === null || content === "") return [];
  if (typeof content === "string")
    return [new RequestFields({ type: "input_text", text: content }, path)];
  if (!Array.isArray(content))
    throw badRequest(path, "must be a string or an array of content parts.");
  return content.map(
    (part: JsonValue, index) =>
      new RequestFields(
        typeof part === "string" ? { type: "input_text", text: part } : part,
        `${path}[${index}]`,
      ),
  );
}

const isText = (type: string): boolean =>
  type === "input_text" || type === "output_text" || type === "text" || type === "summary_text";

/** Decodes the content of instructions, which is text alone. */
function decodeInstructions(message: RequestFields): TextPart[] {
  return decodeEach(contentParts(message, "content"), (part) => {
    const type = part.requiredString("type");
    if (!isText(type))
      throw badRequest(part.pathOf("type"), `must be "input_text" here, not "${type}".`);
    return decodeText(part);
  });
}

/** Decodes a part of a user's message; unknown types are kept as they are. */
function decodeUserPart(part: RequestFields): UserPart {
  const type = part.requiredString("type");
  if (isText(type)) return decodeText(part);
  switch (type) {
    case "input_image":
      return decodeImage(part);
    case "input_file":
      return decodeFile(part);
    case "input_audio":
      return decodeInputAudio(part, { dialect: "openai-responses", known: knownFields.audio });
    default:
      return { type: "opaque", dialect: "openai-responses", value: part.object };
  }
}

/** Decodes a part of the model's message. */
function decodeAssistantPart(part: RequestFields): AssistantPart {
  const type = part.requiredString("type");
  if (isText(type)) return decodeText(part);
  if (type === "refusal") return { type: "refusal", refusal: part.requiredString("refusal") };
  return { type: "opaque", dialect: "openai-responses", value: part.object };
}

/** Decodes a part of a tool's result. */
function decodeResultPart(part: RequestFields): ToolResultPart {
  const decoded = decodeUserPart(part);
  if (decoded.type === "audio")
    throw badRequest(
      part.pathOf("type"),
      "must be text, an image or a file; tool results carry no audio.",
    );
  return decoded;
}

function decodeText(part: RequestFields): TextPart {
  return withoutUndefined<TextPart>({
    type: "text",
    text: part.requiredString("text"),
    annotations: decodeAnnotations(part.object.annotations),
    cache: decodeCache(part),
    extensions: part.unknown("openai-responses", knownFields.text),
  });
}

function decodeImage(part: RequestFields): ImagePart {
  const url = part.string("image_url");
  const fileId = part.string("file_id");
  if (url === undefined && fileId === undefined) {
    throw badRequest(
      part.pathOf("image_url"),
      "is required: an address or a data URL, or a file_id.",
    );
  }
  return withoutUndefined<ImagePart>({
    type: "image",
    source: url === undefined ? { type: "file", fileId: fileId ?? "" } : mediaSource(url),
    detail: part.string("detail"),
    cache: decodeCache(part),
    extensions: part.unknown("openai-responses", knownFields.image),
  });
}

function decodeFile(part: RequestFields): DocumentPart {
  return withoutUndefined<DocumentPart>({
    type: "document",
    source: fileSource(part),
    title: part.string("filename"),
    cache: decodeCache(part),
    extensions: part.unknown("openai-responses", knownFields.file),
  });
}

function fileSource(part: RequestFields): MediaSource {
  const data = part.string("file_data");
  if (data !== undefined) return fileBytes(data);
  const url = part.string("file_url");
  if (url !== undefined) return { type: "url", url };
  const fileId = part.string("file_id");
  if (fileId === undefined) throw badRequest(part.path, "needs file_data, file_url or file_id.");
  return { type: "file", fileId };
}
