import { dayMs, type Clock } from "../../platform/kernel/clock.ts";
import type { HealthSignal } from "./provider-health.ts";
import type { Budget } from "./traffic.ts";

/**
 * The operator's daily budgets (UTC) of providers, counted by what callers are charged for their
 * answers. A request that is in progress when the budget is used up is served to its end.
 */
export class ProviderBudgets {
  private readonly clock: Clock;
  private readonly onSignal: (providerId: string, signal: HealthSignal) => void;
  private readonly budgets: Map<string, Budget>;
  private day: number;

  /** Daily budgets in nano-USD by provider, and what was already spent of today's. */
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

  /** Counts the charge of a provider's answer. */
  spend(providerId: string, costNano: bigint): void {
    const budget = this.budgets.get(providerId);
    if (budget === undefined) return;
    this.check();
    const before = isSpent(budget);
    budget.spentNano += costNano;
    if (!before && isSpent(budget)) this.onSignal(providerId, "budget-spent");
  }

  /** Returns the budget of a provider that has one. */
  budgetOf(providerId: string): Readonly<Budget> | undefined {
    this.check();
    return this.budgets.get(providerId);
  }

  /** Starts a new day where the date has changed. */
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
