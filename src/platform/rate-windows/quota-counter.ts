import { minuteMs, type Clock } from "../kernel/clock.ts";
import { NamedWindows, type WindowSize } from "./named-windows.ts";

/** A cap over hours, beside the tier's cap per minute. */
export interface Quota {
  /** The name in `X-RateLimit-Tier` when the quota refuses a request. */
  id: "starter-window";
  requests: number;
  windowSeconds: number;
}

/** The contract's rolling 5-hour window of the plan `go`. Only requests for paid models count. */
export const starterWindow: Quota = { id: "starter-window", requests: 3000, windowSeconds: 18_000 };

/** The state of a quota. */
export interface QuotaState {
  quota: Quota;
  remaining: number;
  /** Seconds until the oldest counted request leaves the window and makes room. */
  resetSeconds: number;
}

/**
 * Returns the size of a quota's window, with slots of a minute: a request leaves the window with
 * the last of its minute.
 */
export const quotaWindowSize = ({ windowSeconds }: Pick<Quota, "windowSeconds">): WindowSize => ({
  windowMs: windowSeconds * 1000,
  slotMs: minuteMs,
});

/** Rolling windows of hours, by counter name, such as a workspace's id. */
export class QuotaCounter {
  private readonly windows: NamedWindows;

  constructor(clock: Clock) {
    this.windows = new NamedWindows(clock, quotaWindowSize(starterWindow));
  }

  /** Counts one request, if there is room for it. */
  tryAdd(counter: string, quota: Quota): boolean {
    return this.windows.tryAdd(counter, { limit: quota.requests });
  }

  /** Counts requests of an earlier wall time, oldest first. */
  restore(counter: string, { atMs, requests }: { atMs: number; requests: number }): void {
    this.windows.restore(counter, { atMs, amount: requests });
  }

  /** Returns what is left. */
  stateOf(counter: string, quota: Quota): QuotaState {
    return quotaStateOf(quota, this.windows.stateOf(counter));
  }
}

/** Returns what is left of a quota, given the count of its window. */
export const quotaStateOf = (
  quota: Quota,
  { count, oldestLeavesInMs }: { count: number; oldestLeavesInMs: number },
): QuotaState => ({
  quota,
  remaining: Math.max(0, quota.requests - count),
  resetSeconds: Math.ceil(oldestLeavesInMs / 1000),
});
