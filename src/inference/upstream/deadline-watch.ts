import type { Clock } from "../../platform/lib/clock.ts";

/** Something that must not wait beyond a moment of the monotonic clock. */
export interface Watched {
  deadlineMs: number;
  onDeadline(): void;
  /** Told once when it has been watched for longer than a moment. */
  onLasting(): void;
}

const sweepIntervalMs = 20;

/**
 * One timer for every exchange in flight instead of several timers for each: a sweep looks for
 * deadlines that have passed, so that moving a deadline (once per stream event) is one assignment.
 */
export class DeadlineWatch {
  private readonly watched = new Set<Watched>();
  private recent: Watched[] = [];
  private readonly clock: Clock;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  add(entry: Watched): void {
    this.watched.add(entry);
    this.recent.push(entry);
    this.timer ??= setInterval(this.sweep, sweepIntervalMs);
  }

  remove(entry: Watched): void {
    this.watched.delete(entry);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.watched.clear();
    this.recent = [];
  }

  private readonly sweep = (): void => {
    const recent = this.recent;
    this.recent = [];
    for (const entry of recent) if (this.watched.has(entry)) entry.onLasting();
    if (this.watched.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    const nowMs = this.clock.monotonicMs();
    for (const entry of this.watched) {
      if (entry.deadlineMs > nowMs) continue;
      this.watched.delete(entry);
      entry.onDeadline();
    }
  };
}
