import type { Clock } from "../platform/kernel/clock.ts";
import { minuteWindow, NamedWindows } from "../platform/rate-windows/named-windows.ts";
import {
  QuotaCounter,
  type Quota,
  type QuotaState,
} from "../platform/rate-windows/quota-counter.ts";
import type { RateTier } from "./rate-tiers.ts";

/**
 * Returns whether a tier counts addresses, of which strangers have many, rather than keys, which
 * callers create.
 */
const countsAddresses = ({ id }: RateTier): boolean => id === "ip" || id === "mcp-ip";

/** A window of 60 seconds that a request counts in, and the name of its counter. */
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
 * The windows of one request, in the order in which they count it. The first full one ends the
 * counting.
 */
export interface RequestWindows {
  minutes: readonly [MinuteWindow, ...MinuteWindow[]];
  hours: HourWindow | undefined;
  /** The tokens that the request is about to send; absent where no window counts them. */
  tokens?: TokenCount | undefined;
  /**
   * The workspace that the windows belong to; absent for a window outside of workspaces, such as an
   * address's.
   */
  workspaceId?: string | undefined;
  /**
   * Names the request to a hold that is requested before the windows answer: windows that processes
   * share record under it that they had room (`admittedKey`).
   */
  ticket?: string | undefined;
}

/** The outcome of counting a request in its windows. */
export interface CountOutcome {
  admitted: boolean;
  /** The tier whose window refused it, or else that of the first window. */
  tier: RateTier;
  /**
   * The state of the window of hours, where there is one, and whether it had room for the request
   * or was not asked.
   */
  hours: { state: QuotaState; hasRoom: boolean } | undefined;
  /** The window of tokens that refused the request; absent where none did. */
  fullTokens?: TokenWindow | undefined;
}

/** The ceiling of tokens per minute of one key. */
export interface TokenWindow {
  keyId: string;
  workspaceId: string;
  perMinute: number;
}

/** Tokens that a request is about to send, and the windows that count them. */
export interface TokenCount {
  windows: readonly TokenWindow[];
  tokens: number;
}

/**
 * Rate windows, in the memory of this process or shared by several. Only shared ones return
 * promises: every request is counted, so windows in memory answer synchronously (decision 0038).
 */
export interface RequestLimits {
  /** Counts a request. */
  count(windows: RequestWindows): CountOutcome | Promise<CountOutcome>;
  /** Returns the tier of the first window that is full in this process; counts nothing. */
  fullOf(minutes: readonly MinuteWindow[]): RateTier | undefined;
  /**
   * Counts tokens in the windows of keys, in order, for a request that was counted before. Returns
   * the first full one. The ticket is the one of `RequestWindows`.
   */
  reserveTokens(
    count: TokenCount,
    ticket?: string,
  ): TokenWindow | undefined | Promise<TokenWindow | undefined>;
  /** Counts tokens that were used, even beyond the ceiling. */
  addTokens(window: TokenWindow, tokens: number): void;
  /**
   * Restores the requests that a window of hours had counted before the process ended. `atMs` is a
   * wall time.
   */
  restoreHours(past: readonly PastRequests[]): Promise<void>;
}

/** Requests that a window of hours counted at a wall time. */
export interface PastRequests {
  /** The workspace's id. */
  counter: string;
  atMs: number;
  requests: number;
  windowSeconds: number;
}

/**
 * The most addresses that are counted at once, which takes some 20 MB. Addresses need a bound
 * because strangers can have any number of networks; keys do not, because only callers create them.
 */
const addressesMax = 10_000;

/** Rate windows in the memory of this process, which answer synchronously. */
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

  count({ minutes, hours, tokens }: RequestWindows): CountOutcome {
    const full = minutes.find(
      ({ counter, tier }) =>
        !(countsAddresses(tier) ? this.addresses : this.requests).tryAdd(counter, {
          limit: tier.perMinute,
        }),
    );
    const admitted = full === undefined;
    const { tier } = full ?? minutes[0];
    const hasRoom =
      hours === undefined || !admitted || this.quotas.tryAdd(hours.counter, hours.quota);
    const countsTokens = tokens !== undefined && admitted && hasRoom;
    const fullTokens = countsTokens ? this.reserveTokens(tokens) : undefined;
    if (hours === undefined) return { admitted, tier, hours, fullTokens };
    return {
      admitted,
      tier,
      hours: { hasRoom, state: this.quotas.stateOf(hours.counter, hours.quota) },
      fullTokens,
    };
  }

  fullOf(minutes: readonly MinuteWindow[]): RateTier | undefined {
    return minutes.find(
      ({ counter, tier }) => this.requests.stateOf(counter).count >= tier.perMinute,
    )?.tier;
  }

  reserveTokens({ windows, tokens }: TokenCount): TokenWindow | undefined {
    return windows.find(
      ({ keyId, perMinute }) => !this.tokens.tryReserve(keyId, { tokens, perMinute }),
    );
  }

  addTokens({ keyId }: TokenWindow, tokens: number): void {
    this.tokens.add(keyId, tokens);
  }

  async restoreHours(past: readonly PastRequests[]): Promise<void> {
    for (const { counter, ...requests } of past) this.quotas.restore(counter, requests);
  }
}

/** Tiers narrowed by keys' own limits, cached so that the same limit yields the same tier. */
const narrowed = new WeakMap<RateTier, Map<number, RateTier>>();

/** Narrows a tier by a key's own limit; the same object for the same limit. */
export function narrowedTier(tier: RateTier, perMinuteOverride: number | null): RateTier {
  if (perMinuteOverride === null || perMinuteOverride >= tier.perMinute) return tier;
  const known = narrowed.get(tier) ?? new Map<number, RateTier>();
  narrowed.set(tier, known);
  const own = known.get(perMinuteOverride) ?? { ...tier, perMinute: perMinuteOverride };
  known.set(perMinuteOverride, own);
  return own;
}

/** Counts the tokens of the last 60 seconds by key, for keys with a ceiling (`tpm`). */
class TokenCounter {
  private readonly windows: NamedWindows;

  constructor(clock: Clock) {
    this.windows = new NamedWindows(clock, minuteWindow);
  }

  /**
   * Counts the tokens that a request is about to send, unless that would exceed the key's ceiling.
   */
  tryReserve(keyId: string, { tokens, perMinute }: { tokens: number; perMinute: number }): boolean {
    return this.windows.tryAdd(keyId, { limit: perMinute, amount: tokens });
  }

  /**
   * Counts tokens that were used, even above the ceiling, since an answer's length is known only
   * afterwards.
   */
  add(keyId: string, tokens: number): void {
    if (tokens > 0) this.windows.tryAdd(keyId, { limit: Infinity, amount: tokens });
  }
}
