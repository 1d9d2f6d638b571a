import type { PlanId } from "../identity/workspaces/workspace-store.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import {
  minuteWindow,
  NamedWindows,
  TokenCounter,
} from "../platform/rate-windows/named-windows.ts";
import {
  QuotaCounter,
  starterWindow,
  type Quota,
  type QuotaState,
} from "../platform/rate-windows/quota.ts";

/** A cap on requests in a sliding window of 60 seconds. */
export interface RateTier {
  /** What callers read as `X-RateLimit-Tier`. */
  id: string;
  perMinute: number;
}

/** What a request is, for its tier. */
export type RateClass = "paid" | "free-model" | "decision" | "account";

/** The cap on requests without a credential, for each address and minute. */
export const anonymousTier: RateTier = { id: "ip", perMinute: 300 };
/**
 * Whether a tier counts addresses, of which strangers have many, rather than keys, which callers
 * make.
 */
const countsAddresses = ({ id }: RateTier): boolean => id === "ip" || id === "mcp-ip";

const freeModelTier: RateTier = { id: "free-model", perMinute: 2400 };
const decisionTier: RateTier = { id: "decision", perMinute: 60 };

const planTiers: Record<PlanId, RateTier> = {
  free: { id: "paid-model", perMinute: 600 },
  payg: { id: "paid-model", perMinute: 600 },
  go: { id: "go", perMinute: 60 },
  pro: { id: "pro", perMinute: 1200 },
  pro_plus: { id: "power", perMinute: 1800 },
  max: { id: "power", perMinute: 1800 },
  enterprise: { id: "enterprise", perMinute: 2400 },
};

/**
 * Tiers by plan and kind of request: the contract's table, with the operator's overrides of plans.
 */
export class RateTiers {
  private readonly plans: Record<PlanId, RateTier>;
  private readonly quotas: Partial<Record<PlanId, Quota>> = { go: starterWindow };

  constructor(
    overrides: Readonly<
      Record<string, { perMinute?: number | undefined; fiveHour?: number | undefined } | undefined>
    > = {},
  ) {
    this.plans = { ...planTiers };
    for (const plan of Object.keys(planTiers) as PlanId[]) {
      const { perMinute, fiveHour } = overrides[plan] ?? {};
      if (perMinute !== undefined) this.plans[plan] = { ...planTiers[plan], perMinute };
      if (fiveHour !== undefined) this.quotas[plan] = { ...starterWindow, requests: fiveHour };
    }
  }

  /** The tier that a key's request falls into; on enterprise it is the plan's for every model. */
  tierFor(plan: PlanId, rateClass: RateClass): RateTier {
    if (rateClass === "decision") return decisionTier;
    if (rateClass === "free-model" && plan !== "enterprise") return freeModelTier;
    return this.plans[plan];
  }

  /**
   * The longer window that a key's request counts in beside its tier; undefined where there is
   * none.
   */
  quotaFor(plan: PlanId, rateClass: RateClass): Quota | undefined {
    return rateClass === "paid" ? this.quotas[plan] : undefined;
  }
}

/** A window of 60 seconds that a request counts in, by the name of its counter. */
export interface MinuteWindow {
  counter: string;
  tier: RateTier;
}

/** A window of hours that a request counts in. */
export interface HourWindow {
  counter: string;
  quota: Quota;
}

/**
 * The windows of one request, in the order in which they count it; the first that is full ends the
 * counting.
 */
export interface RequestWindows {
  minutes: readonly [MinuteWindow, ...MinuteWindow[]];
  hours: HourWindow | undefined;
  /**
   * Names the request for a hold that is asked for before the answer: windows that processes share
   * note under it that they had room (`admittedKey`).
   */
  ticket?: string | undefined;
}

/** What became of a request in its windows. */
export interface CountOutcome {
  admitted: boolean;
  /** The tier whose window refused it, else that of the first. */
  tier: RateTier;
  /**
   * What is left of the window of hours, where there is one, and whether it counted the request or
   * was not asked to.
   */
  hours: { state: QuotaState; hasRoom: boolean } | undefined;
}

/** The ceiling of tokens a minute of one key. */
export interface TokenWindow {
  keyId: string;
  perMinute: number;
}

/**
 * Rate windows, in the memory of this process or shared by several: then there is something to wait
 * for. Every request is counted, so that windows in memory make no promise (decision 0038).
 */
export interface RequestLimits {
  /** Counts a request. */
  count(windows: RequestWindows): CountOutcome | Promise<CountOutcome>;
  /**
   * Counts what a request is going to send in the windows of keys, in their order; gives the first
   * that is full.
   */
  reserveTokens(
    windows: readonly TokenWindow[],
    tokens: number,
  ): TokenWindow | undefined | Promise<TokenWindow | undefined>;
  /** Counts tokens that were used, also beyond the ceiling. */
  addTokens(keyId: string, tokens: number): void;
  /**
   * Counts again what a window of hours had counted before the process ended; `atMs` is a wall
   * time.
   */
  restoreHours(past: readonly PastRequests[]): Promise<void>;
}

/** Requests that a window of hours counted at a wall time. */
export interface PastRequests {
  counter: string;
  atMs: number;
  requests: number;
  windowSeconds: number;
}

/**
 * Addresses that are counted at once, some 20 MB of windows: strangers have as many networks as
 * they pay for, keys are made by callers.
 */
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

  async restoreHours(past: readonly PastRequests[]): Promise<void> {
    for (const { counter, ...requests } of past) this.quotas.restore(counter, requests);
  }
}

/** Tiers that keys' own limits narrow, so that the same limit makes the same tier. */
const narrowed = new WeakMap<RateTier, Map<number, RateTier>>();

/** A tier that a key's own limit narrows; the same object for the same limit. */
export function narrowedTier(tier: RateTier, perMinuteOverride: number | null): RateTier {
  if (perMinuteOverride === null || perMinuteOverride >= tier.perMinute) return tier;
  const known = narrowed.get(tier) ?? new Map<number, RateTier>();
  narrowed.set(tier, known);
  const own = known.get(perMinuteOverride) ?? { ...tier, perMinute: perMinuteOverride };
  known.set(perMinuteOverride, own);
  return own;
}
