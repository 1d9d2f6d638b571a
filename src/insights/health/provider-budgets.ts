import { dayMs, type Clock } from "../../platform/kernel/clock.ts";
import type { HealthSignal } from "./provider-health.ts";

/** What a provider may cost a day, and what it has cost today, in nano-USD. */
export interface Budget {
  limitNano: bigint;
  spentNano: bigint;
}

/**
 * What the operator lets each provider cost a day (UTC), counted by what callers are charged for
 * its answers. A request that is under way when the budget is spent is served to its end.
 */
export class ProviderBudgets {
  private readonly clock: Clock;
  private readonly onSignal: (providerId: string, signal: HealthSignal) => void;
  private readonly budgets: Map<string, Budget>;
  private day: number;

  /** Budgets in nano-USD a day by provider, and what was spent of today's already. */
  constructor(options: {
    clock: Clock;
    limits: ReadonlyMap<string, bigint>;
    spent: ReadonlyMap<string, bigint>;
    onSignal(providerId: string, signal: HealthSignal): void;
  }) {
    this.clock = options.clock;
    this.onSignal = options.onSignal;
    this.day = this.today();
    this.budgets = new Map(
      [...options.limits].map(([id, limitNano]) => [
        id,
        { limitNano, spentNano: options.spent.get(id) ?? 0n },
      ]),
    );
    for (const [id, budget] of this.budgets) if (isSpent(budget)) this.onSignal(id, "budget-spent");
  }

  /** A provider's answer was charged. */
  spend(providerId: string, costNano: bigint): void {
    const budget = this.budgets.get(providerId);
    if (budget === undefined) return;
    this.check();
    const before = isSpent(budget);
    budget.spentNano += costNano;
    if (!before && isSpent(budget)) this.onSignal(providerId, "budget-spent");
  }

  /** The budget of a provider that has one. */
  budgetOf(providerId: string): Readonly<Budget> | undefined {
    this.check();
    return this.budgets.get(providerId);
  }

  /** Begins a new day where one has begun. */
  check(): void {
    if (this.day === this.today()) return;
    this.day = this.today();
    for (const [id, budget] of this.budgets) {
      if (isSpent(budget)) this.onSignal(id, "budget-free");
      budget.spentNano = 0n;
    }
  }

  private today(): number {
    return Math.floor(this.clock.nowMs() / dayMs);
  }
}

const isSpent = ({ limitNano, spentNano }: Budget): boolean => spentNano >= limitNano;
