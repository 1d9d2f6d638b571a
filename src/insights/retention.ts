import { dayMs, hourMs, type Clock } from "../platform/lib/clock.ts";
import type { GenerationStore } from "./generation-store.ts";
import type { JobRegistry } from "./health/job-registry.ts";
import type { LogBudget, LogExcess } from "./log-budget.ts";
import type { UsageStore } from "./usage-store.ts";

/** Records that one statement deletes, so that settlements never wait long behind a purge. */
const deleteStepRows = 1_000;

/** How long usage is kept by the hour, in days: longer than any range that may be asked for by the hour. */
const usageHoursDays = 35;

/**
 * Deletes generation records that are older than the operator keeps them, the oldest that the operator's budget has no room for,
 * and old hours of usage. Charges and days of usage stay.
 */
export class Retention {
  private readonly options: {
    generations: GenerationStore;
    usage: UsageStore;
    jobs: JobRegistry;
    clock: Clock;
    keepDays: number;
    budget: LogBudget;
    workspaceIds(): string[];
    onError(error: unknown): void;
    /** To be told, once, that records are deleted before their days for the budget. */
    onOverBudget(excess: LogExcess): void;
    /** Where several gateways share the database, whether this one does what is done once. */
    isLeader?: (() => boolean) | undefined;
  };
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();
  private readonly stopping = new AbortController();
  private toldOfBudget = false;

  constructor(options: Retention["options"]) {
    this.options = options;
  }

  /** Purges every hour from now on; the first time after an hour, so that a start is not slowed. */
  start(): void {
    this.timer = setInterval(() => {
      // What another gateway deletes while it leads is not known here.
      if (this.options.isLeader?.() === false) return this.options.budget.forget();
      this.running = this.options.jobs.run(
        "generation_retention",
        () => this.purge(),
        (error) => this.options.onError(error),
      );
    }, hourMs);
  }

  /** Deletes everything that is due. */
  async purge(): Promise<void> {
    const { usage, clock, keepDays, budget, workspaceIds } = this.options;
    const beforeMs = clock.nowMs() - keepDays * dayMs;
    const hoursBeforeMs = clock.nowMs() - usageHoursDays * dayMs;
    await usage.deleteNetworkHoursBefore(hoursBeforeMs);
    for (const workspaceId of workspaceIds()) {
      await usage.deleteHoursBefore(workspaceId, hoursBeforeMs);
      await this.deleteRecords(workspaceId, beforeMs);
    }
    budget.forget(beforeMs);
    await this.purgeForBudget();
  }

  /** Deletes the oldest records, whoever's they are, until the rest fit into the budget. */
  private async purgeForBudget(): Promise<void> {
    const { budget, clock, onOverBudget } = this.options;
    const excess = await budget.excess({ nowMs: clock.nowMs(), signal: this.stopping.signal });
    if (excess === undefined) return;
    if (!this.toldOfBudget) onOverBudget(excess);
    this.toldOfBudget = true;
    budget.forget(excess.beforeMs);
    for (const workspaceId of excess.workspaceIds)
      await this.deleteRecords(workspaceId, excess.beforeMs);
  }

  /** Deletes a workspace's records that are older than a wall time, step by step, until it is done or the gateway ends. */
  private async deleteRecords(workspaceId: string, beforeMs: number): Promise<void> {
    const { generations } = this.options;
    const step = { workspaceId, beforeMs, limit: deleteStepRows };
    while (
      !this.stopping.signal.aborted &&
      (await generations.deleteBefore(step)) === deleteStepRows
    );
  }

  /** Resolves when a purge that is under way has ended, which is after its next step. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    return this.running;
  }
}
