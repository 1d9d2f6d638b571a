import {
  type DocumentPart,
  type ImagePart,
  type MediaSource,
  type OpaquePart,
  type RefusalPart,
  type TextPart,
  type AssistantMessage,
  type AssistantPart,
  type Message,
  splitLeadingSystem,
  type SystemMessage,
  type ToolMessage,
  type UserPart,
  type ToolCallPart,
  isBillingLine,
} from "../../../canonical/message.ts";
import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import { isForeignReasoning, type ReasoningPart } from "../../../canonical/reasoning.ts";
import {
  opaqueName,
  readableText,
  type EncodePlace,
  type EncodeState,
} from "../../shared/encode-state.ts";
import { dataUrl } from "../../shared/openai-fields.ts";
import { wrapInput } from "../../shared/tools.ts";
import { withoutUndefined } from "../../shared/wire-fields.ts";
import { isRanSearch, SearchReader } from "../../shared/extras/web-search.ts";
import { encodeAnnotation, searchItem, summaryParts, takenCallId } from "../answer-fields.ts";

/** `instructions` and `input` of a request. */
interface EncodedInput {
  instructions?: string;
  input: readonly JsonObject[];
}

/**
 * Encodes the conversation: leading instructions in their field, tool results directly after their
 * calls.
 */
export function encodeInput(state: EncodeState): EncodedInput {
  const { leading, rest } = splitLeadingSystem(state.conversation);
  const head = state.sameDialect ? ownHead(leading, state) : translatedHead(leading, state);
  const items = rest.flatMap((message, index) =>
    encodeMessage(message, state.at(`messages[${leading.length + index}]`)),
  );
  return {
    ...(head.instructions !== undefined && { instructions: head.instructions }),
    input: [...head.input, ...items],
  };
}

/**
 * Encodes a Responses client's leading instructions: the first are its `instructions`, and the
 * others items, as it wrote them.
 */
function ownHead(leading: readonly SystemMessage[], state: EncodeState): EncodedInput {
  const [first, ...others] = leading;
  const text =
    first && first.developer !== true && first.extensions === undefined
      ? plainText(first)
      : undefined;
  const items = text === undefined ? leading : others;
  const skipped = leading.length - items.length;
  return {
    ...(text !== undefined && { instructions: text }),
    input: items.map((message, index) =>
      encodeSystem(message, state.at(`messages[${skipped + index}]`)),
    ),
  };
}

function plainText({ parts }: SystemMessage): string | undefined {
  const [part] = parts;
  const plain =
    part !== undefined &&
    parts.length === 1 &&
    part.cache === undefined &&
    part.extensions === undefined;
  return plain && part.text !== "" ? part.text : undefined;
}

/**
 * Encodes other dialects' instructions as one text, or one item where its parts have cache markers.
 */
function translatedHead(leading: readonly SystemMessage[], state: EncodeState): EncodedInput {
  const parts = leading
    .flatMap((message) => message.parts)
    .filter((part) => part.text !== "" && !isBillingLine(part.text));
  if (parts.length === 0) return { input: [] };
  const place = state.at("messages[0]");
  const wire = parts.map((part, index) => encodeInputText(part, place.at(`.content[${index}]`)));
  if (wire.every((part) => Object.keys(part).length === 2))
    return { instructions: parts.map((part) => part.text).join("\n\n"), input: [] };
  return { input: [{ type: "message", role: "system", content: wire }] };
}

function encodeMessage(message: Message, place: EncodePlace): JsonObject[] {
  switch (message.role) {
    case "system":
      return [encodeSystem(message, place)];
    case "user": {
      if (message.name !== undefined) place.at(".name").lose("Responses messages have no names");
      const content = message.parts.flatMap((part, index) =>
        encodeUserPart(part, place.at(`.content[${index}]`)),
      );
      return [
        {
          type: "message",
          role: "user",
          content: plainOrParts(content),
          ...place.extensionFields(message.extensions),
        },
      ];
    }
    case "assistant":
      return encodeAssistant(message, place);
    case "tool":
      return [encodeResult(message, place)];
  }
}

