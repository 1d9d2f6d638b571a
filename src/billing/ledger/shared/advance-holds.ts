import type { Clock } from "../../../platform/kernel/clock.ts";
import { timeOrderedHex } from "../../../platform/kernel/ids.ts";
import { voidScript } from "./ledger-scripts.ts";
import type { SharedAccounts } from "./shared-accounts.ts";

/** A hold on the shared server that no request uses yet. */
export interface AdvanceHold {
  id: string;
  /** The entry of the hold on the shared server. */
  entry: string;
  heldNano: bigint;
  /**
   * The run of the shared server and the history of the database in which it was taken
   * (`SharedAccounts.eraOf`).
   */
  era: string;
  takenAtMs: number;
}

/** The holds to request: their ids, and the amount of each. */
export interface WantedHolds {
  ids: readonly string[];
  eachNano: bigint;
}

/** The unused holds for requests of the same key, limits, budgets and day. */
interface Pool {
  workspaceId: string;
  /** The newest hold is last and is used first, so that surplus holds grow old. */
  unused: AdvanceHold[];
  /** The number of holds that are requested at once. */
  size: number;
  askedAtMs: number;
  isAsking: boolean;
}

/** Milliseconds after which an unused hold is freed. */
const lifetimeMs = 3_000;
/** A pool that is used up within this many milliseconds grows. */
const fastMs = 1_000;
const sizeMin = 2;
const sizeMax = 32;

/**
 * Returns the amount of a hold in advance: a quarter more than a request's worst case, so that the
 * next request fits even if it is a little longer.
 */
const roomFor = (ceilingNano: bigint): bigint => ceilingNano + ceilingNano / 4n;
/** A hold of more than this multiple of a request's worst case is kept for a larger request. */
const largestTimes = 4n;

/**
 * The parts of balances and limits that this gateway holds before requests come. A request that
 * finds such a hold does not ask the shared server. The number of holds follows from how often they
 * are used. The server grants them only out of a small part of the free amount (`reserveScript`),
 * so that near a limit each request asks for its own hold.
 */
export class AdvanceHolds {
  private readonly accounts: Pick<SharedAccounts, "run" | "eraOf">;
  private readonly clock: Clock;
  private readonly pools = new Map<string, Pool>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor({
    accounts,
    clock,
  }: {
    accounts: Pick<SharedAccounts, "run" | "eraOf">;
    clock: Clock;
  }) {
    this.accounts = accounts;
    this.clock = clock;
  }

  /** Returns whether there is an unused hold that covers an amount. */
  has(name: string, ceilingNano: bigint): boolean {
    const pool = this.pools.get(name);
    const hold = pool?.unused.at(-1);
    if (pool === undefined || hold === undefined || hold.heldNano < ceilingNano) return false;
    if (hold.heldNano > ceilingNano * largestTimes) return false;
    return hold.era === this.accounts.eraOf(pool.workspaceId) && !this.isOld(hold);
  }

  /** Takes the hold that `has` found. */
  take(name: string): AdvanceHold {
    return this.pools.get(name)!.unused.pop()!;
  }

  /** Returns whether a pool is almost used up and no holds are being requested for it. */
  runsOut(name: string): boolean {
    const pool = this.pools.get(name);
    return pool !== undefined && !pool.isAsking && pool.unused.length <= pool.size / 4;
  }

  /**
   * Returns the holds to request from the server together with a request's own or instead of it;
   * none where requests are rare. Where there are any, the caller has to call `put` or `failed`
   * afterwards.
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

  /**
   * Adds the holds that the server granted, which are fewer than requested where little is free.
   */
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

  /** Records that the server granted no holds. */
  failed(name: string): void {
    const pool = this.pools.get(name);
    if (pool !== undefined) Object.assign(pool, { isAsking: false, size: 0 });
  }

  /**
   * Frees the unused holds of a workspace. Resolves once the server has freed them, to whether
   * there were any.
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

  /** Frees all unused holds. A hold that the server does not free now expires there. */
  async releaseAll(): Promise<void> {
    const workspaceIds = new Set([...this.pools.values()].map(({ workspaceId }) => workspaceId));
    const releasing = [...workspaceIds].map((workspaceId) => this.release(workspaceId));
    this.pools.clear();
    this.stopTimer();
    await Promise.all(releasing);
  }

  /** Frees the holds that were not used in time. */
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
