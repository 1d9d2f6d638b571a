import type { Message } from "../canonical/message.ts";
import type { Provenance } from "../canonical/reasoning.ts";

/** The signature of a tool call, with its maker. */
export interface CallSignature {
  signature: string;
  provenance?: Provenance;
}

/** Calls whose signatures are kept: some hundred bytes each, and an agent's turn has a few. */
const keptMax = 20_000;

/**
 * Signatures that providers put on tool calls (Gemini) and want to see again, for clients whose dialect
 * has no place for them. In memory and bounded: where one is gone, the request goes out without it, which
 * costs the model its thought and nothing else.
 */
export class CallSignatures {
  private readonly kept = new Map<string, CallSignature>();

  /** The signatures of one workspace's calls, since ids of calls are the providers' and no secret. */
  of(workspaceId: string): WorkspaceSignatures {
    return new SignaturesOfWorkspace(this, workspaceId);
  }

  find(key: string): CallSignature | undefined {
    return this.kept.get(key);
  }

  keep(key: string, signature: CallSignature): void {
    this.kept.delete(key);
    this.kept.set(key, signature);
    if (this.kept.size <= keptMax) return;
    for (const oldest of this.kept.keys()) {
      this.kept.delete(oldest);
      break;
    }
  }
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
}

/** What a request may know of signatures. */
export interface WorkspaceSignatures {
  keep(callId: string, signature: CallSignature): void;
  find(callId: string): CallSignature | undefined;
}

/** Keeps what a call is signed with, where it is. */
export function keepSignature(
  call: { id: string; signature?: string; provenance?: Provenance },
  signatures: WorkspaceSignatures,
): void {
  const { id, signature, provenance } = call;
  if (signature !== undefined)
    signatures.keep(id, { signature, ...(provenance !== undefined && { provenance }) });
}

/** The conversation with the kept signatures on those calls that came back without theirs. */
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
