import {
  type DocumentPart,
  type ImagePart,
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
  isBillingLine,
} from "../../../canonical/message.ts";
import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import {
  isForeignReasoning,
  type ReasoningPart,
  type ReasoningField,
} from "../../../canonical/reasoning.ts";
import {
  opaqueName,
  readableText,
  type EncodePlace,
  type EncodeState,
} from "../../shared/encode-state.ts";
import { dataUrl } from "../../shared/openai-fields.ts";
import { wrapInput } from "../../shared/tools.ts";
import { withoutUndefined } from "../../shared/wire-fields.ts";
import { encodeDetails, joinTexts, reasoningText, signatureField } from "../answer-fields.ts";

/** Encodes the conversation: tool results directly after their calls, with text alone in them. */
export function encodeMessages(state: EncodeState): JsonObject[] {
  const { leading, rest } = splitLeadingSystem(state.conversation);
  const wire = state.sameDialect
    ? leading.map((message, index) => encodeSystem(message, state.at(`messages[${index}]`)))
    : encodeLeadingSystem(leading, state);
  const turns = new TurnEncoder(state, leading.length);
  for (const message of rest) turns.add(message);
  return [...wire, ...turns.finish()];
}

/** Encodes several leading instructions as one message, since many servers accept no second one. */
function encodeLeadingSystem(leading: readonly SystemMessage[], state: EncodeState): JsonObject[] {
  const parts = leading
    .flatMap((message) => message.parts)
    .filter((part) => part.text !== "" && !isBillingLine(part.text));
  if (parts.length === 0) return [];
  return [{ role: "system", content: textContent(parts, state.at("messages[0]")) }];
}

function encodeSystem(message: SystemMessage, place: EncodePlace): JsonObject {
  const { sameDialect, deviations } = place.state;
  return {
    role:
      message.developer === true && (sameDialect || deviations.developerRole === true)
        ? "developer"
        : "system",
    content: textContent(message.parts, place),
    ...named(message.name),
    ...place.extensionFields(message.extensions),
  };
}

const named = (name: string | undefined): JsonObject => (name === undefined ? {} : { name });

/**
 * Returns text as a plain string where it is one, or where another dialect's parts can be joined to
 * one, since many servers accept nothing else. Parts with cache markers stay parts.
 */
function textContent(parts: readonly TextPart[], place: EncodePlace): JsonValue {
  const wire = parts.map((part, index) => encodeText(part, place.at(`.content[${index}]`)));
  const plain = wire.every((part) => Object.keys(part).length === 2);
  if (plain && (wire.length <= 1 || !place.state.sameDialect))
    return parts.map((part) => part.text).join("\n\n");
  return wire;
}

