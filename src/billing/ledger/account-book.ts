import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import type { SpentBy } from "../budgets/budget-watch.ts";
import {
  type BlockingBudgets,
  type Budget,
  type BudgetBound,
  counterOf,
  periodAt,
  readCounter,
} from "../budgets/budget.ts";
import type { Month } from "./month.ts";

/** What a workspace can spend, in nano-USD, with what is held for requests in flight. */
export interface WorkspaceAccount {
  monthlyNano: bigint;
  topupNano: bigint;
  heldNano: bigint;
  /** Everything ever charged. */
  usedNano: bigint;
  /** UTC day number (days since the epoch) that `dayNano` belongs to. */
  day: number;
  dayNano: bigint;
  /** The month that `freshNano` belongs to. */
  freshMonth: Month | undefined;
  /** Everything that was granted into the monthly bucket in that month. */
  freshNano: bigint;
}

/** What a key has spent and what is held for its requests in flight. */
export interface KeyAccount {
  spend: RollingSpend;
  /**
   * The list price of what its requests asked through callers' own provider keys; absent where
   * nothing ever was.
   */
  byok?: RollingSpend;
  heldNano: bigint;
}

/**
 * The balances that admission looks at, in memory; the transfers on disk are what they are rebuilt
 * from.
 */
export class AccountBook {
  private readonly workspaces = new Map<string, WorkspaceAccount>();
  private readonly keys = new Map<string, KeyAccount>();

  workspace(id: string): WorkspaceAccount {
    let account = this.workspaces.get(id);
    if (account === undefined) {
      account = {
        monthlyNano: 0n,
        topupNano: 0n,
        heldNano: 0n,
        usedNano: 0n,
        day: 0,
        dayNano: 0n,
        freshMonth: undefined,
        freshNano: 0n,
      };
      this.workspaces.set(id, account);
    }
    return account;
  }

  workspaceIds(): string[] {
    return [...this.workspaces.keys()];
  }

  key(id: string): KeyAccount {
    let account = this.keys.get(id);
    if (account === undefined) {
      account = { spend: new RollingSpend(), heldNano: 0n };
      this.keys.set(id, account);
    }
    return account;
  }

  /** Takes over what another book says of its workspaces and keys. */
  adopt(other: AccountBook): void {
    for (const [id, account] of other.workspaces) this.workspaces.set(id, account);
    for (const [id, account] of other.keys) this.keys.set(id, account);
  }

  /** What a key asked through callers' own provider keys. */
  byokSpend(id: string): RollingSpend {
    return (this.key(id).byok ??= new RollingSpend());
  }
}

/** Nano-USD that count against a key's limit within a window, holds aside. */
export const countedWithin = (
  { spend, byok }: Pick<KeyAccount, "spend" | "byok">,
  { windowHours, countsByok, nowMs }: { windowHours: number; countsByok: boolean; nowMs: number },
): bigint =>
  spend.spentWithin(windowHours, nowMs) +
  (countsByok && byok !== undefined ? byok.spentWithin(windowHours, nowMs) : 0n);

/** Notes what was granted into the monthly bucket, by the month that it ends with. */
export function addFresh(
  account: WorkspaceAccount,
  { month, amountNano }: { month: Month; amountNano: bigint },
): void {
  // A grant that was made before midnight and stands after it has lapsed already.
  if (account.freshMonth !== undefined && month < account.freshMonth) return;
  if (account.freshMonth !== month) account.freshNano = 0n;
  account.freshMonth = month;
  account.freshNano += amountNano;
}

/**
 * What is left of the monthly credits of older months. The oldest are spent first, so as long as
 * any of them is left, everything that this month granted is there as well.
 */
export function lapsedOf(account: WorkspaceAccount, month: Month): bigint {
  const lapsed = account.monthlyNano - (account.freshMonth === month ? account.freshNano : 0n);
  return lapsed > 0n ? lapsed : 0n;
}

/** Everything a workspace owns, holds included. */
export const balanceOf = (account: WorkspaceAccount): bigint =>
  account.monthlyNano + account.topupNano;

/** What no hold has taken yet. */
export const availableOf = (account: WorkspaceAccount): bigint =>
  balanceOf(account) - account.heldNano;

/** Hours of the widest window (30 days) and the one that is under way. */
const hoursKept = 30 * 24 + 1;

/** Spend of one key by the hour over the last 30 days; sums over any shorter window. */
export class RollingSpend {
  private readonly hours = new BigInt64Array(hoursKept);
  private newestHour = 0;
  private cachedWindowHours = 0;
  private cachedSum = 0n;
  /** Everything ever spent. */
  total = 0n;

  /**
   * Adds spend at a wall time in milliseconds; what is older than the window only counts in the
   * total.
   */
  add(atMs: number, amountNano: bigint): void {
    const hour = Math.floor(atMs / hourMs);
    this.total += amountNano;
    this.advance(hour);
    if (hour <= this.newestHour - hoursKept) return;
    const index = hour % hoursKept;
    this.hours[index] = (this.hours[index] ?? 0n) + amountNano;
    if (hour > this.newestHour - this.cachedWindowHours - 1) this.cachedSum += amountNano;
  }

  /** Nano-USD spent in the last `windowHours` hours and the hour under way. */
  spentWithin(windowHours: number, nowMs: number): bigint {
    const hour = Math.floor(nowMs / hourMs);
    if (hour > this.newestHour || this.cachedWindowHours !== windowHours) {
      this.advance(hour);
      this.cachedWindowHours = windowHours;
      this.cachedSum = this.sum(windowHours);
    }
    return this.cachedSum;
  }

