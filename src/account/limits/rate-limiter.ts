import type { Clock } from "../../platform/lib/clock.ts";
import { NamedWindows } from "./named-windows.ts";
import { QuotaCounter } from "./quota.ts";
import type { RateTier } from "./rate-tier.ts";
import { minuteWindow } from "./sliding-window.ts";
import { TokenCounter } from "./token-counter.ts";

/** What the caller is told about its window, admitted or not. */
export interface RateDecision {
  admitted: boolean;
  tier: RateTier;
}

/** Sliding 60-second windows by counter name: a key's id and tier, or an anonymous address. */
export class RateLimiter {
  /** Windows of hours beside those of a minute. */
  readonly quotas: QuotaCounter;
  /** Tokens of keys that have a ceiling of their own. */
  readonly tokens: TokenCounter;
  private readonly requests: NamedWindows;

  constructor(clock: Clock) {
    this.quotas = new QuotaCounter(clock);
    this.tokens = new TokenCounter(clock);
    this.requests = new NamedWindows(clock, minuteWindow);
  }

  /** Counts one request; `perMinuteOverride` narrows the tier for a single key. */
  admit(counter: string, tier: RateTier, perMinuteOverride: number | null = null): RateDecision {
    const effective = perMinuteOverride !== null && perMinuteOverride < tier.perMinute
      ? { ...tier, perMinute: perMinuteOverride }
      : tier;
    return { admitted: this.requests.tryAdd(counter, { limit: effective.perMinute }), tier: effective };
  }
}
