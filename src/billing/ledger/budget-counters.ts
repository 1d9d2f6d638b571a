import { dayMs } from "../../platform/kernel/clock.ts";
import type { SpentBy } from "../budgets/budget-watch.ts";
import {
  counterOf,
  periodAt,
  readCounter,
  type BlockingBudgets,
  type Budget,
  type BudgetBound,
} from "../budgets/budget.ts";

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
export interface BudgetLeft {
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
