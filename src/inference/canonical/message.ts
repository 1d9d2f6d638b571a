import type { CacheMarker } from "./cache-marker.ts";
import type {
  AudioOutputPart,
  AudioPart,
  DocumentPart,
  ImagePart,
  OpaquePart,
  RefusalPart,
  TextPart,
} from "./content.ts";
import type { Extensions } from "./extensions.ts";
import type { ReasoningPart } from "./reasoning.ts";
import type { ToolCallPart, ToolKind } from "./tool.ts";

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

/** Splits off the instructions that stand before the first turn; those further on keep their place. */
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
