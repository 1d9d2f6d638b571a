import type { AssistantMessage, Message } from "./message.ts";

/**
 * The paths at which clients wrote messages and their parts, such as `input[3].content[1]`. They are
 * kept beside the canonical form, because two requests that mean the same are equal, wherever their
 * parts stand.
 */
const places = new WeakMap<object, string>();

/** Notes where a client wrote what was decoded, and returns it. */
export function writtenAt<T extends object>(path: string, decoded: T): T {
  places.set(decoded, path);
  return decoded;
}

/** Decodes the parts of a message, and notes where the client wrote each. */
export const decodeEach = <Written extends { path: string }, Decoded extends object>(
  parts: readonly Written[],
  decode: (part: Written) => Decoded,
): Decoded[] => parts.map((part) => writtenAt(part.path, decode(part)));

/** A path into a conversation, such as `messages[3].content[1].detail`, with its parts. */
const conversationPath = /^messages\[(\d+)\](?:\.(content|tool_calls)\[(\d+)\])?(.*)$/;

/** A conversation as its client sent it, and as it is encoded, with tool calls and results paired. */
interface Conversations {
  sent: readonly Message[];
  encoded: readonly Message[];
}

/**
 * Returns a path into the encoded conversation as the client wrote it. Other dialects group
 * messages in other ways, so its index would name another one. Paths to what the client did not
 * write, and paths elsewhere, are returned as they are.
 */
export function writtenPath(path: string, { sent, encoded }: Conversations): string {
  const [, messageIndex, list, partIndex, rest = ""] = conversationPath.exec(path) ?? [];
  const message = encoded[Number(messageIndex)];
  if (message === undefined) return path;
  const part = list === undefined ? undefined : partsIn(message, list)[Number(partIndex)];
  const partPlace = part && places.get(part);
  if (partPlace !== undefined) return partPlace + rest;
  const inMessage = (list === undefined ? "" : `.${list}[${partIndex}]`) + rest;
  const place = places.get(message);
  if (place !== undefined) return place + inMessage;
  const index = sent.indexOf(message);
  return index < 0 ? path : `messages[${index}]${inMessage}`;
}

const partsIn = ({ parts }: Message, list: string): Message["parts"] =>
  list === "content"
    ? parts
    : (parts as AssistantMessage["parts"]).filter((part) => part.type === "tool-call");
