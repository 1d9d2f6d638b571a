import { spendingKeyOf } from "../../identity/keys/caller.ts";
import type { CredentialDirectory } from "../../identity/keys/credential-directory.ts";
import { parentRunIdOf, type Run } from "../../identity/keys/run.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { SpendingKey } from "../ledger/hold-rule.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import type { RunStore } from "./run-store.ts";

/** Milliseconds between attempts to release runs whose last requests are under way. */
const retryMs = 500;
/** Milliseconds between searches for runs that have passed their time. */
const expiryMs = 2_000;

interface RunReleasesOptions {
  store: RunStore;
  directory: CredentialDirectory;
  ledger: Pick<LedgerPort, "allocations">;
  commits: Pick<CommitQueue, "flush">;
  clock: Clock;
  /** Returns the limits that hold the limit of a run. */
  ownerKeysOf(run: Run): readonly [SpendingKey, ...SpendingKey[]];
  /** Ends a run that has passed its time. */
  expire(runId: string): Promise<unknown>;
  onError(error: unknown): void;
}

/**
 * Gives the rest of ended runs back to their owners, once every request of theirs is settled.
 * Nothing runs while no run is known.
 */
export class RunReleases {
  /** Ended runs that are not released yet, by id. */
  private readonly ending = new Map<string, Run>();
  private retry: ReturnType<typeof setTimeout> | undefined;
  private expiry: ReturnType<typeof setInterval> | undefined;
  private releasing: Promise<void> = Promise.resolve();
  private isStopped = false;

  constructor(private readonly options: RunReleasesOptions) {}

  /** Starts to look for runs that have passed their time. */
  watch(): void {
    if (this.isStopped) return;
    this.expiry ??= setInterval(() => {
      this.endExpired().catch(this.options.onError);
    }, expiryMs).unref();
  }

  stop(): Promise<void> {
    this.isStopped = true;
    clearInterval(this.expiry);
    clearTimeout(this.retry);
    return this.releasing;
  }

  /**
   * Closes runs that were ended, and releases those whose requests are settled before it resolves.
   */
  async ended(runs: readonly Run[]): Promise<void> {
    for (const run of runs) {
      this.options.directory.putRun(run);
      this.ending.set(run.id, run);
    }
    for (const { workspaceId, id } of runs)
      await this.options.ledger.allocations.close({ workspaceId, keyId: id });
    await this.releaseEnding();
  }

  private releaseEnding(): Promise<void> {
    this.releasing = this.releasing
      .then(() => this.releaseAll())
      .catch(this.options.onError)
      .then(() => {
        if (this.ending.size === 0 || this.isStopped) return;
        clearTimeout(this.retry);
        this.retry = setTimeout(() => void this.releaseEnding(), retryMs).unref();
      });
    return this.releasing;
  }

  private async releaseAll(): Promise<void> {
    const deepestFirst = [...this.ending.values()].sort((one, other) => other.depth - one.depth);
    for (const run of deepestFirst) if (await this.release(run)) this.ending.delete(run.id);
  }

  /** Releases a run; false where a request of it is under way or a run in it is not released. */
  private async release(run: Run): Promise<boolean> {
    const { store, directory, ledger, commits, clock, ownerKeysOf } = this.options;
    const caller = directory.runCaller(run.id);
    const { heldNano } = await ledger.allocations.figures({
      workspaceId: run.workspaceId,
      key: caller === undefined ? { keyId: run.id, keyLimit: null } : spendingKeyOf(caller.key),
    });
    if (heldNano > 0n) return false;
    await commits.flush();
    const released = await store.release(run.id, clock.nowMs());
    if (released === undefined) return (await store.find(run.id))?.releasedAtMs !== null;
    await ledger.allocations.release({
      workspaceId: run.workspaceId,
      keys: ownerKeysOf(run),
      amountNano: run.limitNano,
      spentNano: released.settledNano,
      byokNano: released.settledByokNano,
    });
    if (caller !== undefined) directory.putRun(released);
    const parentId = parentRunIdOf(run);
    const parent = parentId === undefined ? undefined : await store.find(parentId);
    if (parent !== undefined && parent.endedAtMs !== null && parent.releasedAtMs === null)
      this.ending.set(parent.id, parent);
    return true;
  }

  private async endExpired(): Promise<void> {
    const { store, clock, directory, expire } = this.options;
    for (const id of await store.expired(clock.nowMs())) await expire(id);
    directory.forgetRunsBefore(clock.nowMs());
  }
}