  private sum(windowHours: number): bigint {
    let sum = 0n;
    for (let age = 0; age <= Math.min(windowHours, hoursKept - 1); age += 1) {
      const hour = this.newestHour - age;
      if (hour >= 0) sum += this.hours[hour % hoursKept] ?? 0n;
    }
    return sum;
  }

  private advance(hour: number): void {
    if (hour <= this.newestHour) return;
    const from = Math.max(this.newestHour + 1, hour - hoursKept + 1);
    for (let stale = from; stale <= hour; stale += 1) this.hours[stale % hoursKept] = 0n;
    this.newestHour = hour;
    this.cachedSum = this.sum(this.cachedWindowHours);
  }
}

/** A hold or a charge as budgets count it. */
export interface BudgetUse {
  workspaceId: string;
  tags(): readonly string[];
  /**
   * The day on which the request was admitted, counted from the epoch: what it costs counts for the
   * period of that day.
   */
  day: number;
}

interface Counter {
  tag: string;
  firstDay: number;
  endDay: number;
  spentNano: bigint;
  heldNano: bigint;
  /**
   * Counts changes of what was spent, so that a reading of the database knows whether it missed
   * one.
   */
  revision: number;
}

/** A blocking budget with what is left of it and what is held. */
interface BudgetLeft {
  budget: Budget;
  leftNano: bigint;
  heldNano: bigint;
}

/**
 * Readings of what was spent that charges may overtake; the last one counts those twice until the
 * process ends.
 */
const readingsMax = 20;
const none: readonly BudgetLeft[] = [];

/** What was spent of blocking budgets and what is held, where one process has the ledger. */
export class BudgetCounters {
  private readonly blocking: BlockingBudgets;
  private readonly spentBy: SpentBy;
  private readonly byWorkspace = new Map<string, Map<string, Counter>>();

  constructor({ blocking, spentBy }: { blocking: BlockingBudgets; spentBy: SpentBy }) {
    this.blocking = blocking;
    this.spentBy = spentBy;
  }

  /** What is left for a use of each budget that bounds it. */
  leftFor(use: BudgetUse): readonly BudgetLeft[] {
    if (!this.blocking.has(use.workspaceId)) return none;
    return this.blocking.boundsOf(use.workspaceId, use.tags(), use.day).map((bound) => {
      const { spentNano, heldNano } = this.counter(use.workspaceId, bound);
      return {
        budget: bound.budget,
        leftNano: bound.budget.limitNano - spentNano - heldNano,
        heldNano,
      };
    });
  }

  /**
   * Adds to what is held of every sum that a use counts for; frees where the amount is negative.
   */
  hold(use: BudgetUse, amountNano: bigint): void {
    for (const counter of this.countersOf(use)) counter.heldNano += amountNano;
  }

  /**
   * Adds to what is spent of every sum that a use counts for; takes back where the amount is
   * negative.
   */
  spend(use: BudgetUse, amountNano: bigint): void {
    for (const counter of this.countersOf(use)) {
      counter.spentNano += amountNano;
      counter.revision += 1;
    }
  }

  /** Reads what was spent of a budget that is about to bound holds, with those that are open. */
  async watch(
    budget: Budget,
    { day, open }: { day: number; open: Iterable<BudgetUse & { heldNano: bigint }> },
  ): Promise<void> {
    const { workspaceId, scope, subject, period } = budget;
    const name = counterOf(budget, day);
    const counters = this.byWorkspace.get(workspaceId) ?? new Map<string, Counter>();
    this.byWorkspace.set(workspaceId, counters);
    if (counters.has(name)) return;
    const counter: Counter = { ...readCounter(name), spentNano: 0n, heldNano: 0n, revision: 0 };
    for (const use of open)
      if (use.workspaceId === workspaceId && counts(counter, use)) counter.heldNano += use.heldNano;
    counters.set(name, counter);
    const { startMs: fromMs, endMs: toMs } = periodAt(period, day * dayMs);
    try {
      for (
        let reading = 0, revision = -1;
        reading < readingsMax && revision !== counter.revision;
        reading += 1
      ) {
        counter.spentNano = 0n;
        revision = counter.revision;
        const durableNano = await this.spentBy({ workspaceId, scope, subject, fromMs, toMs });
        counter.spentNano += durableNano;
      }
    } catch (error) {
      counters.delete(name);
      throw error;
    }
  }

  private counter(workspaceId: string, { counter: name }: BudgetBound): Counter {
    let counters = this.byWorkspace.get(workspaceId);
    if (counters === undefined) this.byWorkspace.set(workspaceId, (counters = new Map()));
    let counter = counters.get(name);
    if (counter === undefined) {
      // A new period: its first request is this one.
      counter = { ...readCounter(name), spentNano: 0n, heldNano: 0n, revision: 0 };
      for (const [other, { endDay }] of counters)
        if (endDay < counter.firstDay) counters.delete(other);
      counters.set(name, counter);
    }
    return counter;
  }

  private countersOf(use: BudgetUse): Counter[] {
    const counters = this.byWorkspace.get(use.workspaceId);
    return counters === undefined
      ? []
      : [...counters.values()].filter((counter) => counts(counter, use));
  }
}

const counts = ({ tag, firstDay, endDay }: Counter, { day, tags }: BudgetUse): boolean =>
  day >= firstDay && day < endDay && tags().includes(tag);
