import type { Clock } from "./clock.ts";

const everyMs = 60_000;
const causesMax = 100;

/** Lets one log line per minute and cause through, and counts those in between. */
export class LogLimit {
  private readonly causes = new Map<string, { loggedMs: number; leftOut: number }>();

  constructor(private readonly clock: Clock) {}

  /**
   * Returns how many lines of this cause were left out since the last one; undefined where this one
   * is to be left out too.
   */
  pass(cause: string): number | undefined {
    const nowMs = this.clock.monotonicMs();
    const key = this.causes.has(cause) || this.causes.size < causesMax ? cause : "other";
    const known = this.causes.get(key);
    if (known !== undefined && nowMs - known.loggedMs < everyMs) {
      known.leftOut += 1;
      return undefined;
    }
    this.causes.set(key, { loggedMs: nowMs, leftOut: 0 });
    return known?.leftOut ?? 0;
  }
}
