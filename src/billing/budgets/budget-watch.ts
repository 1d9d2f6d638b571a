import type { QueryExecutorProvider } from "kysely";
import { minuteMs, type Clock } from "../../platform/kernel/clock.ts";
import type { AlertStore } from "./alert-store.ts";
import type { BudgetStore } from "./budget-store.ts";
import { spanOf, sumOf } from "./budget-windows.ts";
import { reachedThresholds, type Budget, type Span } from "./budget.ts";
import type { DeliveryRunner } from "./delivery-runner.ts";

/**
 * Returns the nano-USD that a subject spent in a range of whole days. Within a transaction, where
 * one is given, and then without what is not committed yet.
 */
export type SpentBy = (
  query: Pick<Budget, "workspaceId" | "scope" | "subject"> & { fromMs: number; toMs: number },
  reading?: QueryExecutorProvider,
) => Promise<bigint>;

/** Returns the nano-USD that each customer, or each value of a tag, spent in a range. */
export type SpentByEach = (query: Parameters<SpentBy>[0]) => Promise<ReadonlyMap<string, bigint>>;

const everyMs = minuteMs;

interface WatchOptions {
  store: BudgetStore;
  alerts: AlertStore;
  runner: DeliveryRunner;
  spentBy: SpentBy;
  clock: Clock;
  /**
   * Returns whether this gateway, among several on the database, runs the jobs that run once;
   * absent where there is one.
   */
  isLeader?: (() => boolean) | undefined;
}

/**
 * Checks every minute what was spent of each budget. Requests never wait for it, and it never
 * refuses one.
 */
export class BudgetWatch {
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> | undefined;

  constructor(private readonly options: WatchOptions) {}

  /** Returns what was spent of a budget in its current period. */
  async spentOf(budget: Budget): Promise<{ span: Span; spentNano: bigint }> {
    const nowMs = this.options.clock.nowMs();
    const spentNano = await this.options.spentBy(sumOf(budget, nowMs));
    return { span: spanOf(budget, nowMs), spentNano };
  }

  /** Raises the alerts that are due and sends their messages; one run at a time. */
  async run(): Promise<void> {
    const { store, alerts, runner, clock } = this.options;
    for (const budget of await store.all()) {
      const { span, spentNano } = await this.spentOf(budget);
      const thresholds = reachedThresholds(budget, spentNano);
      if (thresholds.length === 0) continue;
      await alerts.raise({
        budget,
        periodStartMs: span.startMs,
        thresholds,
        spentNano,
        nowMs: clock.nowMs(),
      });
    }
    await runner.run();
  }

  /** Starts to run every minute; `ended` is called at the end of each run. */
  start(ended: (error: unknown) => void): void {
    this.timer = setInterval(() => {
      if (this.options.isLeader?.() === false) return;
      this.running ??= this.run()
        .then(() => ended(undefined), ended)
        .finally(() => {
          this.running = undefined;
        });
    }, everyMs);
  }

  /** Stops; resolves when a run in progress has ended. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.running;
  }
}