/** Encodes turn by turn, and keeps images of tool results for the user's message after them. */
class TurnEncoder {
  private readonly wire: JsonObject[] = [];
  private attachments: JsonObject[] = [];
  private imageCount = 0;
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
        this.wire.push(this.toolMessage(message, place));
        break;
      case "user":
        this.wire.push(this.userMessage(message, place));
        break;
      case "assistant":
        this.flushAttachments();
        this.wire.push(...encodeAssistant(message, place));
        break;
      case "system":
        this.flushAttachments();
        this.wire.push(this.laterSystem(message, place));
    }
  }

  finish(): JsonObject[] {
    this.flushAttachments();
    return this.wire;
  }

  private userMessage(message: UserMessage, place: EncodePlace): JsonObject {
    const content = this.attachments;
    this.attachments = [];
    message.parts.forEach((part, index) =>
      content.push(...encodeUserPart(part, place.at(`.content[${index}]`))),
    );
    const first = content[0];
    const plain = content.length === 1 && first?.type === "text" && Object.keys(first).length === 2;
    const wireContent = content.length === 0 ? "" : plain ? first.text : content;
    if (message.name === undefined && message.extensions === undefined)
      return { role: "user", content: wireContent };
    return {
      role: "user",
      content: wireContent,
      ...named(message.name),
      ...place.extensionFields(message.extensions),
    };
  }

  private toolMessage(message: ToolMessage, place: EncodePlace): JsonObject {
    const { state } = this;
    const content = state.sameDialect
      ? sameDialectResult(message, place)
      : this.resultText(message, place);
    const extensions = place.extensionFields(message.extensions);
    if (state.request.legacyFunctions === true)
      return { role: "function", name: message.name ?? "", content, ...extensions };
    return {
      role: "tool",
      tool_call_id: message.toolCallId,
      content,
      ...named(message.name),
      ...extensions,
    };
  }

  /**
   * Returns the text of a result. Tool messages carry text alone; anything else of a result follows
   * in the next user message.
   */
  private resultText(message: ToolMessage, place: EncodePlace): string {
    const texts = message.parts.map((part, index) => {
      const text = part.type === "opaque" ? readableText(part) : undefined;
      if (text !== undefined || part.type === "text") return text ?? (part as TextPart).text;
      const partPlace = place.at(`.content[${index}]`);
      const encoded = encodeUserPart(part, partPlace);
      partPlace.lose("tool results carry text alone; sent in a user message after them");
      this.imageCount += 1;
      const name = `${part.type} ${this.imageCount}`;
      // Several results may have attachments, and the user's own follow them in the same message.
      this.attachments.push(
        { type: "text", text: `[${name}, from the result of tool call ${message.toolCallId}]` },
        ...encoded,
      );
      return `[${name} attached below]`;
    });
    if (message.cache !== undefined) this.state.cacheFields(message.cache);
    return (message.isError === true ? "Error: " : "") + texts.join("\n");
  }

  private flushAttachments(): void {
    if (this.attachments.length === 0) return;
    this.wire.push({ role: "user", content: this.attachments });
    this.attachments = [];
  }

  /**
   * Encodes later instructions at their place in the conversation, since moving them to its head
   * would change their meaning.
   */
  private laterSystem(message: SystemMessage, place: EncodePlace): JsonObject {
    if (this.state.deviations.systemOnlyFirst !== true) return encodeSystem(message, place);
    const text = message.parts.map((part) => part.text).join("\n\n");
    return { role: "user", content: `<system-reminder>\n${text}\n</system-reminder>` };
  }
}

function sameDialectResult(message: ToolMessage, place: EncodePlace): JsonValue {
  const texts = message.parts.filter((part): part is TextPart => part.type === "text");
  if (texts.length === message.parts.length) return textContent(texts, place);
  return message.parts.flatMap((part, index) =>
    encodeUserPart(part, place.at(`.content[${index}]`)),
  );
}

/**
 * Encodes a turn of the model as history. `content` is always present: null beside calls, empty
 * text otherwise. A turn without anything to replay is left out, since an empty one would be a turn
 * of its own.
 */
function encodeAssistant(message: AssistantMessage, place: EncodePlace): JsonObject[] {
  const { state } = place;
  const parts = message.parts.filter((part, index) =>
    keepsPart(part, place.at(`.content[${index}]`)),
  );
  if (parts.length === 0 && message.parts.length > 0) return [];
  const calls = parts.filter((part) => part.type === "tool-call");
  const refusal = parts.flatMap((part) => (part.type === "refusal" ? [part.refusal] : [])).join("");
  const audio = parts.find((part) => part.type === "audio-output");
  const speechless = calls.length > 0 || refusal !== "" || audio !== undefined;
  return [
    withoutUndefined<JsonObject>({
      role: "assistant",
      content: assistantContent(parts, place) ?? (speechless ? null : ""),
      name: message.name,
      refusal: refusal === "" ? undefined : refusal,
      audio: audio && { id: audio.id },
      ...replayedThoughts(parts, state),
      ...encodeCalls(calls, place),
      ...place.extensionFields(message.extensions),
    }),
  ];
}

