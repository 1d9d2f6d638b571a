import type { AssistantMessage, Message } from "../../canonical/message.ts";
import type { ReasoningPart } from "../../canonical/reasoning.ts";
import { isSealedReasoning } from "../../canonical/reasoning.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import type { StreamPart } from "../../canonical/response.ts";
import type { WorkspaceSignatures } from "./call-signatures.ts";
import { TurnKeys, textOf } from "./turn-keys.ts";

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
