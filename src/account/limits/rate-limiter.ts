import type { Clock } from "../../platform/lib/clock.ts";
import { NamedWindows } from "./named-windows.ts";
import { QuotaCounter } from "./quota.ts";
import { countsAddresses, type RateTier } from "./rate-tier.ts";
import type {
  CountOutcome,
  PastRequests,
  RequestLimits,
  RequestWindows,
  TokenWindow,
} from "./request-limits.ts";
import { minuteWindow } from "./sliding-window.ts";
import { TokenCounter } from "./token-counter.ts";

/** Addresses that are counted at once, some 20 MB of windows: strangers have as many networks as they pay for, keys are made by callers. */
const addressesMax = 10_000;

/** Rate windows in the memory of this process; everything is answered at once. */
export class RateLimiter implements RequestLimits {
  private readonly quotas: QuotaCounter;
  private readonly tokens: TokenCounter;
  private readonly requests: NamedWindows;
  private readonly addresses: NamedWindows;

  constructor(clock: Clock) {
    this.quotas = new QuotaCounter(clock);
    this.tokens = new TokenCounter(clock);
    this.requests = new NamedWindows(clock, minuteWindow);
    this.addresses = new NamedWindows(clock, minuteWindow, { namesMax: addressesMax });
  }

  count({ minutes, hours }: RequestWindows): CountOutcome {
    const full = minutes.find(
      ({ counter, tier }) =>
        !(countsAddresses(tier) ? this.addresses : this.requests).tryAdd(counter, {
          limit: tier.perMinute,
        }),
    );
    const admitted = full === undefined;
    const { tier } = full ?? minutes[0];
    if (hours === undefined) return { admitted, tier, hours };
    const hasRoom = !admitted || this.quotas.tryAdd(hours.counter, hours.quota);
    return {
      admitted,
      tier,
      hours: { hasRoom, state: this.quotas.stateOf(hours.counter, hours.quota) },
    };
  }

  reserveTokens(windows: readonly TokenWindow[], tokens: number): TokenWindow | undefined {
    return windows.find(
      ({ keyId, perMinute }) => !this.tokens.tryReserve(keyId, { tokens, perMinute }),
    );
  }

  addTokens(keyId: string, tokens: number): void {
    this.tokens.add(keyId, tokens);
  }

  restoreHours(past: readonly PastRequests[]): void {
    for (const { counter, ...requests } of past) this.quotas.restore(counter, requests);
  }
}

/** A tier that a key's own limit narrows. */
export const narrowedTier = (tier: RateTier, perMinuteOverride: number | null): RateTier =>
  perMinuteOverride !== null && perMinuteOverride < tier.perMinute
    ? { ...tier, perMinute: perMinuteOverride }
    : tier;
