import type { Clock } from "../platform/kernel/clock.ts";
import { quotaStateOf, quotaWindowSize } from "../platform/rate-windows/quota-counter.ts";
import { minuteWindow, type WindowSize } from "../platform/rate-windows/named-windows.ts";
import { SharedStateAwayError } from "../platform/shared-state/shared-state-error.ts";
import { admittedKey, type SharedParts } from "../platform/shared-state/shared-state.ts";
import { AdvanceCounts } from "./advance-counts.ts";
import type {
  CountOutcome,
  PastRequests,
  RateLimiter,
  RequestLimits,
  RequestWindows,
  TokenCount,
  TokenWindow,
} from "./rate-limiter.ts";
import type { RateTier } from "./rate-tiers.ts";
import countWindowsText from "./scripts/count-windows.lua" with { type: "text" };
import type { SharedScript } from "../platform/shared-state/redis-client.ts";

/** A window in the form that the script takes. */
interface SharedWindow {
  key: string;
  size: WindowSize;
  /** The limit of the window; -1 for none. */
  limit: number;
  amount: number;
  /** The amount of each request that is counted in advance; absent means one. */
  each?: number;
  /** The slot to count in; absent means the newest. */
  slot?: number;
}

interface SharedAnswer {
  /** The position of the full window among the windows of the request; -1 where none is full. */
  full: number;
  /** The requests that were counted in advance, their slot, and the milliseconds until it ends. */
  ahead: { count: number; slot: number; leftMs: number };
  windows: { count: number; oldestLeavesInMs: number }[];
}

/**
 * Counts requests in rate windows on the server that several gateways share, by the server's clock.
 * A request takes one round trip, but most requests of a caller that sends many take none
 * (`AdvanceCounts`). While the server is unavailable, each process counts in windows of its own: no
 * request goes uncounted, but each process admits as many as the whole window.
 */
export class SharedRateLimiter implements RequestLimits {
  private readonly shared: Pick<SharedParts, "partOf">;
  private readonly ownWindows: RateLimiter;
  private readonly nowMs: () => number;
  private readonly clock: Pick<Clock, "monotonicMs">;
  private readonly advance: AdvanceCounts;

  constructor({
    shared,
    ownWindows,
    clock,
    nowMs = () => 0,
  }: {
    shared: Pick<SharedParts, "partOf">;
    /** The windows that count while the server is unavailable. */
    ownWindows: RateLimiter;
    clock: Pick<Clock, "monotonicMs">;
    /**
     * Returns wall time to use instead of the server's own, in milliseconds; 0 for the server's.
     */
    nowMs?: () => number;
  }) {
    this.shared = shared;
    this.ownWindows = ownWindows;
    this.nowMs = nowMs;
    this.clock = clock;
    this.advance = new AdvanceCounts({
      clock,
      giveBack: ({ owner, counters, tokenKeyIds, slot, count, tokens }) => {
        const back = (key: string, amount: number): SharedWindow => ({
          key,
          size: minuteWindow,
          limit: -1,
          amount: -amount,
          slot,
        });
        const windows = [
          ...counters.map((counter) => back(requestsKey(counter), count)),
          ...tokenKeyIds.map((keyId) => back(tokensKey(keyId), tokens)),
        ];
        void this.unlessAway(() => this.ask(owner, windows));
      },
    });
  }

  count(windows: RequestWindows): CountOutcome | Promise<CountOutcome> {
    const { minutes, hours, workspaceId, tokens } = windows;
    const owner = workspaceId ?? hours?.counter ?? minutes[0].counter;
    // Each answer states what is left of a window of hours, so the server counts every request.
    if (hours !== undefined) return this.countShared(windows, { owner, name: "" });
    const ceilings = tokens?.windows ?? [];
    const name = [
      ...minutes.map(({ counter, tier }) => `${counter} ${tier.perMinute}`),
      ...ceilings.map(({ keyId, perMinute }) => `${keyId} tokens ${perMinute}`),
    ].join(" ");
    const callerWindows = () => ({
      owner,
      counters: minutes.map(({ counter }) => counter),
      tokenKeyIds: ceilings.map(({ keyId }) => keyId),
    });
    if (this.advance.take(name, callerWindows, tokens?.tokens))
      return { admitted: true, tier: minutes[0].tier, hours: undefined };
    return this.countShared(windows, { owner, name });
  }

