import { dayMs, type Clock } from "../../platform/kernel/clock.ts";
import { hourly } from "../../platform/kernel/time/hourly.ts";
import type { DocumentJobStore } from "./document-job-store.ts";

/** Milliseconds for which a result can be fetched, and a key means the same job. */
const keptMs = dayMs;

/** Jobs that one statement deletes: each may hold megabytes, and settlements wait behind it. */
const deleteStepJobs = 20;

/**
 * Deletes document jobs a day after their end, so that documents are kept no longer than needed.
 */
export class DocumentJobRetention {
  private endRounds: () => void = () => undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly options: {
      jobs: DocumentJobStore;
      clock: Clock;
      onPurged(): void;
      onError(error: unknown): void;
      /**
       * Returns whether this gateway, among several on the database, runs the jobs that run once;
       * absent where there is one.
       */
      isLeader?: (() => boolean) | undefined;
    },
  ) {}

  /** Starts to purge every hour. */
  start(): void {
    this.endRounds = hourly(() => {
      if (this.options.isLeader?.() === false) return;
      this.running = this.purge().then(
        () => this.options.onPurged(),
        (error: unknown) => this.options.onError(error),
      );
    });
  }

  /** Deletes everything that is due. */
  async purge(): Promise<void> {
    const { jobs, clock } = this.options;
    const beforeMs = clock.nowMs() - keptMs;
    while ((await jobs.deleteEndedBefore({ beforeMs, limit: deleteStepJobs })) === deleteStepJobs);
  }

  /** Stops; resolves when a purge in progress has ended. */
  stop(): Promise<void> {
    this.endRounds();
    return this.running;
  }
}
