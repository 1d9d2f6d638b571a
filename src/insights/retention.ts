import { dayMs, hourMs, type Clock } from "../platform/lib/clock.ts";
import type { GenerationStore } from "./generation-store.ts";
import type { JobRegistry } from "./health/job-registry.ts";
import type { UsageStore } from "./usage-store.ts";

/** Records that one statement deletes, so that settlements never wait long behind a purge. */
const deleteStepRows = 1_000;

/** How long usage is kept by the hour, in days: longer than any range that may be asked for by the hour. */
const usageHoursDays = 35;

/** Deletes generation records that are older than the operator keeps them, and old hours of usage. Charges and days of usage stay. */
export class Retention {
  private readonly options: {
    generations: GenerationStore; usage: UsageStore; jobs: JobRegistry; clock: Clock; keepDays: number;
    workspaceIds(): string[]; onError(error: unknown): void;
    /** Where several gateways share the database, whether this one does what is done once. */
    isLeader?: (() => boolean) | undefined;
  };
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(options: Retention["options"]) {
    this.options = options;
  }

  /** Purges every hour from now on; the first time after an hour, so that a start is not slowed. */
  start(): void {
    this.timer = setInterval(() => {
      if (this.options.isLeader?.() === false) return;
      this.running = this.options.jobs.run("generation_retention", () => this.purge(), (error) => this.options.onError(error));
    }, hourMs);
  }

  /** Deletes everything that is due. */
  async purge(): Promise<void> {
    const { generations, usage, clock, keepDays, workspaceIds } = this.options;
    const beforeMs = clock.nowMs() - keepDays * dayMs;
    const hoursBeforeMs = clock.nowMs() - usageHoursDays * dayMs;
    await usage.deleteNetworkHoursBefore(hoursBeforeMs);
    for (const workspaceId of workspaceIds()) {
      await usage.deleteHoursBefore(workspaceId, hoursBeforeMs);
      while (await generations.deleteBefore({ workspaceId, beforeMs, limit: deleteStepRows }) === deleteStepRows);
    }
  }

  /** Resolves when a purge that is under way has ended. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    return this.running;
  }
}
