import type { Quota, QuotaState } from "./quota.ts";
import type { RateTier } from "./rate-tier.ts";

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

/** The windows of one request, in the order in which they count it; the first that is full ends the counting. */
export interface RequestWindows {
  minutes: readonly [MinuteWindow, ...MinuteWindow[]];
  hours: HourWindow | undefined;
}

/** What became of a request in its windows. */
export interface CountOutcome {
  admitted: boolean;
  /** The tier whose window refused it, else that of the first. */
  tier: RateTier;
  /** What is left of the window of hours, where there is one, and whether it counted the request or was not asked to. */
  hours: { state: QuotaState; hasRoom: boolean } | undefined;
}

/** The ceiling of tokens a minute of one key. */
export interface TokenWindow {
  keyId: string;
  perMinute: number;
}

/** Rate windows, in the memory of this process or shared by several: then there is something to wait for. */
export interface RequestLimits {
  /** Counts a request. */
  count(windows: RequestWindows): CountOutcome | Promise<CountOutcome>;
  /** Counts what a request is going to send in the windows of keys, in their order; gives the first that is full. */
  reserveTokens(
    windows: readonly TokenWindow[],
    tokens: number,
  ): TokenWindow | undefined | Promise<TokenWindow | undefined>;
  /** Counts tokens that were used whatever the ceiling. */
  addTokens(keyId: string, tokens: number): void;
  /** Counts again what a window of hours had counted before the process ended; `atMs` is a wall time. */
  restoreHours(past: readonly PastRequests[]): void | Promise<void>;
}

/** Requests that a window of hours counted at a wall time. */
export interface PastRequests {
  counter: string;
  atMs: number;
  requests: number;
  windowSeconds: number;
}
