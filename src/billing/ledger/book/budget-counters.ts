import type { BlockingBudgets } from "../../budgets/blocking-budgets.ts";
import type { SpentBy, SpentByEach } from "../../budgets/budget-watch.ts";
import { type CountedSum, counterNameOf, sumOf } from "../../budgets/budget-windows.ts";
import {
  type AdmittedUse,
  type Budget,
  type BudgetBound,
  type BudgetScope,
  costWithin,
  type CustomerPlans,
  eachSubject,
  plainWeight,
  priceOf,
  readCounter,
  type Sender,
  tag,
  weightedTag,
} from "../../budgets/budget.ts";
import type { BudgetUse } from "./account-book.ts";

interface Counter {
  tag: string;
  firstDay: number;
  endDay: number;
  spentNano: bigint;
  heldNano: bigint;
  /**
   * The number of changes of `spentNano`, by which a read of the database notices that it missed
   * one.
   */
  revision: number;
}

/** A blocking budget, with the amounts that are left of it and held. */
interface BudgetLeft {
  budget: Budget;
  leftNano: bigint;
  heldNano: bigint;
}

/**
 * The most attempts to read a budget's spend without a charge in between. If all of them fail,
 * charges during the last one count twice until the process ends.
 */
const readingsMax = 20;

const none: readonly BudgetLeft[] = [];
const noneCounted: readonly { counter: Counter; weight: number }[] = [];

/**
 * The spend and the holds that count towards blocking budgets, where one process has the ledger.
 */
export class BudgetCounters {
  private readonly blocking: BlockingBudgets;
  private readonly spentBy: SpentBy;
  private readonly spentByEach: SpentByEach | undefined;
  private readonly byWorkspace = new Map<string, WorkspaceCounters>();

  constructor({
    blocking,
    spentBy,
    spentByEach,
  }: {
    blocking: BlockingBudgets;
    spentBy: SpentBy;
    spentByEach?: SpentByEach | undefined;
  }) {
    this.blocking = blocking;
    this.spentBy = spentBy;
    this.spentByEach = spentByEach;
  }

  /** Returns the customer and tags that budgets of a workspace count; undefined where none do. */
  senderScopesOf(workspaceId: string): readonly BudgetScope[] | undefined {
    return this.blocking.senderScopesOf(workspaceId);
  }

  /** Returns the periods of budgets in a time zone that count a request. */
  windowsOf(workspaceId: string, use: AdmittedUse): readonly Sender[] {
    return this.blocking.windowsOf(workspaceId, use);
  }

  /** The plans of customers; undefined before they are open. */
  get customers(): CustomerPlans | undefined {
    return this.blocking.customers;
  }

  /** Returns the amount that is left of each blocking budget that limits a use. */
  leftFor(use: BudgetUse): readonly BudgetLeft[] {
    if (!this.blocking.has(use.workspaceId)) return none;
    return this.blocking.boundsOf(use.workspaceId, use.tags(), use.day).map((bound) => {
      const { spentNano, heldNano } = this.counter(use.workspaceId, bound);
      const weight = bound.weight ?? plainWeight;
      return {
        budget: bound.budget,
        leftNano: costWithin(bound.budget.limitNano - spentNano - heldNano, weight),
        heldNano: costWithin(heldNano, weight),
      };
    });
  }

  /** Adds to the held amount of every sum that a use counts towards. A negative amount frees. */
  hold(use: BudgetUse, amountNano: bigint): void {
    for (const { counter, weight } of this.countersOf(use))
      counter.heldNano += priceOf(amountNano, weight);
  }

  /**
   * Adds to the spend of every sum that a use counts towards. A negative amount undoes a charge.
   */
  spend(use: BudgetUse, amountNano: bigint): void {
    for (const { counter, weight } of this.countersOf(use)) {
      counter.spentNano += priceOf(amountNano, weight);
      counter.revision += 1;
    }
  }

  /** Reads the spend of a budget that is about to limit holds, and counts the open holds. */
  async watch(
    budget: Budget,
    { nowMs, open }: { nowMs: number; open: Iterable<BudgetUse & { heldNano: bigint }> },
  ): Promise<void> {
    const sum = sumOf(budget, nowMs);
    const { workspaceId } = budget;
    if (budget.subject === eachSubject) return this.watchEach(sum, open);
    const name = counterNameOf(sum);
    const counters = this.countersIn(workspaceId);
    if (counters.has(name)) return;
    const counter: Counter = { ...readCounter(name), spentNano: 0n, heldNano: 0n, revision: 0 };
    for (const use of open) {
      const weight = use.workspaceId === workspaceId ? weightIn(counter, use) : undefined;
      if (weight !== undefined) counter.heldNano += priceOf(use.heldNano, weight);
    }
    counters.set(name, counter);
    try {
      for (
        let reading = 0, revision = -1;
        reading < readingsMax && revision !== counter.revision;
        reading += 1
      ) {
        counter.spentNano = 0n;
        revision = counter.revision;
        const durableNano = await this.spentBy(sum);
        counter.spentNano += durableNano;
      }
    } catch (error) {
      counters.delete(name);
      throw error;
    }
  }