const encodeSystem = (message: SystemMessage, place: EncodePlace): JsonObject => ({
  type: "message",
  role: message.developer === true ? "developer" : "system",
  content: plainOrParts(
    message.parts.map((part, index) => encodeInputText(part, place.at(`.content[${index}]`))),
  ),
  ...place.extensionFields(message.extensions),
});

function encodeResult(message: ToolMessage, place: EncodePlace): JsonObject {
  const { state } = place;
  const wrapped = message.kind === "custom" && state.namer.wraps({ kind: "custom" });
  return {
    type:
      message.kind === "custom" && !wrapped ? "custom_tool_call_output" : "function_call_output",
    call_id: takenCallId(message.toolCallId, state.deviations),
    output: resultOutput(message, place),
    ...place.extensionFields(message.extensions),
  };
}

/**
 * Encodes a result's output. Text alone is sent as text, which every server accepts; a failed tool
 * is reported in words.
 */
function resultOutput(message: ToolMessage, place: EncodePlace): JsonValue {
  if (message.cache !== undefined) place.state.cacheFields(message.cache);
  const failed: TextPart[] = message.isError === true ? [{ type: "text", text: "Error:" }] : [];
  const texts = message.parts.filter((part): part is TextPart => part.type === "text");
  if (texts.length === message.parts.length && (texts.length <= 1 || !place.state.sameDialect)) {
    return (message.isError === true ? "Error: " : "") + texts.map((part) => part.text).join("\n");
  }
  return [
    ...failed.map((part) => encodeInputText(part, place)),
    ...message.parts.flatMap((part, index) => encodeUserPart(part, place.at(`.content[${index}]`))),
  ];
}

/**
 * Encodes a turn of the model as items: a message for consecutive texts, and one item for
 * everything else.
 */
function encodeAssistant(message: AssistantMessage, place: EncodePlace): JsonObject[] {
  const items: JsonObject[] = [];
  const searches = new SearchReader();
  let open: { content: JsonObject[]; phase: string | undefined } | undefined;
  message.parts.forEach((part, index) => {
    const partPlace = place.at(`.content[${index}]`);
    const said = spokenPart(part, partPlace);
    if (said === undefined) {
      const item = isForeignSearch(part) ? searchOf(part, searches) : encodeItem(part, partPlace);
      if (item !== undefined) open = undefined;
      if (item !== undefined) items.push(item);
      return;
    }
    const phase = part.type === "text" ? part.phase : open?.phase;
    if (
      open === undefined ||
      open.phase !== phase ||
      (part.type === "text" && part.startsMessage === true)
    ) {
      open = { content: [], phase };
      items.push(
        withoutUndefined<JsonObject>({
          type: "message",
          role: "assistant",
          content: open.content,
          phase,
        }),
      );
    }
    open.content.push(said);
  });
  if (message.parts.length === 0) items.push({ type: "message", role: "assistant", content: "" });
  return withExtensions(items, place.extensionFields(message.extensions));
}

const isForeignSearch = (part: AssistantPart): part is OpaquePart =>
  part.type === "opaque" && part.dialect !== "openai-responses" && isRanSearch(part);

/** Encodes a search that the client knows in another dialect, without an id that OpenAI gave. */
function searchOf(part: OpaquePart, searches: SearchReader): JsonObject | undefined {
  const search = searches.read(part);
  return search && searchItem(search);
}

function withExtensions(items: JsonObject[], fields: JsonObject): JsonObject[] {
  const at = items.findIndex((item) => item.type === "message");
  return items.map((item, index) => (index === at ? { ...item, ...fields } : item));
}

