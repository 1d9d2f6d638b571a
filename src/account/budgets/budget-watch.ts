import type { QueryExecutorProvider } from "kysely";
import { minuteMs, type Clock } from "../../platform/lib/clock.ts";
import type { AlertStore } from "./alert-store.ts";
import { periodAt, reachedThresholds, type Budget, type Span } from "./budget.ts";
import type { BudgetStore } from "./budget-store.ts";
import type { DeliveryRunner } from "./delivery-runner.ts";

/**
 * How much of something was spent in a stretch of whole days, in nano-USD; within a transaction, where one is given, and then
 * without what is not committed yet.
 */
export type SpentBy = (
  query: Pick<Budget, "workspaceId" | "scope" | "subject"> & { fromMs: number; toMs: number },
  reading?: QueryExecutorProvider,
) => Promise<bigint>;

const everyMs = minuteMs;

interface WatchOptions {
  store: BudgetStore;
  alerts: AlertStore;
  runner: DeliveryRunner;
  spentBy: SpentBy;
  clock: Clock;
  /** Where several gateways share the database, whether this one does what is done once. */
  isLeader?: (() => boolean) | undefined;
}

/** Looks every minute at what was spent of each budget. Requests never wait for it, and it never refuses one. */
export class BudgetWatch {
  private readonly options: WatchOptions;
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> | undefined;

  constructor(options: WatchOptions) {
    this.options = options;
  }

  /** What was spent of a budget in its period of this moment. */
  async spentOf({
    workspaceId,
    scope,
    subject,
    period,
  }: Budget): Promise<{ span: Span; spentNano: bigint }> {
    const span = periodAt(period, this.options.clock.nowMs());
    const spentNano = await this.options.spentBy({
      workspaceId,
      scope,
      subject,
      fromMs: span.startMs,
      toMs: span.endMs,
    });
    return { span, spentNano };
  }

  /** Raises what is due and sends what is to be sent; one run at a time. */
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

  /** Runs every minute from now on; told how each run ended. */
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

  /** Resolves when a run that is under way has ended. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.running;
  }
}
