import type { Clock } from "../../platform/lib/clock.ts";

/** Something that must not wait beyond a moment of the monotonic clock. */
export interface Watched {
  deadlineMs: number;
  onDeadline(): void;
  /** Told once when it has been watched for longer than a moment: forty to sixty milliseconds. */
  onLasting(): void;
}

const sweepIntervalMs = 20;
/** Sweeps that a moment lasts; a busy gateway has given most of its whole answers by then. */
const momentSweeps = 3;

/**
 * One timer for every exchange in flight instead of several timers for each: a sweep looks for
 * deadlines that have passed, so that moving a deadline (once per stream event) is one assignment.
 */
export class DeadlineWatch {
  private readonly watched = new Set<Watched>();
  /** Entries of the last sweeps' time, the youngest last. */
  private recent: Watched[][] = newRecent();
  private readonly clock: Clock;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  add(entry: Watched): void {
    this.watched.add(entry);
    this.recent.at(-1)?.push(entry);
    this.timer ??= setInterval(this.sweep, sweepIntervalMs);
  }

  remove(entry: Watched): void {
    this.watched.delete(entry);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.watched.clear();
    this.recent = newRecent();
  }

  private readonly sweep = (): void => {
    const lasting = this.recent.shift() ?? [];
    this.recent.push([]);
    for (const entry of lasting) if (this.watched.has(entry)) entry.onLasting();
    if (this.watched.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      this.recent = newRecent();
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

const newRecent = (): Watched[][] => Array.from({ length: momentSweeps }, () => []);
