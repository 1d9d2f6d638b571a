/** Time as a dependency, so that tests can move it by hand. */
export interface Clock {
  /** Wall time in milliseconds since the Unix epoch. */
  nowMs(): number;
  /** Monotonic time in milliseconds, for measuring durations. */
  monotonicMs(): number;
}

/** The machine's own clock. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** Milliseconds of one minute, one hour and one day. */
export const minuteMs = 60_000;
export const hourMs = 3_600_000;
export const dayMs = 86_400_000;

/** ISO 8601 text of a wall time, or null for an absent one. */
export const isoOrNull = (atMs: number | null): string | null =>
  atMs === null ? null : new Date(atMs).toISOString();

/** Wall times of which no two are the same millisecond, so that lists by age have one order. */
export class DistinctTime {
  private readonly clock: Clock;
  private newestMs = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Now, or the first millisecond after the one that was given last. */
  nextMs(): number {
    this.newestMs = Math.max(this.clock.nowMs(), this.newestMs + 1);
    return this.newestMs;
  }
}
