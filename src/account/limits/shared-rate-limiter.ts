import type { SharedState } from "../../platform/shared-state/shared-state.ts";
import { SharedStateAwayError } from "../../platform/shared-state/shared-state-error.ts";
import { countWindowsScript } from "./count-windows-script.ts";
import { quotaStateOf, quotaWindowSize } from "./quota.ts";
import type { RateLimiter } from "./rate-limiter.ts";
import type {
  CountOutcome,
  PastRequests,
  RequestLimits,
  RequestWindows,
  TokenWindow,
} from "./request-limits.ts";
import { minuteWindow, type WindowSize } from "./sliding-window.ts";

/** One window as the script wants it. */
interface SharedWindow {
  key: string;
  size: WindowSize;
  /** -1 where there is none. */
  limit: number;
  amount: number;
  /** The slot that it is counted in; absent means the newest. */
  slot?: number;
}

interface SharedAnswer {
  /** Position of the window that is full; -1 where none is. */
  full: number;
  windows: { count: number; oldestLeavesInMs: number }[];
}

/**
 * Rate windows on the server that several gateways share, all by its clock: one round trip a request. While the
 * server is away each process counts for itself, so no request goes uncounted, but each process has the whole window.
 */
export class SharedRateLimiter implements RequestLimits {
  private readonly shared: Pick<SharedState, "run">;
  private readonly ownWindows: RateLimiter;
  private readonly nowMs: () => number;

  constructor({
    shared,
    ownWindows,
    nowMs = () => 0,
  }: {
    shared: Pick<SharedState, "run">;
    /** What counts while the server is away. */
    ownWindows: RateLimiter;
    /** Wall time in place of the server's own. */
    nowMs?: () => number;
  }) {
    this.shared = shared;
    this.ownWindows = ownWindows;
    this.nowMs = nowMs;
  }

  async count(windows: RequestWindows): Promise<CountOutcome> {
    const { minutes, hours } = windows;
    const wanted: SharedWindow[] = minutes.map(({ counter, tier }) => ({
      key: `requests:${counter}`,
      size: minuteWindow,
      limit: tier.perMinute,
      amount: 1,
    }));
    if (hours !== undefined) {
      const { counter, quota } = hours;
      wanted.push({
        key: hoursKey(counter),
        size: quotaWindowSize(quota),
        limit: quota.requests,
        amount: 1,
      });
    }
    const answer = await this.unlessAway(() => this.ask(wanted));
    if (answer === undefined) return this.ownWindows.count(windows);
    const full = minutes[answer.full];
    const outcome = { admitted: full === undefined, tier: (full ?? minutes[0]).tier };
    const left = answer.windows[minutes.length];
    if (hours === undefined || left === undefined) return { ...outcome, hours: undefined };
    return {
      ...outcome,
      hours: { hasRoom: answer.full !== minutes.length, state: quotaStateOf(hours.quota, left) },
    };
  }

  async reserveTokens(
    windows: readonly TokenWindow[],
    tokens: number,
  ): Promise<TokenWindow | undefined> {
    const wanted = windows.map(
      ({ keyId, perMinute }): SharedWindow => ({
        key: tokensKey(keyId),
        size: minuteWindow,
        limit: perMinute,
        amount: tokens,
      }),
    );
    const answer = await this.unlessAway(() => this.ask(wanted));
    return answer === undefined
      ? this.ownWindows.reserveTokens(windows, tokens)
      : windows[answer.full];
  }

  addTokens(keyId: string, tokens: number): void {
    if (tokens <= 0) return;
    const window = { key: tokensKey(keyId), size: minuteWindow, limit: -1, amount: tokens };
    void this.unlessAway(() => this.ask([window])).then((answer) => {
      if (answer === undefined) this.ownWindows.addTokens(keyId, tokens);
    });
  }

  async restoreHours(past: readonly PastRequests[]): Promise<void> {
    const asked = past.map(({ counter, atMs, requests, windowSeconds }) => {
      const size = quotaWindowSize({ windowSeconds });
      return this.ask([
        {
          key: hoursKey(counter),
          size,
          limit: -1,
          amount: requests,
          slot: Math.floor(atMs / size.slotMs),
        },
      ]);
    });
    await Promise.all(asked);
  }

  private async ask(windows: readonly SharedWindow[]): Promise<SharedAnswer> {
    const values = windows.flatMap(({ size, limit, amount, slot = -1 }) => [
      size.windowMs,
      size.slotMs,
      limit,
      amount,
      slot,
    ]);
    const keys = windows.map(({ key }) => key);
    const [position = 0, ...states] = (await this.shared.run(countWindowsScript, {
      keys,
      values: [this.nowMs(), ...values],
    })) as number[];
    return {
      full: position - 1,
      windows: windows.map((_, index) => ({
        count: states[index * 2] ?? 0,
        oldestLeavesInMs: states[index * 2 + 1] ?? 0,
      })),
    };
  }

  private async unlessAway<Answer>(ask: () => Promise<Answer>): Promise<Answer | undefined> {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof SharedStateAwayError) return undefined;
      throw error;
    }
  }
}

const hoursKey = (counter: string): string => `hours:${counter}`;

const tokensKey = (keyId: string): string => `tokens:${keyId}`;
