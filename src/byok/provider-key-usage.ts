import type { Kysely } from "kysely";
import { RollingSpend } from "../billing/ledger/account-book.ts";
import { hourMs, type Clock } from "../platform/kernel/clock.ts";
import type { AddStatement, CommitUnit } from "../platform/storage/commit-queue.ts";
import { type ProviderKey, quotaWindowHours } from "./provider-keys.ts";

/** Whose request goes through a key: its owner's, or that of a workspace that shares it. */
type KeySourceOfRequest = "own_byok" | "pool";

/** A key in the hand of one request. */
export interface KeyUse {
  key: ProviderKey;
  source: KeySourceOfRequest;
}

/** List prices of what was asked through each key, by hour: the windows of quotas. */
export const providerKeyAdd: AddStatement = {
  name: "provider-key-hour",
  table: "provider_key_hours",
  keyColumns: ["key_id", "hour"],
  sumColumns: ["spend_nano", "requests", "pool_nano", "pool_requests"],
};

/** What went through one key, and what requests under way may still use. */
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

/** What was used of a key at a moment, and how much of that by others than its owner. */
export interface UsedOfKey {
  keyId: string;
  atMs: number;
  totalNano: bigint;
  poolNano: bigint;
}

/** What requests under way at one gateway may still use of a key. */
export interface HeldOfKey {
  totalNano: bigint;
  poolNano: bigint;
}

/** Called with what other gateways have to know; absent where there are none. */
export interface UsageNews {
  used(used: UsedOfKey): void;
  /** Of keys that something bounds alone. */
  held(keyId: string, held: HeldOfKey): void;
}

/** What other gateways hold of a key. */
export interface HeldElsewhere {
  heldOf(keyId: string): HeldOfKey;
}

const nothingElsewhere: HeldElsewhere = { heldOf: () => ({ totalNano: 0n, poolNano: 0n }) };

/**
 * What was used of each key, in list prices, with the worst case of requests under way: of many
 * requests against a quota for one, one goes through. Everything that goes through a key counts
 * against its quota, what others use of a donated one against its daily limit, too.
 */
export class ProviderKeyUsage {
  private readonly clock: Clock;
  private readonly accounts = new Map<string, KeyAccount>();
  private readonly leases = new Map<string, Lease>();
  private news: UsageNews | undefined;
  private elsewhere = nothingElsewhere;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Tells other gateways from now on, and minds what they hold. */
  share(news: UsageNews, elsewhere: HeldElsewhere): void {
    this.news = news;
    this.elsewhere = elsewhere;
  }

  /** Counts what another gateway used. */
  heard({ keyId, ...used }: UsedOfKey): void {
    this.count(keyId, used);
  }

  /** Forgets what was used, to be put back as the database has it; what is held stays held. */
  forgetUsed(): void {
    for (const account of this.accounts.values()) {
      account.total = new RollingSpend();
      delete account.pool;
    }
  }

  /** What requests under way here may still use, of each key that something bounds. */
  heldHere(): [keyId: string, held: HeldOfKey][] {
    const bounded = new Set([...this.leases.values()].filter(isBounded).map(({ key }) => key.id));
    return [...bounded].map((keyId) => [keyId, this.heldOf(keyId)]);
  }

  /** Puts back what was used in an hour before. */
  restore(keyId: string, used: { hour: number; spendNano: bigint; poolNano: bigint }): void {
    this.count(keyId, {
      atMs: used.hour * hourMs,
      totalNano: used.spendNano,
      poolNano: used.poolNano,
    });
  }

  /** Nano-USD used within the window of a key's quota; of a key without one, ever. */
  usedOf({ id, quota }: ProviderKey): bigint {
    const total = this.accounts.get(id)?.total;
    const hours = quotaWindowHours(quota?.reset ?? null);
    if (total === undefined) return 0n;
    return hours === undefined ? total.total : total.spentWithin(hours, this.clock.nowMs());
  }

  /** Nano-USD that others used within the last 24 hours. */
  poolUsedOf({ id }: ProviderKey): bigint {
    return this.accounts.get(id)?.pool?.spentWithin(poolWindowHours, this.clock.nowMs()) ?? 0n;
  }

  /** What a request may still use of a key; undefined where nothing bounds it. */
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
   * Takes a key for a request, with its worst case at list price, clamped to what is left; false
   * when nothing is.
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

  /** Gives back what a request has taken and not used. */
  release(requestId: string): void {
    const lease = this.leases.get(requestId);
    if (lease === undefined) return;
    this.leases.delete(requestId);
    this.hold(lease, -lease.heldNano);
  }

  /**
   * Counts what a request used; the counters are to be committed with its record, and `undo` takes
   * back what was refused.
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
      this.heard(used);
      this.news?.used(used);
    };
    // Before the hold is given back, so that no reader finds neither of them.
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
    if (this.news !== undefined && isBounded(use))
      this.news.held(use.key.id, this.heldOf(use.key.id));
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

/** Whether anything bounds what a key may be used for. */
const isBounded = ({ key: { quota, donation } }: KeyUse): boolean =>
  quota !== null || (donation?.dailyLimitNano ?? null) !== null;

/** Rows of what went through each key, by hour. */
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
 * Fills the windows of quotas as the database has them, and forgets what stood in them; they are
 * written through the commit queue only.
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