/** Encodes a part of a message; undefined for parts that are items of their own. */
function spokenPart(part: AssistantPart, place: EncodePlace): JsonObject | undefined {
  switch (part.type) {
    case "text":
      return spokenText(part, place);
    case "refusal":
      return { type: "refusal", refusal: part.refusal } satisfies RefusalPart;
    case "opaque":
      return part.dialect === "openai-responses" && part.value.type === "output_audio"
        ? part.value
        : undefined;
    default:
      return undefined;
  }
}

function spokenText(part: TextPart, place: EncodePlace): JsonObject {
  const annotations = part.annotations?.flatMap((each) => encodeAnnotation(each, part.text));
  return {
    type: "output_text",
    text: part.text,
    ...(annotations && { annotations }),
    ...markers(part, place),
  };
}

function encodeItem(part: AssistantPart, place: EncodePlace): JsonObject | undefined {
  switch (part.type) {
    case "tool-call":
      return encodeCall(part, place);
    case "reasoning":
      return encodeReasoning(part, place);
    case "opaque":
      if (part.dialect === "openai-responses") return part.value;
      place.lose(`a ${opaqueName(part)} of ${part.dialect}`);
      return undefined;
    case "audio-output":
      place.lose("Responses history holds no sound of the model's");
      return undefined;
    default:
      place.lose("Responses history holds no images of the model's");
      return undefined;
  }
}

/**
 * Encodes a call. Item ids are left out, since an upstream that stores nothing would not find them.
 * A wrapped call is recognised by the name of its custom tool.
 */
function encodeCall(call: ToolCallPart, place: EncodePlace): JsonObject {
  const { state } = place;
  const wraps = state.namer.wraps(call);
  const shared = withoutUndefined<JsonObject>({
    call_id: takenCallId(call.id, state.deviations),
    name: state.namer.wireName({ kind: call.kind, name: call.name }),
    namespace: call.namespace,
  });
  const extra = place.extensionFields(call.extensions);
  if (call.kind === "custom" && !wraps)
    return { type: "custom_tool_call", ...shared, input: call.arguments, ...extra };
  const text = call.arguments.trim() === "" ? "{}" : call.arguments;
  return {
    type: "function_call",
    ...shared,
    arguments: wraps ? wrapInput(call.arguments) : text,
    ...extra,
  };
}

/**
 * Encodes a reasoning block: sealed for its own maker, or readable for servers that accept that.
 * Its id is sent only with ciphertext, which it is part of; alone it would be looked up in a store
 * that does not have it.
 */
function encodeReasoning(part: ReasoningPart, place: EncodePlace): JsonObject | undefined {
  const { state } = place;
  const problem = whyNotReplayed(part, state);
  if (problem !== undefined) {
    place.lose(problem);
    return undefined;
  }
  return withoutUndefined<JsonObject>({
    type: "reasoning",
    id: part.encrypted === undefined ? undefined : part.id,
    summary: summaryParts(part.summary ?? []),
    content: part.text === undefined ? undefined : [{ type: "reasoning_text", text: part.text }],
    encrypted_content: part.encrypted,
    ...place.extensionFields(part.extensions),
  });
}

function whyNotReplayed(part: ReasoningPart, state: EncodeState): string | undefined {
  if (part.signature !== undefined) return "signed for another dialect";
  if (part.encrypted !== undefined) {
    const own =
      part.provenance === undefined
        ? state.sameDialect
        : !isForeignReasoning(part, state.options.providerId);
    return own ? undefined : "sealed by another provider";
  }
  if (part.text === undefined && part.summary === undefined) return "an id without its content";
  return state.sameDialect || state.deviations.reasoningReplay !== undefined
    ? undefined
    : "the upstream takes no earlier thoughts";
}

/**
 * Encodes one part of a user's message or of a result; a document of several parts becomes several.
 */
