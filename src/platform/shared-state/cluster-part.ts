import type { ClusterNode } from "./cluster-node.ts";
import { slotOf } from "./cluster-slots.ts";
import { enterScript, RunGuard, runValues } from "./run-guard.ts";
import { SharedStateAwayError } from "./shared-state-error.ts";
import { type ScriptCall, type SharedPart, sharedPrefix } from "./shared-state.ts";
import type { SharedScript } from "./redis-client.ts";

/**
 * The guard of scripts. The key before the run is a name under which nothing is stored: while a slot
 * moves, its old server refuses any script that names a key which it does not have, so no script
 * finds only half of its keys.
 */
const guard = new RunGuard(2);

/**
 * A part of the shared state, all of whose keys are in one slot of a cluster. A part is unavailable
 * until the gateway enters it at the server that owns its slot, and again from the first refusal
 * until the gateway has entered it again.
 */
export class ClusterPart implements SharedPart {
  readonly prefix: string;
  readonly slot: number;
  /** The keys of the part's run and of the name under which nothing is stored. */
  private readonly ownKeys: readonly [string, string];
  /** The same keys in the order in which scripts find them after their own keys. */
  private readonly guardKeys: readonly [string, string];
  private readonly listeners = new Set<(runId: string) => void>();
  private node: ClusterNode | undefined;
  private currentRun: string | undefined;
  private lastFailure: unknown;

  /** Creates a part that is unavailable; `onLost` is called when it has to be entered again. */
  constructor(
    tag: string,
    private readonly onLost: () => void,
  ) {
    this.prefix = `${sharedPrefix}{${tag}}:`;
    this.slot = slotOf(tag);
    const [run, nothing] = [`${this.prefix}run`, `${this.prefix}nothing`];
    this.ownKeys = [run, nothing];
    this.guardKeys = [nothing, run];
  }

  get runId(): string | undefined {
    return this.currentRun;
  }

  /** The most recent reason why the part could not be used. */
  get failure(): unknown {
    return this.lastFailure;
  }

  /** Returns whether the gateway entered the part at this server. */
  isAt(node: ClusterNode): boolean {
    return this.node === node;
  }

  onRun(listener: (runId: string) => void): () => void {
    this.listeners.add(listener);
    if (this.currentRun !== undefined) listener(this.currentRun);
    return () => void this.listeners.delete(listener);
  }

  /**
   * Enters the part at the server that owns its slot. The part stays unavailable where the server
   * refuses.
   */
  async enter(node: ClusterNode): Promise<void> {
    const { runId } = node;
    if (runId === undefined) return this.lose(node.failure);
    try {
      const values = runValues({ runId, replicationId: await node.replicationId() });
      const run = await node.run(enterScript, { keys: this.ownKeys, values });
      if (node.runId !== runId) return;
      this.node = node;
      this.currentRun = String(run);
      this.lastFailure = undefined;
    } catch (error) {
      this.lastFailure = error;
      return;
    }
    for (const listener of this.listeners) listener(this.currentRun);
  }

  /** Makes the part unavailable until it is entered again. */
  lose(failure: unknown): void {
    this.lastFailure = failure;
    this.node = undefined;
    this.currentRun = undefined;
  }

  run(script: SharedScript, { keys, values }: ScriptCall): Promise<unknown> {
    return this.ask((node, run) =>
      node.run(guard.of(script), {
        keys: [...keys.map((key) => this.prefix + key), ...this.guardKeys],
        values: [...values, run],
      }),
    );
  }

  get(key: string): Promise<string | null> {
    return this.ask((node) => node.ask((client) => client.get(this.prefix + key)));
  }

  async set(key: string, text: string, lifetimeMs: number): Promise<void> {
    const lifetime = Math.max(1, Math.round(lifetimeMs));
    await this.ask((node) =>
      node.ask((client) => client.set(this.prefix + key, text, "PX", lifetime)),
    );
  }

  async setIfAbsent(key: string, text: string, lifetimeMs: number): Promise<boolean> {
    const answer = await this.ask((node) =>
      node.ask((client) => client.set(this.prefix + key, text, "PX", lifetimeMs, "NX")),
    );
    return answer === "OK";
  }

  /** Removes all listeners and makes the part unavailable. */
  close(): void {
    this.listeners.clear();
    this.lose(undefined);
  }

  private async ask<Answer>(
    send: (node: ClusterNode, run: string) => Promise<Answer>,
  ): Promise<Answer> {
    const { node, currentRun: run } = this;
    if (node === undefined || run === undefined)
      throw new SharedStateAwayError("a part of what gateways share is away");
    try {
      return await send(node, run);
    } catch (error) {
      if (error instanceof SharedStateAwayError && this.node === node && this.currentRun === run) {
        this.lose(error);
        this.onLost();
      }
      throw error;
    }
  }
}
