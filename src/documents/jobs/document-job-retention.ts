import { dayMs, hourMs, type Clock } from "../../platform/lib/clock.ts";
import type { DocumentJobStore } from "./document-job-store.ts";

/** How long a result can be picked up, and a key means the same job. */
const keptMs = dayMs;

/** Jobs that one statement deletes: each may hold megabytes, and settlements wait behind it. */
const deleteStepJobs = 20;

/** Deletes document jobs a day after their end: nobody's documents are kept longer than needed. */
export class DocumentJobRetention {
  private readonly options: {
    jobs: DocumentJobStore;
    clock: Clock;
    onPurged(): void;
    onError(error: unknown): void;
    /** Where several gateways share the database, whether this one does what is done once. */
    isLeader?: (() => boolean) | undefined;
  };
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(options: DocumentJobRetention["options"]) {
    this.options = options;
  }

  /** Purges every hour from now on. */
  start(): void {
    this.timer = setInterval(() => {
      if (this.options.isLeader?.() === false) return;
      this.running = this.purge().then(
        () => this.options.onPurged(),
        (error: unknown) => this.options.onError(error),
      );
    }, hourMs);
  }

  /** Deletes everything that is due. */
  async purge(): Promise<void> {
    const { jobs, clock } = this.options;
    const beforeMs = clock.nowMs() - keptMs;
    while ((await jobs.deleteEndedBefore({ beforeMs, limit: deleteStepJobs })) === deleteStepJobs);
  }

  /** Resolves when a purge that is under way has ended. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    return this.running;
  }
}
