import type { Kysely } from "kysely";
import { RollingSpend } from "../billing/ledger/rolling-spend.ts";
import { hourMs, type Clock } from "../platform/kernel/clock.ts";
import type { AddStatement, CommitUnit } from "../platform/storage/commit-queue.ts";
import type { SharedChannel } from "../platform/shared-state/shared-channel.ts";
import { type ProviderKey, quotaWindowHours } from "./provider-key.ts";

/** Whose request uses a key: its owner's, or that of a workspace that it is shared with. */
type KeySourceOfRequest = "own_byok" | "pool";

/** A key that one request uses. */
export interface KeyUse {
  key: ProviderKey;
  source: KeySourceOfRequest;
}

/**
 * The list prices of what was sent through each key, by hour, from which the windows of quotas are
 * computed.
 */
export const providerKeyAdd: AddStatement = {
  name: "provider-key-hour",
  table: "provider_key_hours",
  keyColumns: ["key_id", "hour"],
  sumColumns: ["spend_nano", "requests", "pool_nano", "pool_requests"],
};

/** The spending of one key, and the most that requests in progress may add. */
interface KeyAccount {
  total: RollingSpend;
  /** Absent where only the owner ever used it. */
  pool?: RollingSpend;
  totalHeldNano: bigint;
  poolHeldNano: bigint;
}

interface Lease extends KeyUse {
  heldNano: bigint;
}

const poolWindowHours = 24;

/** The spending of a key at a moment, and the part of it by workspaces other than its owner. */
export interface UsedOfKey {
  keyId: string;
  atMs: number;
  totalNano: bigint;
  poolNano: bigint;
}

/** The most that requests in progress at one gateway may spend of a key. */
export interface HeldOfKey {
  totalNano: bigint;
  poolNano: bigint;
}

/** Receives what other gateways have to know; absent where there are none. */
export interface UsageListener {
  used(used: UsedOfKey): void;
  /** Called only for keys that a quota or a daily limit bounds. */
  held(keyId: string, held: HeldOfKey): void;
}

/** Returns what other gateways hold of a key. */
export interface HeldElsewhere {
  heldOf(keyId: string): HeldOfKey;
}

const nothingElsewhere: HeldElsewhere = { heldOf: () => ({ totalNano: 0n, poolNano: 0n }) };

/**
 * Counts what was used of each key, in list prices, and the worst case of requests in progress, so
 * that a quota for one request admits only one of many concurrent ones. All usage of a key counts
 * towards its quota; other workspaces' usage of a donated key also counts towards its daily limit.
 */
export class ProviderKeyUsage {
  private readonly accounts = new Map<string, KeyAccount>();
  private readonly leases = new Map<string, Lease>();
  private listener: UsageListener | undefined;
  private elsewhere = nothingElsewhere;

  constructor(private readonly clock: Clock) {}

  /** Starts to report to other gateways, and to respect what they hold. */
  share(listener: UsageListener, elsewhere: HeldElsewhere): void {
    this.listener = listener;
    this.elsewhere = elsewhere;
  }

  /** Counts what another gateway used. */
  countUsed({ keyId, ...used }: UsedOfKey): void {
    this.count(keyId, used);
  }

  /** Clears what was used, before it is restored from the database. What is held stays held. */
  forgetUsed(): void {
    for (const account of this.accounts.values()) {
      account.total = new RollingSpend();
      delete account.pool;
    }
  }

  /** Returns what requests in progress here may still use of each bounded key. */
  heldHere(): [keyId: string, held: HeldOfKey][] {
    const bounded = new Set([...this.leases.values()].filter(isBounded).map(({ key }) => key.id));
    return [...bounded].map((keyId) => [keyId, this.heldOf(keyId)]);
  }

  /** Restores what was used in an earlier hour. */
  restore(keyId: string, used: { hour: number; spendNano: bigint; poolNano: bigint }): void {
    this.count(keyId, {
      atMs: used.hour * hourMs,
      totalNano: used.spendNano,
      poolNano: used.poolNano,
    });
  }

  /**
   * Returns the nano-USD used within the window of a key's quota; of a key without a quota, ever.
   */
  usedOf({ id, quota }: ProviderKey): bigint {
    const total = this.accounts.get(id)?.total;
    const hours = quotaWindowHours(quota?.reset ?? null);
    if (total === undefined) return 0n;
    return hours === undefined ? total.total : total.spentWithin(hours, this.clock.nowMs());
  }

  /** Returns the nano-USD that other workspaces used within the last 24 hours. */
  poolUsedOf({ id }: ProviderKey): bigint {
    return this.accounts.get(id)?.pool?.spentWithin(poolWindowHours, this.clock.nowMs()) ?? 0n;
  }

  /** Returns what a request may still use of a key; undefined where nothing bounds it. */
  leftFor({ key, source }: KeyUse): bigint | undefined {
    const [here, there] = [this.heldOf(key.id), this.elsewhere.heldOf(key.id)];
    const left =
      key.quota === null
        ? undefined
        : key.quota.limitNano - this.usedOf(key) - here.totalNano - there.totalNano;
    const daily = source === "pool" ? (key.donation?.dailyLimitNano ?? undefined) : undefined;
    if (daily === undefined) return left;
    const leftToday = daily - this.poolUsedOf(key) - here.poolNano - there.poolNano;
    return left === undefined || leftToday < left ? leftToday : left;
  }