  /** Reads the spend of each customer or value that a budget is about to limit by itself. */
  private async watchEach(
    sum: CountedSum,
    open: Iterable<BudgetUse & { heldNano: bigint }>,
  ): Promise<void> {
    const spent = (await this.spentByEach?.(sum)) ?? new Map<string, bigint>();
    const counters = this.countersIn(sum.workspaceId);
    const begun = new Set<string>();
    const begin = (subject: string, spentNano: bigint): string => {
      const name = counterNameOf({ ...sum, subject });
      if (counters.has(name)) return name;
      counters.set(name, { ...readCounter(name), spentNano, heldNano: 0n, revision: 0 });
      begun.add(name);
      return name;
    };
    for (const [subject, spentNano] of spent) begin(subject, spentNano);
    // What is held already has tags by now, which free it again; it is counted where they count it.
    for (const use of open) {
      if (use.workspaceId !== sum.workspaceId) continue;
      for (const { subject, weight } of eachIn(sum, use.tags())) {
        const name = begin(subject, 0n);
        const counter = begun.has(name) ? counters.get(name) : undefined;
        if (counter !== undefined) counter.heldNano += priceOf(use.heldNano, weight);
      }
    }
  }

  private countersIn(workspaceId: string): WorkspaceCounters {
    let counters = this.byWorkspace.get(workspaceId);
    if (counters === undefined)
      this.byWorkspace.set(workspaceId, (counters = new WorkspaceCounters()));
    return counters;
  }

  private counter(workspaceId: string, { counter: name }: BudgetBound): Counter {
    const counters = this.countersIn(workspaceId);
    let counter = counters.get(name);
    if (counter === undefined) {
      // This is the first request of a new period.
      counter = { ...readCounter(name), spentNano: 0n, heldNano: 0n, revision: 0 };
      counters.deleteBefore(counter.firstDay);
      counters.set(name, counter);
    }
    return counter;
  }

  private countersOf(use: BudgetUse): readonly { counter: Counter; weight: number }[] {
    const counters = this.byWorkspace.get(use.workspaceId);
    if (counters === undefined) return noneCounted;
    return use.tags().flatMap((each) => {
      const { tag, weight } = weightedTag(each);
      return counters
        .ofTag(tag)
        .filter((counter) => isWithin(counter, use.day))
        .map((counter) => ({ counter, weight }));
    });
  }
}

/** The counters of a workspace, by name and by tag. */
class WorkspaceCounters {
  private readonly byName = new Map<string, Counter>();
  private readonly byTag = new Map<string, Counter[]>();
  /** The first day for which counters of earlier periods were deleted. */
  private deletedBefore = 0;

  has(name: string): boolean {
    return this.byName.has(name);
  }

  get(name: string): Counter | undefined {
    return this.byName.get(name);
  }

  set(name: string, counter: Counter): void {
    this.byName.set(name, counter);
    this.byTag.set(counter.tag, [...this.ofTag(counter.tag), counter]);
  }

  delete(name: string): void {
    const counter = this.byName.get(name);
    if (counter === undefined) return;
    this.byName.delete(name);
    const others = this.ofTag(counter.tag).filter((other) => other !== counter);
    if (others.length === 0) this.byTag.delete(counter.tag);
    else this.byTag.set(counter.tag, others);
  }

  /** Deletes the counters of periods that ended before a day. */
  deleteBefore(day: number): void {
    if (day <= this.deletedBefore) return;
    this.deletedBefore = day;
    for (const [name, { endDay }] of this.byName) if (endDay < day) this.delete(name);
  }

  ofTag(tag: string): readonly Counter[] {
    return this.byTag.get(tag) ?? noCounters;
  }
}

const noCounters: readonly Counter[] = [];

const isWithin = ({ firstDay, endDay }: Counter, day: number): boolean =>
  day >= firstDay && day < endDay;

/** Returns the subjects among the tags of a use that a sum of each counts, with their weights. */
const eachIn = (
  { scope, subject }: CountedSum,
  tags: readonly string[],
): { subject: string; weight: number }[] => {
  const [all, some] = [tag(scope, ""), tag(scope, (subject ?? "").slice(0, -1))];
  return tags
    .filter((each) => each.startsWith(some))
    .map((each) => {
      const { tag: name, weight } = weightedTag(each);
      return { subject: decodeURIComponent(name.slice(all.length)), weight };
    });
};

/** Returns the weight at which a counter counts a use; undefined where it does not. */
const weightIn = (counter: Counter, { day, tags }: BudgetUse): number | undefined =>
  isWithin(counter, day)
    ? tags()
        .map(weightedTag)
        .find(({ tag }) => tag === counter.tag)?.weight
    : undefined;
