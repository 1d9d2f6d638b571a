import type { Clock } from "../../../platform/kernel/clock.ts";
import { timeOrderedHex } from "../../../platform/kernel/ids.ts";
import { voidScript } from "./ledger-scripts.ts";
import type { SharedAccounts } from "./shared-accounts.ts";

/** A hold on the shared server that no request uses yet. */
export interface AdvanceHold {
  id: string;
  /** As the shared server has it. */
  entry: string;
  heldNano: bigint;
  /** The run of the server, and the history of the database, that it was taken in (`era`). */
  era: string;
  takenAtMs: number;
}

/** Holds that are wanted, each with its id and of the same amount. */
export interface WantedHolds {
  ids: readonly string[];
  eachNano: bigint;
}

/** Unused holds of requests that count alike: the same key, limits, budgets and day. */
interface Pool {
  workspaceId: string;
  /** The newest last. They are used from there, so that surplus ones grow old. */
  unused: AdvanceHold[];
  /** How many are taken at once. */
  size: number;
  askedAtMs: number;
  isAsking: boolean;
}

/** How long a hold may stay unused before it is freed. */
const lifetimeMs = 3_000;
/** A pool that is used up sooner than this is made larger. */
const fastMs = 1_000;
const sizeMin = 2;
const sizeMax = 32;

/** Held above a request's own worst case, so that the next request, a little longer, fits as well. */
const roomFor = (ceilingNano: bigint): bigint => ceilingNano + ceilingNano / 4n;
/** A hold of more than this many times a request's worst case is kept for a larger request. */
const largestTimes = 4n;

/**
 * The share of balances and limits that this gateway holds ahead of its requests. A request that
 * finds a hold here asks the shared server nothing. How many are held follows from how often they
 * are asked for, and the server gives them only out of a small part of what is free
 * (`reserveScript`), so that near a limit each request asks for itself.
 */
export class AdvanceHolds {
  private readonly accounts: Pick<SharedAccounts, "run" | "era">;
  private readonly clock: Clock;
  private readonly pools = new Map<string, Pool>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor({
    accounts,
    clock,
  }: {
    accounts: Pick<SharedAccounts, "run" | "era">;
    clock: Clock;
  }) {
    this.accounts = accounts;
    this.clock = clock;
  }

  /** Whether there is an unused hold that covers an amount. */
  has(name: string, ceilingNano: bigint): boolean {
    const hold = this.pools.get(name)?.unused.at(-1);
    if (hold === undefined || hold.heldNano < ceilingNano) return false;
    if (hold.heldNano > ceilingNano * largestTimes) return false;
    return hold.era === this.accounts.era && !this.isOld(hold);
  }

  /** Takes the hold that `has` found. */
  take(name: string): AdvanceHold {
    return this.pools.get(name)!.unused.pop()!;
  }

  /** Whether a pool is about to run out, and nothing is on its way to it. */
  runsOut(name: string): boolean {
    const pool = this.pools.get(name);
    return pool !== undefined && !pool.isAsking && pool.unused.length <= pool.size / 4;
  }

  /**
   * Says which holds to ask the server for beside that of a request, or in its place; none for
   * requests that come seldom. `put` or `failed` has to follow where there are any.
   */
  wanted(
    name: string,
    { workspaceId, ceilingNano }: { workspaceId: string; ceilingNano: bigint },
  ): WantedHolds {
    const nowMs = this.clock.monotonicMs();
    const pool = this.poolOf(name, workspaceId);
    if (pool.isAsking) return { ids: [], eachNano: 0n };
    const sinceMs = nowMs - pool.askedAtMs;
    if (sinceMs < fastMs) pool.size = Math.min(Math.max(sizeMin, 2 * pool.size), sizeMax);
    else if (sinceMs > lifetimeMs) pool.size = 0;
    pool.askedAtMs = nowMs;
    pool.isAsking = pool.size > 0;
    const wallMs = this.clock.nowMs();
    const ids = Array.from({ length: pool.size }, () => `gen_${timeOrderedHex(wallMs)}`);
    return { ids, eachNano: roomFor(ceilingNano) };
  }

  /** Adds holds that the server gave, fewer than were wanted where little is free. */
  put(
    name: string,
    {
      workspaceId,
      holds,
    }: { workspaceId: string; holds: readonly Omit<AdvanceHold, "takenAtMs">[] },
  ): void {
    const pool = this.poolOf(name, workspaceId);
    const takenAtMs = this.clock.monotonicMs();
    pool.isAsking = false;
    pool.unused.push(...holds.map((hold) => ({ ...hold, takenAtMs })));
  }

  /** The server gave no answer. */
  failed(name: string): void {
    const pool = this.pools.get(name);
    if (pool !== undefined) Object.assign(pool, { isAsking: false, size: 0 });
  }

  /**
   * Frees the unused holds of a workspace; resolves to whether there were any, once the server has
   * freed them.
   */
  async release(workspaceId: string): Promise<boolean> {
    const ids: string[] = [];
    for (const pool of this.pools.values()) {
      if (pool.workspaceId !== workspaceId) continue;
      pool.size = 0;
      ids.push(...pool.unused.splice(0).map(({ id }) => id));
    }
    if (ids.length === 0) return false;
    await this.accounts.run(voidScript, workspaceId, ids);
    return true;
  }

  /** Frees all of them. What does not reach the server lapses there. */
  async releaseAll(): Promise<void> {
    const workspaceIds = new Set([...this.pools.values()].map(({ workspaceId }) => workspaceId));
    const releasing = [...workspaceIds].map((workspaceId) => this.release(workspaceId));
    this.pools.clear();
    this.stopTimer();
    await Promise.all(releasing);
  }

  /** Frees those that were not used in time. */
  private freeOld(): void {
    for (const [name, pool] of this.pools) {
      const firstYoung = pool.unused.findIndex((hold) => !this.isOld(hold));
      const old = pool.unused.splice(0, firstYoung === -1 ? pool.unused.length : firstYoung);
      if (old.length > 0) {
        pool.size >>= 1;
        const ids = old.map(({ id }) => id);
        this.accounts.run(voidScript, pool.workspaceId, ids).catch(() => undefined);
      }
      const isIdle = this.clock.monotonicMs() - pool.askedAtMs > lifetimeMs && !pool.isAsking;
      if (isIdle && pool.unused.length === 0) this.pools.delete(name);
    }
    if (this.pools.size === 0) this.stopTimer();
  }

  private stopTimer(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private isOld({ takenAtMs }: AdvanceHold): boolean {
    return this.clock.monotonicMs() - takenAtMs > lifetimeMs;
  }

  private poolOf(name: string, workspaceId: string): Pool {
    let pool = this.pools.get(name);
    if (pool === undefined) {
      pool = { workspaceId, unused: [], size: 0, askedAtMs: -Infinity, isAsking: false };
      this.pools.set(name, pool);
      this.timer ??= setInterval(() => this.freeOld(), fastMs).unref();
    }
    return pool;
  }
}
