import type { AssistantMessage, Message } from "../../canonical/message.ts";
import type { ReasoningPart } from "../../canonical/reasoning.ts";
import { isSealedReasoning } from "../../canonical/reasoning.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import type { StreamPart } from "../../canonical/response.ts";
import type { WorkspaceSignatures } from "./call-signatures.ts";

/**
 * Collects the sealed reasoning of a stream that comes after its last text, which the client is not
 * sent, and keeps it for the next turn.
 */
export class LateSeals {
  private readonly keys = new TurnKeys();
  private readonly signatures: WorkspaceSignatures;
  private text = "";
  private lastOther = -1;
  private endsInText = false;
  private late: ResponseAssembler | undefined;

  constructor(messages: readonly Message[], signatures: WorkspaceSignatures) {
    for (const message of messages) this.keys.add(message);
    this.signatures = signatures;
  }

  observe(part: StreamPart): void {
    if (!("itemIndex" in part) || part.choiceIndex !== 0) return;
    if (part.type.startsWith("reasoning")) {
      if (this.endsInText) (this.late ??= new ResponseAssembler()).add(part);
      return;
    }
    if (part.type === "text-delta") this.text += part.text;
    if (part.itemIndex <= this.lastOther) return;
    this.lastOther = part.itemIndex;
    this.late = undefined;
    this.endsInText = part.type === "text-start" || part.type === "text-delta";
  }

  /** Keeps the seals of a stream that has ended. Returns whether readable reasoning is left out. */
  keep(): boolean {
    const thoughts = this.late?.response().choices[0]?.parts ?? [];
    const sealed = thoughts.filter(
      (part): part is ReasoningPart => part.type === "reasoning" && isSealedReasoning(part),
    );
    if (sealed.length > 0) this.signatures.keepLate(this.keys.of(this.text), sealed);
    return thoughts.some(
      (part) => part.type === "reasoning" && (part.text ?? part.summary) !== undefined,
    );
  }
}

/**
 * Returns the conversation with the late seals on those turns whose client was not sent them. Only
 * the provider that made a seal gets it back.
 */
export function withLateSeals(
  messages: readonly Message[],
  { signatures, providerId }: { signatures: WorkspaceSignatures; providerId: string },
): readonly Message[] {
  if (!signatures.hasLate) return messages;
  const keys = new TurnKeys();
  return messages.map((message) => {
    const late = message.role === "assistant" ? lateOf(message, { keys, signatures }) : [];
    keys.add(message);
    const own = late.filter(({ provenance }) => provenance?.providerId === providerId);
    return own.length === 0 || message.role !== "assistant"
      ? message
      : { ...message, parts: [...message.parts, ...own] };
  });
}

function lateOf(
  message: AssistantMessage,
  { keys, signatures }: { keys: TurnKeys; signatures: WorkspaceSignatures },
): readonly ReasoningPart[] {
  if (message.parts.at(-1)?.type !== "text") return [];
  return signatures.findLate(keys.of(textOf(message))) ?? [];
}

/**
 * Names each turn of a conversation by everything that was said up to it, so that a seal returns to
 * its own conversation alone. Instructions are not included, since agents change them.
 */
class TurnKeys {
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
const textOf = ({ parts }: { parts: readonly { type: string; text?: unknown }[] }): string =>
  parts
    .map((part) => (part.type === "text" ? String(part.text) : ""))
    .join("")
    .trim();
