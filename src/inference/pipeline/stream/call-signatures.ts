import type { Message } from "../../canonical/message.ts";
import type { Provenance, ReasoningPart } from "../../canonical/reasoning.ts";

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
  private readonly all: CallSignatures;
  private readonly workspaceId: string;

  constructor(all: CallSignatures, workspaceId: string) {
    this.all = all;
    this.workspaceId = workspaceId;
  }

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
