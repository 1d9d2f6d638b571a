import { minuteMs, type Clock } from "../../platform/lib/clock.ts";
import { QuotaCounter } from "./quota.ts";
import type { RateTier } from "./rate-tier.ts";
import { SlidingWindow } from "./sliding-window.ts";

/** What the caller is told about its window, admitted or not. */
export interface RateDecision {
  admitted: boolean;
  tier: RateTier;
}

const sweepEveryMs = minuteMs;

/** Sliding 60-second windows by counter name: a key's id and tier, or an anonymous address. */
export class RateLimiter {
  /** Windows of hours beside those of a minute. */
  readonly quotas: QuotaCounter;
  private readonly windows = new Map<string, SlidingWindow>();
  private readonly clock: Clock;
  private nextSweepMs = 0;

  constructor(clock: Clock) {
    this.clock = clock;
    this.quotas = new QuotaCounter(clock);
  }

  /** Counts one request; `perMinuteOverride` narrows the tier for a single key. */
  admit(counter: string, tier: RateTier, perMinuteOverride: number | null = null): RateDecision {
    const nowMs = this.clock.nowMs();
    if (nowMs >= this.nextSweepMs) this.sweep(nowMs);
    let window = this.windows.get(counter);
    if (window === undefined) this.windows.set(counter, (window = new SlidingWindow()));
    const effective = perMinuteOverride !== null && perMinuteOverride < tier.perMinute
      ? { ...tier, perMinute: perMinuteOverride }
      : tier;
    return { admitted: window.tryAdd(nowMs, effective.perMinute), tier: effective };
  }

  /** Forgets windows that count nothing any more, so that addresses do not pile up. */
  private sweep(nowMs: number): void {
    this.nextSweepMs = nowMs + sweepEveryMs;
    for (const [counter, window] of this.windows) {
      if (window.count(nowMs) === 0) this.windows.delete(counter);
    }
  }
}