  private async countShared(
    windows: RequestWindows,
    { owner, name }: { owner: string; name: string },
  ): Promise<CountOutcome> {
    const { minutes, hours, ticket, tokens } = windows;
    const ahead = this.advance.wanted(name);
    const wanted: SharedWindow[] = minutes.map(({ counter, tier }) => ({
      key: requestsKey(counter),
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
    const tokensFrom = wanted.length;
    if (tokens !== undefined) wanted.push(...tokenWindows(tokens, Math.max(1, ahead.tokensEach)));
    const askedAtMs = this.clock.monotonicMs();
    const answer = await this.unlessAway(() =>
      this.ask(owner, wanted, { ticket, ahead: ahead.count }),
    );
    if (ahead.count > 0) {
      const tokensEach = tokens === undefined ? 0 : Math.max(1, ahead.tokensEach);
      this.advance.put(name, { askedAtMs, tokensEach, ...(answer?.ahead ?? noneAhead) });
    }
    if (answer === undefined) return this.ownWindows.count(windows);
    const full = minutes[answer.full];
    const outcome = {
      admitted: full === undefined,
      tier: (full ?? minutes[0]).tier,
      fullTokens: tokens?.windows[answer.full - tokensFrom],
    };
    const left = answer.windows[minutes.length];
    if (hours === undefined || left === undefined) return { ...outcome, hours: undefined };
    return {
      ...outcome,
      hours: { hasRoom: answer.full !== minutes.length, state: quotaStateOf(hours.quota, left) },
    };
  }

  fullOf(minutes: RequestWindows["minutes"]): RateTier | undefined {
    return this.ownWindows.fullOf(minutes);
  }

  async reserveTokens(count: TokenCount, ticket?: string): Promise<TokenWindow | undefined> {
    const [first] = count.windows;
    if (first === undefined) return undefined;
    const answer = await this.unlessAway(() =>
      this.ask(first.workspaceId, tokenWindows(count), { ticket }),
    );
    return answer === undefined ? this.ownWindows.reserveTokens(count) : count.windows[answer.full];
  }

  addTokens(window: TokenWindow, tokens: number): void {
    if (tokens <= 0) return;
    const key = tokensKey(window.keyId);
    const counted = { key, size: minuteWindow, limit: -1, amount: tokens };
    void this.unlessAway(() => this.ask(window.workspaceId, [counted])).then((answer) => {
      if (answer === undefined) this.ownWindows.addTokens(window, tokens);
    });
  }

  async restoreHours(past: readonly PastRequests[]): Promise<void> {
    const asked = past.map(({ counter, atMs, requests, windowSeconds }) => {
      const size = quotaWindowSize({ windowSeconds });
      return this.ask(counter, [
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

  /** Counts in the part of the windows' owner, in which the request's hold is taken as well. */
  private async ask(
    owner: string,
    windows: readonly SharedWindow[],
    { ticket, ahead = 0 }: { ticket?: string | undefined; ahead?: number } = {},
  ): Promise<SharedAnswer> {
    const part = this.shared.partOf(owner);
    const values = windows.flatMap(({ size, limit, amount, each = 1, slot = -1 }) => [
      size.windowMs,
      size.slotMs,
      limit,
      amount,
      slot,
      each,
    ]);
    const keys = windows.map(({ key }) => key);
    const name = ticket === undefined ? "" : admittedKey(part, ticket);
    const [position = 0, count = 0, slot = 0, leftMs = 0, ...states] = (await part.run(
      countWindowsScript,
      { keys, values: [this.nowMs(), ...values, name, ahead] },
    )) as number[];
    return {
      full: position - 1,
      ahead: { count, slot, leftMs },
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

const noneAhead = { count: 0, slot: 0, leftMs: 0 };

const requestsKey = (counter: string): string => `requests:${counter}`;

const hoursKey = (counter: string): string => `hours:${counter}`;

const tokensKey = (keyId: string): string => `tokens:${keyId}`;

/** Returns the windows that count a request's tokens, and those of each request in advance. */
const tokenWindows = ({ windows, tokens }: TokenCount, each = 1): SharedWindow[] =>
  windows.map(({ keyId, perMinute }) => ({
    key: tokensKey(keyId),
    size: minuteWindow,
    limit: perMinute,
    amount: tokens,
    each,
  }));

/**
 * Counts an amount in each of several sliding windows, which work as `SlidingWindow` does, unless
 * one of them is full.
 *
 * Keys: the windows, each of them a hash with these fields:
 *
 * - `<slot>`: the amount in a slot, and `l<slot>` the time of the slot's last request.
 * - `t`: the total of all slots.
 * - `f` and `n`: the first slot that may have an amount, and the newest slot.
 *
 * Values:
 *
 * - The wall time in milliseconds; 0 for the server's own.
 * - For each window its length and the length of its slots in milliseconds, its limit (-1 for none),
 *   the amount, the slot to count in (-1 for the newest), and the amount of each request that is
 *   counted in advance. An amount of 0 only reads the window, and a negative one takes requests back.
 * - The key to set for five seconds where no window is full; empty for none.
 * - How many requests to count in advance, in the current slot and up to half of each limit.
 *
 * Each call first drops what has left its windows since the call before. The first full window ends
 * the counting.
 *
 * Answers the position of the full window, counted from 1, or 0; the number of requests that were
 * counted in advance, their slot, and the milliseconds until it ends; then for each window its total
 * and the milliseconds until its oldest amount leaves, or 0 for a window of a minute.
 */
const countWindowsScript: SharedScript = {
  name: "switchyardCountWindows",
  lua: countWindowsText,
};