/** Returns whether a part can be replayed here at all; one that cannot is declared as lost. */
function keepsPart(part: AssistantPart, place: EncodePlace): boolean {
  if (part.type === "opaque" && part.dialect !== "openai-chat") {
    place.lose(`a ${opaqueName(part)} of ${part.dialect}`);
    return false;
  }
  if (part.type === "image") {
    place.lose("chat history holds no images of the model's");
    return false;
  }
  if (part.type !== "reasoning") return true;
  const field = replayField(part, place.state);
  if (field === undefined) {
    place.lose("the upstream takes no earlier thoughts");
    return false;
  }
  const sealed = part.signature !== undefined || part.encrypted !== undefined;
  if (
    field === "reasoning_details" &&
    sealed &&
    isForeignReasoning(part, place.state.options.providerId)
  ) {
    place.lose("sealed by another provider");
    return false;
  }
  return true;
}

const replayField = (part: ReasoningPart, state: EncodeState): ReasoningField | undefined =>
  (state.sameDialect ? part.field : undefined) ?? state.deviations.reasoningReplay;

function assistantContent(
  parts: readonly AssistantPart[],
  place: EncodePlace,
): JsonValue | undefined {
  const { state } = place;
  const texts = parts.filter((part): part is TextPart => part.type === "text");
  const wire = parts.flatMap((part, index): JsonObject[] => {
    if (part.type === "text") return [encodeText(part, place.at(`.content[${index}]`))];
    if (part.type === "opaque") return [part.value];
    if (part.type === "reasoning" && replayField(part, state) === "content") {
      return [{ type: "thinking", thinking: [{ type: "text", text: part.text ?? "" }] }];
    }
    return [];
  });
  if (wire.length === 0) return undefined;
  const plain =
    texts.length === wire.length && wire.every((part) => Object.keys(part).length === 2);
  return plain && (wire.length === 1 || !state.sameDialect) ? joinTexts(texts) : wire;
}

function replayedThoughts(parts: readonly AssistantPart[], state: EncodeState): JsonObject {
  const thoughts = parts.filter((part): part is ReasoningPart => part.type === "reasoning");
  const first = thoughts[0];
  const field = first && replayField(first, state);
  if (field === undefined || field === "content") return {};
  if (field !== "reasoning_details") return { [field]: reasoningText(thoughts) };
  return { reasoning_details: encodeDetails(parts.map(withoutProvenance)) };
}

/** Removes the gateway's mark from a seal, which is sent to its maker as the maker wrote it. */
function withoutProvenance(part: AssistantPart): AssistantPart {
  if (part.type !== "reasoning") return part;
  const { provenance: _provenance, ...own } = part;
  return own;
}

function encodeCalls(calls: readonly ToolCallPart[], place: EncodePlace): JsonObject {
  const only = calls[0];
  if (only === undefined) return {};
  if (place.state.request.legacyFunctions === true)
    return { function_call: { name: only.name, arguments: only.arguments } };
  return {
    tool_calls: calls.map((call, index) => encodeCall(call, place.at(`.tool_calls[${index}]`))),
  };
}

function encodeCall(call: ToolCallPart, place: EncodePlace): JsonObject {
  const { id, kind } = call;
  const { state } = place;
  const name = state.namer.wireName(call);
  const wraps = state.namer.wraps(call);
  const extra = {
    ...(replaysSignature(call, state) && signatureField({ signature: call.signature })),
    ...place.extensionFields(call.extensions),
  };
  if (kind === "custom" && !wraps)
    return { id, type: "custom", custom: { name, input: call.arguments }, ...extra };
  return {
    id,
    type: "function",
    function: { name, arguments: wraps ? wrapInput(call.arguments) : functionArguments(call) },
    ...extra,
  };
}

/**
 * Returns whether a signature is sent: to its maker alone, and without a mark only as its own
 * client wrote it.
 */
const replaysSignature = (
  call: ToolCallPart,
  state: EncodeState,
): call is ToolCallPart & { signature: string } =>
  call.signature !== undefined &&
  (call.provenance === undefined
    ? state.sameDialect
    : !isForeignReasoning(call, state.options.providerId));

