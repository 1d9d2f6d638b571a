import { quotaStateOf, quotaWindowSize } from "../platform/rate-windows/quota.ts";
import { minuteWindow, type WindowSize } from "../platform/rate-windows/named-windows.ts";
import { SharedStateAwayError } from "../platform/shared-state/shared-state-error.ts";
import {
  admittedKey,
  type SharedScript,
  type SharedState,
} from "../platform/shared-state/shared-state.ts";
import type {
  CountOutcome,
  PastRequests,
  RateLimiter,
  RequestLimits,
  RequestWindows,
  TokenWindow,
} from "./rate-limiter.ts";

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
 * Rate windows on the server that several gateways share, all by its clock: one round trip a
 * request. While the server is away each process counts for itself, so no request goes uncounted,
 * but each process has the whole window.
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
    const { minutes, hours, ticket } = windows;
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
    const answer = await this.unlessAway(() => this.ask(wanted, ticket));
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

  private async ask(windows: readonly SharedWindow[], ticket?: string): Promise<SharedAnswer> {
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
      values: [this.nowMs(), ...values, ticket === undefined ? "" : admittedKey(ticket)],
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

/**
 * Counts in sliding windows, one key each, the semantics of `SlidingWindow`: a hash with an amount
 * a slot, the time of a slot's last request `l<slot>`, their total `t`, the first slot that may
 * hold any `f` and the newest `n`. Each call drops what left its window since the last one. Values:
 * the wall time, 0 for the server's own; then for each key the window and the slot in milliseconds,
 * the limit (-1 for none), the amount and the slot to count in (-1 for the newest); at the end what
 * is set for five seconds where no window is full (empty for nothing). The first window that is
 * full ends the counting; an amount of 0 only looks. Answers its position, or 0, and then for each
 * window what it counts and when the oldest of it leaves.
 */
const countWindowsScript: SharedScript = {
  name: "switchyardCountWindows",
  lua: `
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local function leaves(key, slot, slot_ms, window)
  return (tonumber(redis.call('HGET', key, 'l' .. slot)) or (slot + 1) * slot_ms) + window
end
local answer = {0}
for position, key in ipairs(KEYS) do
  local base = position * 5 - 3
  local window, slot_ms, limit = tonumber(ARGV[base]), tonumber(ARGV[base + 1]), tonumber(ARGV[base + 2])
  local amount, at = tonumber(ARGV[base + 3]), tonumber(ARGV[base + 4])
  local size = window / slot_ms + 1
  local head = redis.call('HMGET', key, 't', 'f', 'n')
  local known = tonumber(head[3])
  local newest = math.max(math.floor(now / slot_ms), known or 0)
  local oldest = newest - size + 1
  local total, first = tonumber(head[1]) or 0, tonumber(head[2]) or newest
  local changed = false
  if known and known < oldest then
    redis.call('DEL', key)
    total, first = 0, newest
  end
  while first < oldest or (total > 0 and first < newest) do
    local held = tonumber(redis.call('HGET', key, first))
    if first >= oldest and held and leaves(key, first, slot_ms, window) > now then break end
    if held then
      redis.call('HDEL', key, first, 'l' .. first)
      total = total - held
    end
    first = first + 1
    changed = true
  end
  if answer[1] == 0 and amount > 0 and (at < 0 or at >= oldest) then
    if limit >= 0 and total + amount > limit then
      answer[1] = position
    else
      local slot = at < 0 and newest or math.min(at, newest)
      local last = at < 0 and now or math.min(at * slot_ms, now)
      redis.call('HINCRBY', key, slot, amount)
      redis.call('HSET', key, 'l' .. slot, math.max(last, tonumber(redis.call('HGET', key, 'l' .. slot)) or 0))
      first = total == 0 and slot or math.min(first, slot)
      total = total + amount
      changed = true
    end
  end
  if changed then
    redis.call('HSET', key, 't', total, 'f', first, 'n', newest)
    redis.call('PEXPIRE', key, window + 2 * slot_ms)
  end
  answer[#answer + 1] = total
  answer[#answer + 1] = total > 0 and math.min(leaves(key, first, slot_ms, window) - now, window) or 0
end
local admitted = ARGV[#KEYS * 5 + 2]
if admitted ~= '' and answer[1] == 0 then redis.call('SET', admitted, 1, 'PX', 5000) end
return answer`,
};
