import type { Clock } from "../../platform/kernel/clock.ts";
import { type Passing, PassingSet } from "../../platform/kernel/passing/passing-set.ts";

/** Something with a deadline on the monotonic clock. */
export interface Watched extends Passing {
  deadlineMs: number;
  /** The number of sweeps before it was added. */
  addedAtSweep: number;
  /** The last deadline that passed while the process stood still. */
  excusedDeadlineMs: number;
  onDeadline(): void;
  /** Called once when it has been watched for more than a moment: 50 to 100 ms. */
  onLasting(): void;
}

/**
 * Sparse requests are answered between two sweeps, so that each sweep wakes the process for nothing
 * else.
 */
const sweepIntervalMs = 50;
/**
 * The length of a moment, in sweeps. Even a busy gateway has given most of its whole answers by
 * then.
 */
const momentSweeps = 2;

/**
 * Watches all exchanges in flight, and connects, with one timer. A sweep looks for deadlines that have passed, so
 * that moving a deadline, which every stream event does, is one assignment.
 *
 * A sweep that comes late shows that the process stood still, and answers that arrived meanwhile
 * wait in their sockets. They are read before the next sweep, which then counts.
 */
export class DeadlineWatch {
  /** Milliseconds that the process stood still while something was watched. */
  stoodStillMs = 0;
  private readonly watched = new PassingSet<Watched>();
  private sweeps = 0;
  private sweptAtMs = 0;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly clock: Clock) {}

  add(entry: Watched): void {
    entry.addedAtSweep = this.sweeps;
    this.watched.add(entry);
    if (this.timer !== undefined) return;
    this.sweptAtMs = this.clock.monotonicMs();
    this.timer = setInterval(this.sweep, sweepIntervalMs);
  }

  /** Returns the deadline after so many milliseconds from now. */
  deadlineAfter(milliseconds: number): number {
    return this.clock.monotonicMs() + milliseconds;
  }

  remove(entry: Watched): void {
    this.watched.delete(entry);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.watched.clear();
  }

  private readonly sweep = (): void => {
    if (this.watched.size === 0) return this.stop();
    this.sweeps += 1;
    const nowMs = this.clock.monotonicMs();
    const sinceSweepMs = nowMs - this.sweptAtMs;
    const isLate = sinceSweepMs > 2 * sweepIntervalMs;
    if (isLate) this.stoodStillMs += sinceSweepMs - sweepIntervalMs;
    this.sweptAtMs = nowMs;
    this.watched.forEach((entry) => {
      if (this.sweeps - entry.addedAtSweep === momentSweeps) entry.onLasting();
      if (entry.place < 0 || entry.deadlineMs > nowMs) return;
      // Once for each deadline: a process that is always late has them, too.
      const isExcused = isLate && entry.excusedDeadlineMs !== entry.deadlineMs;
      entry.excusedDeadlineMs = entry.deadlineMs;
      if (isExcused) return;
      this.watched.delete(entry);
      entry.onDeadline();
    });
  };
}
