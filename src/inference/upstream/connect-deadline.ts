import type { DeadlineWatch, Watched } from "./deadline-watch.ts";

/** The time that a connect may take, and what watches it. */
export interface ConnectLimit {
  timeoutMs: number;
  watch: DeadlineWatch;
}

/**
 * The deadline of a connect. Where the process stood still meanwhile, the connect gets that time
 * again, once and at most the whole timeout: a handshake takes several turns of the event loop.
 */
export class ConnectDeadline implements Watched {
  place = -1;
  addedAtSweep = 0;
  excusedDeadlineMs = 0;
  deadlineMs: number;
  private readonly stoodStillBeforeMs: number;
  private isExtended = false;

  constructor(
    private readonly limit: ConnectLimit,
    private readonly onPassed: () => void,
  ) {
    const { timeoutMs, watch } = limit;
    this.deadlineMs = watch.deadlineAfter(timeoutMs);
    this.stoodStillBeforeMs = watch.stoodStillMs;
    watch.add(this);
  }

  onDeadline(): void {
    const { timeoutMs, watch } = this.limit;
    const stoodStillMs = watch.stoodStillMs - this.stoodStillBeforeMs;
    if (stoodStillMs === 0 || this.isExtended) return this.onPassed();
    this.isExtended = true;
    this.deadlineMs = watch.deadlineAfter(Math.min(stoodStillMs, timeoutMs));
    watch.add(this);
  }

  onLasting(): void {
    // A connect listens to its client from the start.
  }
}
