import { minuteMs, type Clock } from "../kernel/clock.ts";
import { NamedWindows, type WindowSize } from "./named-windows.ts";

/** A cap over hours beside the tier's cap of a minute. */
export interface Quota {
  /** What callers read as `X-RateLimit-Tier` when it refuses them. */
  id: "starter-window";
  requests: number;
  windowSeconds: number;
}

/** The contract's rolling 5-hour window of the plan `go`; only requests for paid models count. */
export const starterWindow: Quota = { id: "starter-window", requests: 3000, windowSeconds: 18_000 };

/** What is left of a quota. */
export interface QuotaState {
  quota: Quota;
  remaining: number;
  /** Until the oldest counted request leaves the window and makes room. */
  resetSeconds: number;
}

/** Minute slots: a request leaves the window with the last of its minute. */
export const quotaWindowSize = ({ windowSeconds }: Pick<Quota, "windowSeconds">): WindowSize => ({
  windowMs: windowSeconds * 1000,
  slotMs: minuteMs,
});

/** Rolling windows of hours by counter name, such as a workspace's id. */
export class QuotaCounter {
  private readonly windows: NamedWindows;

  constructor(clock: Clock) {
    this.windows = new NamedWindows(clock, quotaWindowSize(starterWindow));
  }

  /** Counts one request, if there is room for it. */
  tryAdd(counter: string, quota: Quota): boolean {
    return this.windows.tryAdd(counter, { limit: quota.requests });
  }

  /** Counts requests of an earlier wall time, the oldest first. */
  restore(counter: string, { atMs, requests }: { atMs: number; requests: number }): void {
    this.windows.restore(counter, { atMs, amount: requests });
  }

  /** What is left. */
  stateOf(counter: string, quota: Quota): QuotaState {
    return quotaStateOf(quota, this.windows.stateOf(counter));
  }
}

/** What is left of a quota whose window counts this. */
export const quotaStateOf = (
  quota: Quota,
  { count, oldestLeavesInMs }: { count: number; oldestLeavesInMs: number },
): QuotaState => ({
  quota,
  remaining: Math.max(0, quota.requests - count),
  resetSeconds: Math.ceil(oldestLeavesInMs / 1000),
});