/** Returns a call's arguments, never empty: an upstream that parses the text refuses "". */
const functionArguments = (call: ToolCallPart): string =>
  call.arguments.trim() === "" ? "{}" : call.arguments;

/** Encodes one part of a user's message; a document of several parts becomes several. */
function encodeUserPart(part: UserPart, place: EncodePlace): JsonObject[] {
  switch (part.type) {
    case "text":
      return [encodeText(part, place)];
    case "image":
      return [encodeImage(part, place)];
    case "document":
      return encodeDocument(part, place);
    case "audio":
      return [
        {
          type: "input_audio",
          input_audio: { data: part.data, format: part.format },
          ...place.state.cacheFields(part.cache),
          ...place.extensionFields(part.extensions),
        },
      ];
    case "opaque":
      return [encodeOpaque(part, place)];
  }
}

/** Encodes a text part with its cache marker and its unknown fields. */
function encodeText({ text, cache, extensions }: TextPart, place: EncodePlace): JsonObject {
  if (cache === undefined && extensions === undefined) return { type: "text", text };
  return {
    type: "text",
    text,
    ...place.state.cacheFields(cache),
    ...place.extensionFields(extensions),
  };
}

function encodeImage(part: ImagePart, place: EncodePlace): JsonObject {
  const { source, detail } = part;
  if (source.type === "file") {
    throw place.unsupported(
      "names an uploaded image, which this model's provider cannot read; send the image's bytes or address.",
    );
  }
  const url = source.type === "url" ? source.url : dataUrl(source);
  return {
    type: "image_url",
    image_url: { url, ...(detail !== undefined && { detail }) },
    ...place.state.cacheFields(part.cache),
    ...place.extensionFields(part.extensions),
  };
}

function encodeDocument(part: DocumentPart, place: EncodePlace): JsonObject[] {
  if (part.citations === true) place.at(".citations").lose("chat models are not asked to cite");
  if (part.context !== undefined) place.at(".context").lose("chat files have no such field");
  const { source } = part;
  switch (source.type) {
    case "text":
      return [
        {
          type: "text",
          text: titled(part.title, source.text),
          ...place.state.cacheFields(part.cache),
        },
      ];
    case "parts":
      return [
        ...(part.title === undefined ? [] : [{ type: "text", text: part.title }]),
        ...source.parts.flatMap((inner, index) =>
          encodeUserPart(inner, place.at(`.source[${index}]`)),
        ),
      ];
    default:
      return [
        {
          type: "file",
          file: { ...fileFields(part, place) },
          ...place.state.cacheFields(part.cache),
          ...place.extensionFields(part.extensions),
        },
      ];
  }
}

/** Returns a plain text document as text, since chat has no type for it. */
const titled = (title: string | undefined, text: string): string =>
  title === undefined ? text : `${title}\n${text}`;

function fileFields(part: DocumentPart, place: EncodePlace): JsonObject {
  const { source, title } = part;
  const filename = title ?? (place.state.sameDialect ? undefined : "document.pdf");
  const named = filename === undefined ? {} : { filename };
  if (source.type === "base64") return { file_data: dataUrl(source), ...named };
  if (source.type === "file" && place.state.sameDialect)
    return { file_id: source.fileId, ...named };
  if (source.type === "url" && place.state.sameDialect) return { file_data: source.url, ...named };
  throw place.unsupported(
    "is a document that this model's provider cannot fetch; send its bytes as base64.",
  );
}

/**
 * Encodes a user's part of another dialect, or throws: it cannot be left out without changing the
 * request.
 */
function encodeOpaque(part: OpaquePart, place: EncodePlace): JsonObject {
  if (part.dialect === "openai-chat") return part.value;
  const text = readableText(part);
  if (text !== undefined) return { type: "text", text };
  throw place.unsupported(
    `has the type ${JSON.stringify(opaqueName(part))}, which this model's provider does not know.`,
  );
}
