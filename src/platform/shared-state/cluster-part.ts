import { randomBase62 } from "../kernel/ids.ts";
import type { ClusterNode } from "./cluster-node.ts";
import { slotOf } from "./cluster-slots.ts";
import { SharedStateAwayError } from "./shared-state-error.ts";
import {
  type ScriptCall,
  type SharedPart,
  type SharedScript,
  sharedPrefix,
} from "./shared-state.ts";

/**
 * Begins or joins the run of a part at the server that has its slot. The run that is kept there may
 * be another server's: that one was replaced, or the slot moved here. Keys: the run and the name
 * that nothing is kept under. Values: the `run_id` of the server, and a new run of it.
 */
const enterScript: SharedScript = {
  name: "switchyardEnterPart",
  lua: `
local run = redis.call('GET', KEYS[1])
if not run or string.sub(run, 1, #ARGV[1]) ~= ARGV[1] then run = ARGV[2] end
-- Written in any case: where no writes are taken, nobody enters.
redis.call('SET', KEYS[1], run)
return run`,
};

/**
 * Stands before every script: its last key is the run of the part, its last value the run that it
 * is meant for. The key before is one that nothing is kept under: while a slot moves, the server
 * that loses it refuses a script one of whose keys it lacks, so that none meets half of its names.
 */
const guard = `
if redis.call('GET', KEYS[#KEYS]) ~= ARGV[#ARGV] then return redis.error_reply('ANOTHERRUN of the part began') end
KEYS[#KEYS], ARGV[#ARGV] = nil, nil
KEYS[#KEYS] = nil
`;

/**
 * A part of what gateways share, whose names are in one slot of a cluster. It is away until it was
 * entered at the server that has the slot, and from the first refusal on until it is entered again.
 */
export class ClusterPart implements SharedPart {
  readonly prefix: string;
  readonly slot: number;
  private readonly onLost: () => void;
  /** The names of its run, and under which nothing is kept. */
  private readonly ownKeys: readonly [string, string];
  /** The same as scripts find them behind their own keys. */
  private readonly guardKeys: readonly [string, string];
  private readonly listeners = new Set<(runId: string) => void>();
  private readonly guarded = new WeakMap<SharedScript, SharedScript>();
  private node: ClusterNode | undefined;
  private currentRun: string | undefined;
  private lastFailure: unknown;

  /** `onLost` is called when the part has to be entered again. */
  constructor(tag: string, onLost: () => void) {
    this.prefix = `${sharedPrefix}{${tag}}:`;
    this.slot = slotOf(tag);
    const [run, nothing] = [`${this.prefix}run`, `${this.prefix}nothing`];
    this.ownKeys = [run, nothing];
    this.guardKeys = [nothing, run];
    this.onLost = onLost;
  }

  get runId(): string | undefined {
    return this.currentRun;
  }

  /** Why it could not be used the last time. */
  get failure(): unknown {
    return this.lastFailure;
  }

  /** Whether it is entered at a server. */
  isAt(node: ClusterNode): boolean {
    return this.node === node;
  }

  onRun(listener: (runId: string) => void): () => void {
    this.listeners.add(listener);
    if (this.currentRun !== undefined) listener(this.currentRun);
    return () => void this.listeners.delete(listener);
  }

  /** Enters it at the server that has its slot; it stays away where that one refuses. */
  async enter(node: ClusterNode): Promise<void> {
    const { runId } = node;
    if (runId === undefined) return this.lose(node.failure);
    try {
      const values = [`${runId}.`, `${runId}.${randomBase62(8)}`];
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

  /** It is away until it is entered again. */
  lose(failure: unknown): void {
    this.lastFailure = failure;
    this.node = undefined;
    this.currentRun = undefined;
  }

  run(script: SharedScript, { keys, values }: ScriptCall): Promise<unknown> {
    return this.ask((node, run) =>
      node.run(this.guardedOf(script), {
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

  async setIfAbsent(key: string, text: string): Promise<boolean> {
    const answer = await this.ask((node) =>
      node.ask((client) => client.set(this.prefix + key, text, "NX")),
    );
    return answer === "OK";
  }

  /** Lets go of it. */
  close(): void {
    this.listeners.clear();
    this.lose(undefined);
  }

  private guardedOf(script: SharedScript): SharedScript {
    let guarded = this.guarded.get(script);
    if (guarded === undefined) {
      guarded = { name: script.name, lua: guard + script.lua };
      this.guarded.set(script, guarded);
    }
    return guarded;
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
