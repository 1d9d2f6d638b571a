import { bodyCharactersMax } from "./hub-library.ts";

/** The creator of a conversation: the playground, or stored responses. */
type ConversationSource = "playground" | "responses";

/** Rows of conversations. */
export interface ConversationTables {
  conversations: {
    id: string;
    workspace_id: string;
    person_id: string;
    title: string;
    starred: number;
    source: ConversationSource;
    model: string | null;
    created_at_ms: number;
    updated_at_ms: number;
  };
  conversation_messages: {
    conversation_id: string;
    position: number;
    role: string;
    content: string;
    model: string | null;
    response_id: string | null;
    created_at_ms: number;
  };
  conversation_settings: { workspace_id: string; keep: number; updated_at_ms: number };
}

/** A message of a conversation. */
export interface Message {
  role: string;
  content: string;
  model: string | null;
  /** The stored response that it belongs to. */
  responseId: string | null;
  createdAtMs: number;
}

/** A conversation of one person. Times are in milliseconds. */
export interface Conversation {
  /** A `cnv_` id. */
  id: string;
  title: string;
  starred: boolean;
  source: ConversationSource;
  model: string | null;
  messageCount: number;
  createdAtMs: number;
  updatedAtMs: number;
}

/** A message to be stored. */
export type NewMessage = Pick<Message, "role" | "content"> & { model?: string | null | undefined };

/** A stored response, as far as conversations need it. */
export interface KeptResponse {
  id: string;
  workspaceId: string;
  personId: string;
  /** The key that asked, whose privacy settings apply. */
  keyId: string;
  previousResponseId: string | null;
  model: string;
  messages: readonly NewMessage[];
}

const titleCharacters = 80;

/** Returns a title from the first message. */
export const titleOf = (messages: readonly NewMessage[]): string => {
  const first = messages.find(({ role }) => role === "user") ?? messages[0];
  const line = (first?.content ?? "")
    .replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069\s]+/gu, " ")
    .trim();
  return Array.from(line).slice(0, titleCharacters).join("").toWellFormed() || "Untitled";
};

/**
 * Returns the message of an item of the Responses dialect; undefined for one that is no message, or
 * has no text.
 */
export function messageOf(
  item: Readonly<Record<string, unknown>>,
  model: string | null,
): NewMessage | undefined {
  const { role, content, type = "message" } = item;
  if (type !== "message" || typeof role !== "string") return undefined;
  const parts: unknown[] = Array.isArray(content) ? content : [{ text: content }];
  const texts = parts.map((part) =>
    typeof part === "object" && part !== null && "text" in part ? part.text : undefined,
  );
  const text = texts
    .filter((each): each is string => typeof each === "string")
    .join("\n")
    .replaceAll("\0", "")
    .toWellFormed();
  if (text === "") return undefined;
  return {
    role,
    content: text.slice(0, bodyCharactersMax).toWellFormed(),
    model: role === "assistant" ? model : null,
  };
}
