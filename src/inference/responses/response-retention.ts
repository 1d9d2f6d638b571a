import { dayMs, type Clock } from "../../platform/kernel/clock.ts";
import { hourly } from "../../platform/kernel/time/hourly.ts";
import type { ResponseStore } from "./response-store.ts";

/**
 * Responses that one statement deletes: each may hold megabytes, and settlements wait behind it.
 */
const deleteStepResponses = 100;

/** Deletes stored responses, and their events, that are past their retention. */
export class ResponseRetention {
  private endRounds: () => void = () => undefined;
  private running: Promise<void> = Promise.resolve();
  private stopping = false;

  constructor(
    private readonly options: {
      responses: ResponseStore;
      clock: Clock;
      keepDays: number;
      onError(error: unknown): void;
      /** Called after each successful purge. */
      onPurged?(): void;
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
        () => this.options.onPurged?.(),
        (error: unknown) => this.options.onError(error),
      );
    });
  }

  /** Deletes everything that is due. */
  async purge(): Promise<void> {
    const { responses, clock, keepDays } = this.options;
    const beforeMs = clock.nowMs() - keepDays * dayMs;
    while (
      !this.stopping &&
      (await responses.deleteBefore({ beforeMs, limit: deleteStepResponses })) ===
        deleteStepResponses
    );
  }

  /** Stops; resolves when a purge in progress has ended, which is after its next step. */
  stop(): Promise<void> {
    this.stopping = true;
    this.endRounds();
    return this.running;
  }
}
