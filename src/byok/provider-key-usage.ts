import type { Kysely } from "kysely";
import { RollingSpend } from "../billing/ledger/account-book.ts";
import { hourMs, type Clock } from "../platform/kernel/clock.ts";
import type { AddStatement, CommitUnit } from "../platform/storage/commit-queue.ts";
import { quotaWindowHours, type ProviderKey } from "./provider-keys.ts";
import type { SharedChannel } from "../platform/shared-state/shared-channel.ts";

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
interface UsedOfKey {
  keyId: string;
  atMs: number;
  totalNano: bigint;
  poolNano: bigint;
}

/** What requests under way at one gateway may still use of a key. */
interface HeldOfKey {
  totalNano: bigint;
  poolNano: bigint;
}

/** Called with what other gateways have to know; absent where there are none. */
interface UsageNews {
  used(used: UsedOfKey): void;
  /** Of keys that something bounds alone. */
  held(keyId: string, held: HeldOfKey): void;
}

/** What other gateways hold of a key. */
interface HeldElsewhere {
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

const [usedChannel, heldChannel] = ["key-used", "key-held"];

/** What a gateway says that it holds is believed for this long; it says so again meanwhile. */
export const heldMs = 60_000;

interface Statement extends HeldOfKey {
  untilMs: number;
}

/** What it is built from. */
export interface SharedKeyUsageOptions {
  usage: ProviderKeyUsage;
  channel: Pick<SharedChannel, "on" | "say" | "onListening">;
  /** Tells gateways apart. */
  nodeId: string;
  clock: Clock;
  /** Puts back what was used as the database has it, once what is on its way there has come. */
  reload(usage: ProviderKeyUsage): Promise<void>;
  /** Called when that could not be read; it is counted on without it. */
  onError(error: unknown): void;
}

/**
 * What each of several gateways uses and holds of callers' own provider keys, said to the others as
 * it happens. A quota is exceeded by what they admit before they hear of each other, which takes
 * some milliseconds; a gateway that missed it reads the database.
 */
export class SharedKeyUsage implements UsageNews, HeldElsewhere {
  private readonly options: SharedKeyUsageOptions;
  /** By key and gateway. */
  private readonly statements = new Map<string, Map<string, Statement>>();
  /** What was used here and elsewhere while the database is read; undefined while it is not. */
  private meanwhile: UsedOfKey[] | undefined;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: SharedKeyUsageOptions) {
    this.options = options;
  }

  /** Says and hears from now on. */
  start(): void {
    const { usage, channel } = this.options;
    usage.share(this, this);
    channel.on(usedChannel, (message) => this.hearUsed(message));
    channel.on(heldChannel, (message) => this.hearHeld(message));
    channel.onListening(() => void this.readAgain());
    this.timer = setInterval(() => this.sayHeld(), heldMs / 3);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  used(used: UsedOfKey): void {
    this.meanwhile?.push(used);
    this.options.channel.say(
      usedChannel,
      [used.keyId, used.atMs, used.totalNano, used.poolNano].join(" "),
    );
  }

  held(keyId: string, { totalNano, poolNano }: HeldOfKey): void {
    this.options.channel.say(
      heldChannel,
      [this.options.nodeId, keyId, totalNano, poolNano].join(" "),
    );
  }

  heldOf(keyId: string): HeldOfKey {
    const sum = { totalNano: 0n, poolNano: 0n };
    const nowMs = this.options.clock.monotonicMs();
    for (const { totalNano, poolNano, untilMs } of this.statements.get(keyId)?.values() ?? []) {
      if (untilMs <= nowMs) continue;
      sum.totalNano += totalNano;
      sum.poolNano += poolNano;
    }
    return sum;
  }

  /** Says again what is held, so that it is believed on. */
  sayHeld(): void {
    for (const [keyId, held] of this.options.usage.heldHere()) this.held(keyId, held);
  }

  /** What was said before it was listened is in the database, or on its way there. */
  async readAgain(): Promise<void> {
    if (this.meanwhile !== undefined) return;
    this.meanwhile = [];
    try {
      await this.options.reload(this.options.usage);
      // What came to stand while it was read may be counted twice: too much rather than too little.
      for (const used of this.meanwhile) this.options.usage.heard(used);
    } catch (error) {
      this.options.onError(error);
    } finally {
      this.meanwhile = undefined;
    }
  }

  private hearUsed(message: string): void {
    const [keyId = "", atMs, totalNano = "0", poolNano = "0"] = message.split(" ");
    const used = {
      keyId,
      atMs: Number(atMs),
      totalNano: BigInt(totalNano),
      poolNano: BigInt(poolNano),
    };
    this.meanwhile?.push(used);
    this.options.usage.heard(used);
  }

  private hearHeld(message: string): void {
    const [nodeId = "", keyId = "", totalNano = "0", poolNano = "0"] = message.split(" ");
    const ofKey = this.statements.get(keyId) ?? new Map<string, Statement>();
    const statement = {
      totalNano: BigInt(totalNano),
      poolNano: BigInt(poolNano),
      untilMs: this.options.clock.monotonicMs() + heldMs,
    };
    if (statement.totalNano === 0n) ofKey.delete(nodeId);
    else ofKey.set(nodeId, statement);
    if (ofKey.size === 0) this.statements.delete(keyId);
    else this.statements.set(keyId, ofKey);
  }
}
