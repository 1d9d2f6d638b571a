import { hourMs, minuteMs, type Clock } from "../../platform/lib/clock.ts";
import { SlidingWindow } from "./sliding-window.ts";

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

/** Minute slots: a request leaves the window at most a minute later than it should. */
const windowSizeOf = ({ windowSeconds }: Quota) => ({
  windowMs: windowSeconds * 1000,
  slotMs: minuteMs,
});

/** Rolling windows of hours by counter name, such as a key's id. */
export class QuotaCounter {
  private readonly windows = new Map<string, SlidingWindow>();
  private readonly clock: Clock;
  private nextSweepMs = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Counts one request, if there is room for it. */
  tryAdd(counter: string, quota: Quota): boolean {
    const nowMs = this.clock.nowMs();
    if (nowMs >= this.nextSweepMs) this.sweep(nowMs);
    let window = this.windows.get(counter);
    if (window === undefined)
      this.windows.set(counter, (window = new SlidingWindow(windowSizeOf(quota))));
    return window.tryAdd(nowMs, quota.requests);
  }

  /** What is left. */
  stateOf(counter: string, quota: Quota): QuotaState {
    const nowMs = this.clock.nowMs();
    const window = this.windows.get(counter);
    return {
      quota,
      remaining: Math.max(0, quota.requests - (window?.count(nowMs) ?? 0)),
      resetSeconds: Math.ceil((window?.oldestLeavesInMs(nowMs) ?? 0) / 1000),
    };
  }

  private sweep(nowMs: number): void {
    this.nextSweepMs = nowMs + hourMs;
    for (const [counter, window] of this.windows) {
      if (window.count(nowMs) === 0) this.windows.delete(counter);
    }
  }
}
