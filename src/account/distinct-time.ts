import type { Clock } from "../platform/lib/clock.ts";

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
