import type { Extensions, DialectId } from "./dialect-id.ts";
import type { ReasoningPart } from "./reasoning.ts";
import type { ToolCallPart, ToolKind } from "./request.ts";
import type { JsonObject } from "./json.ts";

/** What a user's message may hold. */
export type UserPart = TextPart | ImagePart | DocumentPart | AudioPart | OpaquePart;
/** What a turn of the model may hold, in history and in answers. */
export type AssistantPart =
  | TextPart
  | ReasoningPart
  | RefusalPart
  | ToolCallPart
  | ImagePart
  | AudioOutputPart
  | OpaquePart;
/** What a tool's result may hold. */
export type ToolResultPart = TextPart | ImagePart | DocumentPart | OpaquePart;

/** Instructions, at the head of a conversation or at its place within it. */
export interface SystemMessage {
  role: "system";
  /** True where the client wrote the role `developer`. */
  developer?: boolean;
  parts: readonly TextPart[];
  name?: string;
  extensions?: Extensions;
}

/** What the user says and shows. */
export interface UserMessage {
  role: "user";
  parts: readonly UserPart[];
  name?: string;
  extensions?: Extensions;
}

/** A turn of the model; its parts stand in the order in which they were made. */
export interface AssistantMessage {
  role: "assistant";
  parts: readonly AssistantPart[];
  name?: string;
  extensions?: Extensions;
}

/** The result of one tool call; results of parallel calls follow each other. */
export interface ToolMessage {
  role: "tool";
  toolCallId: string;
  parts: readonly ToolResultPart[];
  isError?: boolean;
  /** Kind of the call that is answered; absent means function. */
  kind?: ToolKind;
  /** The tool's name, where the dialect states it. */
  name?: string;
  cache?: CacheMarker;
  extensions?: Extensions;
}

/** One entry of a conversation. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/**
 * Splits off the instructions that stand before the first turn; those further on keep their place.
 */
export function splitLeadingSystem(messages: readonly Message[]): {
  leading: SystemMessage[];
  rest: Message[];
} {
  const leading: SystemMessage[] = [];
  for (const message of messages) {
    if (message.role !== "system") break;
    leading.push(message);
  }
  return { leading, rest: messages.slice(leading.length) };
}

/** What parts of content share. */
interface PartBase {
  cache?: CacheMarker;
  extensions?: Extensions;
}

/** Where a statement comes from. */
export type Annotation =
  | {
      type: "url";
      url: string;
      title?: string;
      startIndex?: number;
      endIndex?: number;
      citedText?: string;
      extensions?: Extensions;
    }
  | {
      type: "document";
      documentIndex: number;
      title?: string;
      citedText?: string;
      /** What `start` and `end` count: characters, pages or content blocks. */
      unit: "character" | "page" | "block";
      start: number;
      end: number;
      extensions?: Extensions;
    }
  | { type: "opaque"; dialect: DialectId; value: JsonObject };

/** Text, with where it comes from. */
export interface TextPart extends PartBase {
  type: "text";
  text: string;
  annotations?: readonly Annotation[];
  /**
   * Begins another message of the same answer: an empty line is put before it where a dialect has
   * but one text.
   */
  startsMessage?: boolean;
  /** Role of the text within the answer (Responses): commentary or final_answer. */
  phase?: string;
  /** Gemini's thought signature, which has to come back on the same part. */
  signature?: string;
}

/** Bytes by reference or inline. A file id means something to the provider that gave it only. */
export type MediaSource =
  | { type: "url"; url: string }
  | { type: "base64"; mediaType: string; data: string }
  | { type: "file"; fileId: string };

/** A picture, in a message or made by the model. */
export interface ImagePart extends PartBase {
  type: "image";
  source: MediaSource;
  /** Resolution that the model should look at: auto, low, high or original. */
  detail?: string;
}

/** A document: a file, plain text, or parts of content. */
export interface DocumentPart extends PartBase {
  type: "document";
  source:
    | MediaSource
    | { type: "text"; text: string; mediaType?: string }
    | { type: "parts"; parts: readonly (TextPart | ImagePart)[] };
  title?: string;
  /** What the model should know about the document without citing it. */
  context?: string;
  /** True when the model should cite it. */
  citations?: boolean;
}

/** Recorded sound in a message to the model. */
export interface AudioPart extends PartBase {
  type: "audio";
  /** Base64. */
  data: string;
  /** Container or codec, such as wav or mp3. */
  format: string;
}

/** Sound that the model made; in history it is named by its id alone. */
export interface AudioOutputPart {
  type: "audio-output";
  id: string;
  /** Base64. */
  data?: string;
  transcript?: string;
  /** Unix seconds after which the id means nothing. */
  expiresAtSeconds?: number;
}

/** The model's words for declining to answer. */
export interface RefusalPart {
  type: "refusal";
  refusal: string;
}

/** A part that only its own dialect understands, kept as it was written. */
export interface OpaquePart {
  type: "opaque";
  dialect: DialectId;
  value: JsonObject;
}

/** Asks the provider to keep the prompt up to here; stands on parts and tools. */
export interface CacheMarker {
  /** Lifetime; absent means the provider's default. 30m is OpenAI's, 5m and 1h are Anthropic's. */
  ttl?: "5m" | "30m" | "1h";
  /** Which of its two fields the openai-chat client used, so that the same one goes back. */
  field?: "cache_control" | "prompt_cache_breakpoint";
}
