import type { Clock } from "../clock.ts";

/** Wall times that are all different, so that lists by age have a definite order. */
export class DistinctTime {
  private newestMs = 0;

  constructor(private readonly clock: Clock) {}

  /** Returns the present time, or the first millisecond after the last one that was returned. */
  nextMs(): number {
    this.newestMs = Math.max(this.clock.nowMs(), this.newestMs + 1);
    return this.newestMs;
  }
}
