import { type Clock, dayMs, hourMs } from "../platform/kernel/clock.ts";
import type { GenerationStore } from "./generation-store.ts";
import type { JobRegistry } from "./health/job-registry.ts";
import type { UsageStore } from "./usage/usage-store.ts";
import type { LogExcess, LogBudget } from "./log-budget.ts";

/** The archive of records, as retention sees it. */
export interface RecordArchive {
  /**
   * Returns when the oldest request came whose record is not archived yet; undefined where all are.
   */
  oldestWaitingMs(): Promise<number | undefined>;
  /** Called before records of requests before a wall time are deleted, and again after that. */
  deleting(beforeMs: number): Promise<void>;
  deleted(beforeMs: number): Promise<void>;
}

/** The monthly partitions of records, where the engine has partitions. */
export interface RecordMonths {
  /** Creates the partition of a wall time's month and those of the next months. */
  prepare(nowMs: number): Promise<void>;
  /** Drops the partitions of months that ended before a wall time. */
  dropBefore(beforeMs: number): Promise<void>;
}

/** Records that one statement deletes, so that settlements never wait long behind a purge. */
const deleteStepRows = 1_000;

/**
 * Days for which usage is kept by the hour: more than any range that may be requested by the hour.
 */
const usageHoursDays = 35;

/**
 * Deletes generation records past their retention, the oldest ones that exceed the size budget, and
 * old hours of usage. Charges and days of usage stay.
 */
export class Retention {
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();
  private readonly stopping = new AbortController();
  private hasReportedBudget = false;

  constructor(
    private readonly options: {
      generations: GenerationStore;
      usage: UsageStore;
      jobs: JobRegistry;
      clock: Clock;
      keepDays: number;
      budget: LogBudget;
      workspaceIds(): string[];
      onError(error: unknown): void;
      /** Called once when records are deleted before their retention, to keep the size budget. */
      onOverBudget(excess: LogExcess): void;
      /** Keeps records for longer; none is deleted for its age before it is archived. */
      archive?: RecordArchive | undefined;
      /** Prompts and answers in the database; absent where the archive takes them. */
      contents?: { round(): Promise<void> } | undefined;
      /** Absent where records are kept in one table. */
      months?: RecordMonths | undefined;
      /** Called when partitions could not be created or dropped now. */
      onMonthsHeldUp?(error: unknown): void;
      /**
       * Returns whether this gateway, among several on the database, runs the jobs that run once;
       * absent where there is one.
       */
      isLeader?: (() => boolean) | undefined;
    },
  ) {}

  /**
   * Creates the coming months' partitions, and starts to purge every hour, for the first time after
   * an hour, so that a start is not slowed.
   */
  start(): void {
    const { clock } = this.options;
    this.running = this.changeMonths((months) => months.prepare(clock.nowMs()));
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
    const { usage, clock, keepDays, budget, workspaceIds, archive } = this.options;
    await this.changeMonths((months) => months.prepare(clock.nowMs()));
    const beforeMs = Math.min(
      clock.nowMs() - keepDays * dayMs,
      (await archive?.oldestWaitingMs()) ?? Infinity,
    );
    const hoursBeforeMs = clock.nowMs() - usageHoursDays * dayMs;
    await usage.deleteNetworkHoursBefore(hoursBeforeMs);
    await archive?.deleting(beforeMs);
    await this.changeMonths((months) => months.dropBefore(beforeMs));
    for (const workspaceId of workspaceIds()) {
      await usage.deleteHoursBefore(workspaceId, hoursBeforeMs);
      await this.deleteRecords(workspaceId, beforeMs);
    }
    budget.forget(beforeMs);
    await this.options.contents?.round();
    await this.purgeForBudget();
  }

  /** Deletes the oldest records of all workspaces until the rest fit into the budget. */
  private async purgeForBudget(): Promise<void> {
    const { budget, clock, onOverBudget, archive } = this.options;
    const excess = await budget.excess({ nowMs: clock.nowMs(), signal: this.stopping.signal });
    if (excess === undefined) return;
    if (!this.hasReportedBudget) onOverBudget(excess);
    this.hasReportedBudget = true;
    budget.forget(excess.beforeMs);
    await archive?.deleting(excess.beforeMs);
    await this.changeMonths((months) => months.dropBefore(excess.beforeMs));
    for (const workspaceId of excess.workspaceIds)
      await this.deleteRecords(workspaceId, excess.beforeMs);
    if (!this.stopping.signal.aborted) await archive?.deleted(excess.beforeMs);
  }

  /**
   * Changes partitions. Where queries block it, the change is left to the next hour: rows without a
   * partition go to the default one, and those of a partition that stays are deleted one by one.
   */
  private async changeMonths(change: (months: RecordMonths) => Promise<void>): Promise<void> {
    const { months, onMonthsHeldUp = () => undefined } = this.options;
    if (months !== undefined) await change(months).catch(onMonthsHeldUp);
  }

  /**
   * Deletes a workspace's records that are older than a wall time, step by step, until it is done
   * or the gateway ends.
   */
  private async deleteRecords(workspaceId: string, beforeMs: number): Promise<void> {
    const { generations } = this.options;
    const step = { workspaceId, beforeMs, limit: deleteStepRows };
    while (
      !this.stopping.signal.aborted &&
      (await generations.deleteBefore(step)) === deleteStepRows
    );
  }

  /** Stops; resolves when a purge in progress has ended, which is after its next step. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    return this.running;
  }
}
