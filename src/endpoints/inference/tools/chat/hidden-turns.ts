import type { JsonFields } from "../../../../platform/kernel/json/json-members.ts";

/** The most turns that are remembered, and the most characters of one. */
const turnsMax = 2_000;
const charactersMax = 262_144;

/**
 * Messages that stand before a client's own tool call and that the client was not shown: calls of
 * the gateway's tools, and their results. They are kept in memory, the newest ones, until the client
 * answers its call. Without them the model calls the tools again.
 */
export class HiddenTurns {
  private readonly turns = new Map<string, readonly JsonFields[]>();

  /** Remembers the messages before the calls of a workspace's client. */
  remember(
    workspaceId: string,
    { callIds, messages }: { callIds: readonly string[]; messages: readonly JsonFields[] },
  ): void {
    if (messages.length === 0 || JSON.stringify(messages).length > charactersMax) return;
    for (const id of callIds) this.turns.set(keyOf(workspaceId, id), messages);
    for (const key of this.turns.keys()) {
      if (this.turns.size <= turnsMax) return;
      this.turns.delete(key);
    }
  }

  /** Returns the messages before a call; undefined where none are known. */
  before(workspaceId: string, callId: string): readonly JsonFields[] | undefined {
    return this.turns.get(keyOf(workspaceId, callId));
  }
}

const keyOf = (workspaceId: string, callId: string): string => `${workspaceId} ${callId}`;