  /**
   * Takes a key for a request, holding its worst case at list price, or what is left if that is
   * less. Returns false when nothing is left.
   */
  take(requestId: string, use: KeyUse, ceilingNano: bigint): boolean {
    this.release(requestId);
    const left = this.leftFor(use);
    if (left !== undefined && left <= 0n) return false;
    const lease = {
      ...use,
      heldNano: left !== undefined && left < ceilingNano ? left : ceilingNano,
    };
    this.leases.set(requestId, lease);
    this.hold(lease, lease.heldNano);
    return true;
  }

  /** Releases what a request has held and not used. */
  release(requestId: string): void {
    const lease = this.leases.get(requestId);
    if (lease === undefined) return;
    this.leases.delete(requestId);
    this.hold(lease, -lease.heldNano);
  }

  /**
   * Counts what a request used. The returned counters are to be committed with its record; `undo`
   * reverts them where the commit was refused.
   */
  settle(
    requestId: string,
    { key, source }: KeyUse,
    listedNano: bigint,
  ): { adds: CommitUnit["adds"]; undo(): void } {
    const nowMs = this.clock.nowMs();
    const isPool = source === "pool";
    const count = (totalNano: bigint): void => {
      const used = { keyId: key.id, atMs: nowMs, totalNano, poolNano: isPool ? totalNano : 0n };
      this.countUsed(used);
      this.listener?.used(used);
    };
    // Counted before the hold is released, so that no reader misses both.
    count(listedNano);
    this.release(requestId);
    const spend = Number(listedNano);
    const sums = [spend, 1, isPool ? spend : 0, isPool ? 1 : 0];
    return {
      adds: [{ statement: providerKeyAdd, key: [key.id, Math.floor(nowMs / hourMs)], sums }],
      undo: () => count(-listedNano),
    };
  }

  private count(
    keyId: string,
    { atMs, totalNano, poolNano }: { atMs: number; totalNano: bigint; poolNano: bigint },
  ): void {
    const account = this.account(keyId);
    account.total.add(atMs, totalNano);
    if (poolNano !== 0n) (account.pool ??= new RollingSpend()).add(atMs, poolNano);
  }

  private hold(use: KeyUse, amountNano: bigint): void {
    const account = this.account(use.key.id);
    account.totalHeldNano += amountNano;
    if (use.source === "pool") account.poolHeldNano += amountNano;
    if (this.listener !== undefined && isBounded(use))
      this.listener.held(use.key.id, this.heldOf(use.key.id));
  }

  private heldOf(keyId: string): HeldOfKey {
    const { totalHeldNano = 0n, poolHeldNano = 0n } = this.accounts.get(keyId) ?? {};
    return { totalNano: totalHeldNano, poolNano: poolHeldNano };
  }

  private account(keyId: string): KeyAccount {
    let account = this.accounts.get(keyId);
    if (account === undefined) {
      account = { total: new RollingSpend(), totalHeldNano: 0n, poolHeldNano: 0n };
      this.accounts.set(keyId, account);
    }
    return account;
  }
}

/** Returns whether a quota or a daily limit bounds the key's use. */
const isBounded = ({ key: { quota, donation } }: KeyUse): boolean =>
  quota !== null || (donation?.dailyLimitNano ?? null) !== null;

/** Rows of the usage of each key, by hour. */
export interface ProviderKeyUsageTables {
  provider_key_hours: {
    key_id: string;
    hour: number;
    spend_nano: number | bigint;
    requests: number;
    pool_nano: number | bigint;
    pool_requests: number;
  };
}

/**
 * Loads the windows of quotas from the database, replacing those in memory. They are written
 * through the commit queue only.
 */
export async function loadProviderKeyUsage(
  database: Kysely<ProviderKeyUsageTables>,
  usage: ProviderKeyUsage,
): Promise<void> {
  const rows = await database
    .selectFrom("provider_key_hours")
    .select(["key_id", "hour", "spend_nano", "pool_nano"])
    .orderBy("hour")
    .execute();
  usage.forgetUsed();
  for (const row of rows) {
    usage.restore(row.key_id, {
      hour: row.hour,
      spendNano: BigInt(row.spend_nano),
      poolNano: BigInt(row.pool_nano),
    });
  }
}

/**
 * Milliseconds for which a gateway's report of its holds is valid. It repeats the report within
 * that time.
 */
export const heldMs = 60_000;

/** Options of the shared usage. */
export interface SharedKeyUsageOptions {
  usage: ProviderKeyUsage;
  channel: Pick<SharedChannel, "on" | "publish" | "onListening">;
  /** The id that distinguishes gateways. */
  nodeId: string;
  clock: Clock;
  /** Restores what was used from the database, once the writes in progress have arrived there. */
  reload(usage: ProviderKeyUsage): Promise<void>;
  /** Called when the usage could not be read; counting continues without it. */
  onError(error: unknown): void;
}
