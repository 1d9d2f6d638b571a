import type { Message } from "../../canonical/message.ts";

/**
 * Names each turn of a conversation by everything that was said up to it, so that a seal returns to
 * its own conversation alone. Instructions are not included, since agents change them.
 */
export class TurnKeys {
  private hash = 0n;

  add(message: Message): void {
    if (message.role === "system") return;
    this.hash = hashOf(message.role + plainOf(message), this.hash);
  }

  /** Returns the key of a turn that says this text. */
  of(text: string): string {
    return hashOf(text.trim(), this.hash).toString(36);
  }
}

const hashOf = (text: string, seed: bigint): bigint => Bun.hash.wyhash(text, seed);

/** Returns what a message says: its texts, and the ids of calls. */
function plainOf(message: Exclude<Message, { role: "system" }>): string {
  if (message.role === "tool") return `${message.toolCallId}\n${textOf(message)}`;
  if (message.role === "user") return textOf(message);
  const ids = message.parts.map((part) => (part.type === "tool-call" ? part.id : ""));
  return `${ids.join(" ")}\n${textOf(message)}`;
}

/** Returns the texts of a message as one, without the white space around it. */
export const textOf = ({ parts }: { parts: readonly { type: string; text?: unknown }[] }): string =>
  parts
    .map((part) => (part.type === "text" ? String(part.text) : ""))
    .join("")
    .trim();
