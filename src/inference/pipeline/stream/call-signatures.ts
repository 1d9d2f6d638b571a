import type { Message, AssistantMessage } from "../../canonical/message.ts";
import {
  type Provenance,
  type ReasoningPart,
  isSealedReasoning,
} from "../../canonical/reasoning.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import type { CanonicalResponse, StreamPart } from "../../canonical/response.ts";

/** The signature of a tool call, and the provider that made it. */
interface CallSignature {
  signature: string;
  provenance?: Provenance;
}

/** Reads and keeps the signatures of calls, and the late seals of turns, of one workspace. */
export interface WorkspaceSignatures {
  keep(callId: string, signature: CallSignature): void;
  find(callId: string): CallSignature | undefined;
  /** Keeps sealed reasoning that the client was not sent; `turnKey` is that of `TurnKeys`. */
  keepLate(turnKey: string, thoughts: readonly ReasoningPart[]): void;
  findLate(turnKey: string): readonly ReasoningPart[] | undefined;
  /** Whether any late seal is kept, of this workspace or another. */
  readonly hasLate: boolean;
}

/**
 * The most calls whose signatures are kept: each takes some hundred bytes, and an agent's turn has
 * a few.
 */
const keptMax = 20_000;

/** The most turns whose late seals are kept, and the most characters of each: encrypted reasoning is long. */
const lateMax = 4_000;
const lateCharactersMax = 64 * 1024;

/**
 * Signatures that providers put on tool calls (Gemini) and expect back, kept for clients whose
 * dialect has no field for them, and sealed reasoning that came too late to be shown. They are in
 * memory and bounded. Where one is lost, the request is sent without it, and the model loses only
 * the reasoning behind that call or turn.
 */
export class CallSignatures {
  private readonly kept = new Map<string, CallSignature>();
  private readonly late = new Map<string, readonly ReasoningPart[]>();

  /**
   * Returns the signatures of one workspace's calls. They are kept apart because call ids are
   * chosen by providers and not secret.
   */
  of(workspaceId: string): WorkspaceSignatures {
    return new SignaturesOfWorkspace(this, workspaceId);
  }

  find(key: string): CallSignature | undefined {
    return this.kept.get(key);
  }

  keep(key: string, signature: CallSignature): void {
    put(this.kept, { key, value: signature, max: keptMax });
  }

  get hasLate(): boolean {
    return this.late.size > 0;
  }

  findLate(key: string): readonly ReasoningPart[] | undefined {
    return this.late.get(key);
  }

  keepLate(key: string, thoughts: readonly ReasoningPart[]): void {
    if (JSON.stringify(thoughts).length > lateCharactersMax) return;
    put(this.late, { key, value: thoughts, max: lateMax });
  }
}

/** Sets a value, and removes the oldest one beyond the most that are kept. */
function put<Value>(
  kept: Map<string, Value>,
  { key, value, max }: { key: string; value: Value; max: number },
): void {
  kept.delete(key);
  kept.set(key, value);
  if (kept.size <= max) return;
  const [oldest] = kept.keys();
  if (oldest !== undefined) kept.delete(oldest);
}

class SignaturesOfWorkspace implements WorkspaceSignatures {
  constructor(
    private readonly all: CallSignatures,
    private readonly workspaceId: string,
  ) {}

  keep(callId: string, signature: CallSignature): void {
    this.all.keep(`${this.workspaceId} ${callId}`, signature);
  }

  find(callId: string): CallSignature | undefined {
    return this.all.find(`${this.workspaceId} ${callId}`);
  }

  get hasLate(): boolean {
    return this.all.hasLate;
  }

  keepLate(turnKey: string, thoughts: readonly ReasoningPart[]): void {
    this.all.keepLate(`${this.workspaceId} ${turnKey}`, thoughts);
  }

  findLate(turnKey: string): readonly ReasoningPart[] | undefined {
    return this.all.findLate(`${this.workspaceId} ${turnKey}`);
  }
}

/** Keeps the signature of a tool call, where it has one. */
export function keepSignature(
  call: { id: string; signature?: string; provenance?: Provenance },
  signatures: WorkspaceSignatures,
): void {
  const { id, signature, provenance } = call;
  if (signature !== undefined)
    signatures.keep(id, { signature, ...(provenance !== undefined && { provenance }) });
}

/** Keeps the signatures of all calls of a whole answer. */
export function keepSignatures(
  { choices }: CanonicalResponse,
  signatures: WorkspaceSignatures,
): void {
  for (const { parts } of choices)
    for (const part of parts) if (part.type === "tool-call") keepSignature(part, signatures);
}

/**
 * Returns the conversation with the kept signatures on those calls that came back without theirs.
 */
export function withSignatures(
  messages: readonly Message[],
  signatures: WorkspaceSignatures,
): readonly Message[] {
  let changed = false;
  const signed = messages.map((message) => {
    if (message.role !== "assistant") return message;
    const parts = message.parts.map((part) => {
      const known =
        part.type === "tool-call" && part.signature === undefined
          ? signatures.find(part.id)
          : undefined;
      if (known === undefined) return part;
      changed = true;
      return { ...part, ...known };
    });
    return { ...message, parts };
  });
  return changed ? signed : messages;
}

/**
 * Collects the sealed reasoning of a stream that comes after its last text, which the client is not
 * sent, and keeps it for the next turn.
 */
class LateSeals {
  private readonly keys = new TurnKeys();
  private text = "";
  private lastOther = -1;
  private endsInText = false;
  private late: ResponseAssembler | undefined;

  constructor(
    messages: readonly Message[],
    private readonly signatures: WorkspaceSignatures,
  ) {
    for (const message of messages) this.keys.add(message);
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

export type { LateSeals };

/** Creates the collector of the late seals of a stream that answers these messages. */
export const newLateSeals = (
  messages: readonly Message[],
  signatures: WorkspaceSignatures,
): LateSeals => new LateSeals(messages, signatures);

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
