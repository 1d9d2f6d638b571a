import {
  type AudioPart,
  type DocumentPart,
  type ImagePart,
  type MediaSource,
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
import {
  isForeignReasoning,
  openProvenance,
  type ReasoningPart,
} from "../../../canonical/reasoning.ts";
import { opaqueName, readableText } from "../../shared/encode-state.ts";
import { argumentsObject } from "../../shared/tools.ts";
import { asObject, unsupportedContent } from "../../shared/wire-fields.ts";
import type { GeminiPlace, GeminiState } from "../encode-state.ts";
import { missingSignature } from "./seals.ts";

/**
 * Encodes the conversation for Gemini: instructions separately, then contents with alternating
 * roles. A request of instructions alone sends them as the user's, since Gemini refuses an empty
 * conversation.
 */
export function encodeContents(state: GeminiState): JsonObject {
  const { leading, rest } = splitLeadingSystem(state.conversation);
  const instructions = leading.flatMap((message, index) =>
    systemParts(message, state.at(`messages[${index}]`)),
  );
  const conversation = new ConversationEncoder(state);
  rest.forEach((message, index) =>
    conversation.add(message, state.at(`messages[${leading.length + index}]`)),
  );
  const contents = conversation.finish();
  if (contents.length > 0)
    return {
      contents,
      ...(instructions.length > 0 && { systemInstruction: { parts: instructions } }),
    };
  if (instructions.length > 0) return { contents: [{ role: "user", parts: instructions }] };
  throw unsupportedContent("messages", "hold no content, which Gemini refuses; say something.");
}

function systemParts(message: SystemMessage, place: GeminiPlace): JsonObject[] {
  place.loseDecoration(message);
  return message.parts
    .filter((part) => !isBillingLine(part.text))
    .flatMap((part, index) => encodeUserPart(part, place.at(`.content[${index}]`)));
}

/** A tool's result with its place, kept until all results of its turn are present. */
interface HeldResult {
  message: ToolMessage;
  place: GeminiPlace;
}

/** The turn before a call with which a conversation begins: Gemini answers 400 to one without it. */
const openingTurn = { role: "user", parts: [{ text: "(The conversation begins.)" }] };

/**
 * Groups messages into contents: neighbours of one role become one, and the results of one turn are
 * placed together.
 */
class ConversationEncoder {
  private readonly contents: { role: "user" | "model"; parts: JsonObject[] }[] = [];
  private openCalls: ToolCallPart[] = [];
  private readonly results = new Map<string, HeldResult>();
  private imageCount = 0;

  constructor(private readonly state: GeminiState) {}

  add(message: Message, place: GeminiPlace): void {
    if (message.role === "tool") {
      this.results.set(message.toolCallId, { message, place });
      return;
    }
    this.flushResults();
    switch (message.role) {
      case "user":
        place.loseDecoration(message);
        this.append(
          "user",
          message.parts.flatMap((part, index) =>
            encodeUserPart(part, place.at(`.content[${index}]`)),
          ),
        );
        break;
      case "system":
        this.append("user", laterInstructions(message, place));
        break;
      case "assistant":
        this.openCalls = callsOf(message);
        this.append("model", encodeModelTurn(message, place));
    }
  }

  finish(): JsonObject[] {
    this.flushResults();
    if (this.contents.at(-1)?.role === "model" && !this.state.traits.prefill) {
      const last = this.state.conversation.length - 1;
      this.state.lose(`messages[${last}]`, "the model takes no beginning of its answer");
      this.append("user", textParts("Continue."));
    }
    const [first] = this.contents;
    const isCall = first?.role === "model" && first.parts.some(({ functionCall }) => functionCall);
    const contents = isCall ? [openingTurn, ...this.contents] : this.contents;
    return contents.map(({ role, parts }) => ({ role, parts }));
  }

  private append(role: "user" | "model", parts: JsonObject[]): void {
    if (parts.length === 0) return;
    const last = this.contents.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else this.contents.push({ role, parts });
  }

  /**
   * Writes one result for each call, in the order of the calls: Gemini counts them and may match
   * them by order.
   */
  private flushResults(): void {
    const attachments: JsonObject[] = [];
    const responses = this.openCalls.flatMap((call) => {
      const held = this.results.get(call.id);
      return held === undefined ? [] : [this.functionResponse(call, { held, attachments })];
    });
    this.append("user", [...responses, ...attachments]);
    this.openCalls = [];
    this.results.clear();
  }

  private functionResponse(
    call: ToolCallPart,
    { held, attachments }: { held: HeldResult; attachments: JsonObject[] },
  ): JsonObject {
    const { message, place } = held;
    place.loseDecoration({ cache: message.cache, extensions: message.extensions });
    const nested: JsonObject[] = [];
    const texts = message.parts.map((part, index) => {
      const partPlace = place.at(`.content[${index}]`);
      const encoded = encodeUserPart(part, partPlace);
      if (part.type === "text") return part.text;
      if (encoded.every(isText)) return encoded.map(textOf).join("\n");
      this.imageCount += 1;
      if (this.state.traits.mediaInResults && encoded.every(isNestable)) {
        nested.push(...encoded);
        return `[${part.type} ${this.imageCount}]`;
      }
      attachments.push(...encoded);
      partPlace.lose("the model takes it beside the results alone; sent there");
      return `[${part.type} ${this.imageCount} attached below]`;
    });
    const text = texts.join("\n");
    return {
      functionResponse: {
        ...(this.state.traits.callIds && { id: call.id }),
        name: this.state.wireName(call),
        response: message.isError === true ? { error: text } : { output: text },
        ...(nested.length > 0 && { parts: nested }),
      },
    };
  }
}

const isText = ({ text }: JsonObject): boolean => typeof text === "string";
const textOf = ({ text }: JsonObject): string => String(text);

/** The media types that results may carry: ai.google.dev, "function-calling" (2026-11). */
const nestedTypes: ReadonlySet<unknown> = new Set([
  "image/png",
  "image/jpeg",
  "image/webp",
  "application/pdf",
  "text/plain",
]);

/** Returns whether a result may carry a part. The Gemini API takes bytes in results alone. */
const isNestable = ({ inlineData }: JsonObject): boolean =>
  nestedTypes.has(asObject(inlineData)?.mimeType);

const callsOf = (message: AssistantMessage): ToolCallPart[] =>
  message.parts.filter((part) => part.type === "tool-call");

/**
 * Encodes later instructions at their place in the conversation, since moving them to its head
 * would change their meaning.
 */
function laterInstructions(message: SystemMessage, place: GeminiPlace): JsonObject[] {
  const text = systemParts(message, place)
    .map((part) => String(part.text))
    .join("\n\n");
  return textParts(text === "" ? "" : `<system-reminder>\n${text}\n</system-reminder>`);
}

/** Encodes a turn of the model as Gemini's parts, with the seals that Gemini made. */
function encodeModelTurn(message: AssistantMessage, place: GeminiPlace): JsonObject[] {
  place.loseDecoration(message);
  const turn = new TurnEncoder(place.state);
  message.parts.forEach((part, index) =>
    turn.add(part, { place: place.at(`.content[${index}]`), next: message.parts[index + 1] }),
  );
  return turn.finish();
}

/** Attaches seals to the parts that they belong to, since Gemini has no part for a seal alone. */
class TurnEncoder {
  private readonly parts: Record<string, JsonValue | undefined>[] = [];
  /** A seal that waits for the part after it. */
  private seal: string | undefined;
  private hasCalls = false;

  constructor(private readonly state: GeminiState) {}

  add(
    part: AssistantPart,
    { place, next }: { place: GeminiPlace; next: AssistantPart | undefined },
  ): void {
    switch (part.type) {
      case "text":
        place.loseDecoration(part);
        this.push(textParts(part.text), this.ownTextSeal(part.signature));
        break;
      case "refusal":
        this.push(textParts(part.refusal));
        break;
      case "reasoning":
        this.addThought(part, { place, next });
        break;
      case "tool-call":
        this.addCall(part, place);
        break;
      case "image":
        if (part.source.type === "base64") this.push([encodeImage(part, place)]);
        else place.lose("Gemini takes back the bytes of its images only");
        break;
      case "audio-output":
        place.lose("Gemini takes no sound in its own turns");
        this.push(textParts(part.transcript ?? ""));
        break;
      case "opaque":
        if (part.dialect === "google-generate") this.push([part.value]);
        else place.lose(`a ${opaqueName(part)} of ${part.dialect}`);
    }
  }

  finish(): JsonObject[] {
    if (this.seal !== undefined) this.stampLast(this.seal);
    return this.parts;
  }

  private push(parts: readonly JsonObject[], seal: string | undefined = this.seal): void {
    for (const part of parts) {
      this.parts.push({ ...part, ...(seal !== undefined && { thoughtSignature: seal }) });
      if (seal === this.seal) this.seal = undefined;
    }
  }

  private stampLast(seal: string): boolean {
    const last = this.parts.at(-1);
    if (last === undefined || last.thoughtSignature !== undefined) return false;
    last.thoughtSignature = seal;
    return true;
  }

  private ownTextSeal(sealed: string | undefined): string | undefined {
    if (sealed === undefined) return undefined;
    const { seal, provenance } = openProvenance(sealed);
    return provenance?.providerId === this.state.options.providerId ? seal : undefined;
  }

  private addThought(
    part: ReasoningPart,
    { place, next }: { place: GeminiPlace; next: AssistantPart | undefined },
  ): void {
    const isOwn = part.provenance?.providerId === this.state.options.providerId;
    const seal = isOwn ? part.signature : undefined;
    if (part.text && seal !== undefined) {
      this.push([{ text: part.text, thought: true }], seal);
    } else if (seal !== undefined) {
      // The seal of a text comes after it, that of a call before it.
      const belongsToNext = next?.type === "tool-call" && next.signature === undefined;
      if (belongsToNext || !this.stampLast(seal)) this.seal = seal;
    } else {
      const isSealed = part.signature !== undefined || part.encrypted !== undefined;
      place.lose(
        isSealed ? "sealed by another provider" : "Gemini takes back sealed thoughts only",
      );
    }
  }

  private addCall(call: ToolCallPart, place: GeminiPlace): void {
    place.loseDecoration({ cache: call.cache, extensions: call.extensions });
    const { traits, namer } = this.state;
    const isForeign =
      call.signature !== undefined && isForeignReasoning(call, this.state.options.providerId);
    if (isForeign) place.at(".signature").lose("sealed by another provider");
    const own = isForeign ? undefined : call.signature;
    const isFirst = !this.hasCalls;
    this.hasCalls = true;
    this.push(
      [
        {
          functionCall: {
            ...(traits.callIds && { id: call.id }),
            name: this.state.wireName(call),
            args: namer.wraps(call) ? { input: call.arguments } : argumentsObject(call.arguments),
          },
        },
      ],
      own ?? this.seal ?? (isFirst && traits.needsSignatures ? missingSignature : undefined),
    );
  }
}

/** Encodes one part of a user's message as Gemini's parts; empty text yields none. */
function encodeUserPart(part: UserPart, place: GeminiPlace): JsonObject[] {
  switch (part.type) {
    case "text":
      place.loseDecoration(part);
      return textParts(part.text);
    case "image":
      place.loseDecoration(part);
      return [encodeImage(part, place)];
    case "document":
      place.loseDecoration(part);
      return encodeDocument(part, place);
    case "audio":
      place.loseDecoration(part);
      return [encodeAudio(part)];
    case "opaque": {
      if (part.dialect === "google-generate") return [part.value];
      const text = readableText(part);
      if (text !== undefined) return textParts(text);
      throw place.unsupported(
        `has the type ${JSON.stringify(opaqueName(part))}, which Gemini does not know.`,
      );
    }
  }
}

/**
 * Returns the parts of a text; none for an empty one, since Gemini refuses parts without content.
 */
const textParts = (text: string): JsonObject[] => (text === "" ? [] : [{ text }]);

/** Encodes an image of either side of the conversation. */
function encodeImage({ source, detail }: ImagePart, place: GeminiPlace): JsonObject {
  if (detail !== undefined && detail !== "auto")
    place.at(".detail").lose("Gemini chooses the resolution itself");
  return encodeMedia(source, place);
}

function encodeMedia(source: MediaSource, place: GeminiPlace): JsonObject {
  if (source.type === "base64")
    return { inlineData: { mimeType: source.mediaType, data: source.data } };
  const uri = source.type === "url" ? source.url : source.fileId;
  if (/^(?:https?|gs):\/\//i.test(uri)) return fileData(uri);
  throw place.unsupported(
    "names an upload or an address that Gemini cannot read; send the bytes as base64, or an https address.",
  );
}

/**
 * Encodes an address: Gemini itself fetches public https addresses, its own uploads and Cloud
 * Storage (since 2026-01).
 */
function fileData(fileUri: string): JsonObject {
  const mimeType =
    mediaTypeByExtension[/\.([a-z0-9]+)(?:[?#]|$)/i.exec(fileUri)?.[1]?.toLowerCase() ?? ""];
  return { fileData: { ...(mimeType !== undefined && { mimeType }), fileUri } };
}

/**
 * Media types by the extension of an address. Vertex AI requires one; the Gemini API detects it.
 */
const mediaTypeByExtension: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  heic: "image/heic",
  heif: "image/heif",
  gif: "image/gif",
  pdf: "application/pdf",
  txt: "text/plain",
  md: "text/markdown",
  html: "text/html",
  csv: "text/csv",
  wav: "audio/wav",
  mp3: "audio/mp3",
  ogg: "audio/ogg",
  flac: "audio/flac",
  mp4: "video/mp4",
  webm: "video/webm",
  mov: "video/quicktime",
};

const encodeAudio = ({ data, format }: AudioPart): JsonObject => ({
  inlineData: { mimeType: format === "pcm16" ? "audio/l16;rate=24000" : `audio/${format}`, data },
});

function encodeDocument(part: DocumentPart, place: GeminiPlace): JsonObject[] {
  const { source, title, context, citations } = part;
  if (citations === true) place.at(".citations").lose("Gemini is not asked to cite");
  if (context !== undefined) place.at(".context").lose("Gemini has no such field");
  switch (source.type) {
    case "text":
      return textParts(title === undefined ? source.text : `${title}\n${source.text}`);
    case "parts":
      return [
        ...textParts(title ?? ""),
        ...source.parts.flatMap((inner, index) =>
          encodeUserPart(inner, place.at(`.source[${index}]`)),
        ),
      ];
    default:
      if (title !== undefined) place.at(".title").lose("Gemini has no such field");
      return [encodeMedia(source, place)];
  }
}