function encodeUserPart(part: UserPart, place: EncodePlace): JsonObject[] {
  switch (part.type) {
    case "text":
      return [encodeInputText(part, place)];
    case "image":
      return [{ type: "input_image", ...imageFields(part, place), ...markers(part, place) }];
    case "document":
      return encodeDocument(part, place);
    case "audio":
      return [
        {
          type: "input_audio",
          input_audio: { data: part.data, format: part.format },
          ...markers(part, place),
        },
      ];
    case "opaque":
      return [encodeOpaque(part, place)];
  }
}

/** Returns content as plain text where it is a single text, which all compatible servers accept. */
function plainOrParts(parts: readonly JsonObject[]): JsonValue {
  const [first] = parts;
  if (first === undefined) return "";
  const plain =
    parts.length === 1 && first.type === "input_text" && Object.keys(first).length === 2;
  return plain ? (first.text as string) : parts;
}

/** Encodes a text of the user's or of instructions. */
function encodeInputText(part: TextPart, place: EncodePlace): JsonObject {
  const { text, cache, extensions } = part;
  if (cache === undefined && extensions === undefined) return { type: "input_text", text };
  return { type: "input_text", text, ...markers(part, place) };
}

/** Encodes a part's cache marker and its unknown fields. */
const markers = (part: Pick<TextPart, "cache" | "extensions">, place: EncodePlace): JsonObject => ({
  ...place.state.cacheFields(part.cache),
  ...place.extensionFields(part.extensions),
});

function imageFields({ source, detail }: ImagePart, place: EncodePlace): JsonObject {
  const detailed = detail === undefined ? {} : { detail };
  if (source.type === "file") return { ...fileId(source, place), ...detailed };
  return { image_url: source.type === "url" ? source.url : dataUrl(source), ...detailed };
}

/** Encodes an uploaded file, which only its provider has. */
function fileId(source: Extract<MediaSource, { type: "file" }>, place: EncodePlace): JsonObject {
  if (place.state.sameDialect) return { file_id: source.fileId };
  throw place.unsupported(
    "names an uploaded file, which this model's provider cannot read; send its bytes or address.",
  );
}

function encodeDocument(part: DocumentPart, place: EncodePlace): JsonObject[] {
  if (part.citations === true)
    place.at(".citations").lose("Responses models are not asked to cite");
  if (part.context !== undefined) place.at(".context").lose("Responses files have no such field");
  const { source, title } = part;
  switch (source.type) {
    case "text":
      return [
        {
          type: "input_text",
          text: title === undefined ? source.text : `${title}\n${source.text}`,
          ...markers(part, place),
        },
      ];
    case "parts":
      return [
        ...(title === undefined ? [] : [{ type: "input_text", text: title }]),
        ...source.parts.flatMap((inner, index) =>
          encodeUserPart(inner, place.at(`.source[${index}]`)),
        ),
      ];
    default:
      return [
        {
          type: "input_file",
          ...documentFields(source, { title, place }),
          ...markers(part, place),
        },
      ];
  }
}

function documentFields(
  source: MediaSource,
  { title, place }: { title: string | undefined; place: EncodePlace },
): JsonObject {
  const named = title === undefined ? {} : { filename: title };
  if (source.type === "url") return { file_url: source.url, ...named };
  if (source.type === "file") return { ...fileId(source, place), ...named };
  // OpenAI refuses bytes without a name.
  const filename = title ?? (place.state.sameDialect ? undefined : "document.pdf");
  return { file_data: dataUrl(source), ...(filename !== undefined && { filename }) };
}

/**
 * Encodes a user's part of another dialect, or throws: it cannot be left out without changing the
 * request.
 */
function encodeOpaque(part: OpaquePart, place: EncodePlace): JsonObject {
  if (part.dialect === "openai-responses") return part.value;
  const text = readableText(part);
  if (text !== undefined) return { type: "input_text", text };
  throw place.unsupported(
    `has the type ${JSON.stringify(opaqueName(part))}, which this model's provider does not know.`,
  );
}
