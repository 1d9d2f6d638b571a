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

/** A window in the form that the script takes. */
interface SharedWindow {
  key: string;
  size: WindowSize;
  /** -1 for no limit. */
  limit: number;
  amount: number;
  /** The slot to count in; absent means the newest. */
  slot?: number;
}

interface SharedAnswer {
  /** The position of the full window; -1 where none is. */
  full: number;
  windows: { count: number; oldestLeavesInMs: number }[];
}

/**
 * Rate windows on the server that several gateways share, all by its clock, with one round trip for
 * each request. While the server is unavailable, each process counts for itself: no request goes
 * uncounted, but each process allows the whole window.
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
    /** The windows that count while the server is unavailable. */
    ownWindows: RateLimiter;
    /** The wall time to use in place of the server's own. */
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
 * Counts in sliding windows, one key each, with the semantics of `SlidingWindow`. A key is a hash
 * with the amount of each slot, the time of a slot's last request in `l<slot>`, their total in `t`,
 * the first slot that may hold any in `f` and the newest in `n`. Each call drops what has left its
 * window since the last one. Arguments: the wall time, 0 for the server's own; then for each key
 * the window and the slot in milliseconds, the limit (-1 for none), the amount and the slot to
 * count in (-1 for the newest); at the end the key that is set for five seconds where no window is
 * full (empty for none). The first full window ends the counting. An amount of 0 only reads.
 * Returns the position of the full window, or 0, and then for each window its count and the time
 * when the oldest of it leaves.
 */
const countWindowsScript: SharedScript = {
  name: "switchyardCountWindows",
  lua: `
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local answer = {0}
for position, key in ipairs(KEYS) do
  local base = position * 5 - 3
  local window, slot_ms, limit = tonumber(ARGV[base]), tonumber(ARGV[base + 1]), tonumber(ARGV[base + 2])
  local amount, at = tonumber(ARGV[base + 3]), tonumber(ARGV[base + 4])
  local current = math.floor(now / slot_ms)
  local head = redis.call('HMGET', key, 't', 'f', 'n', current, 'l' .. current)
  local known = tonumber(head[3])
  local newest = math.max(current, known or 0)
  local oldest = newest - window / slot_ms
  local total, first = tonumber(head[1]) or 0, tonumber(head[2]) or newest
  local changed, slots = false, {[current] = {held = tonumber(head[4]), last = tonumber(head[5])}}
  local function read(slot)
    if not slots[slot] then
      local found = redis.call('HMGET', key, slot, 'l' .. slot)
      slots[slot] = {held = tonumber(found[1]), last = tonumber(found[2])}
    end
    return slots[slot]
  end
  local function leaves(slot) return (read(slot).last or (slot + 1) * slot_ms) + window end
  if known and known < oldest then
    redis.call('DEL', key)
    total, first, slots = 0, newest, {[current] = {}}
  end
  while first < oldest or (total > 0 and first < newest) do
    local held = read(first).held
    if first >= oldest and held and leaves(first) > now then break end
    if held then
      redis.call('HDEL', key, first, 'l' .. first)
      total = total - held
      slots[first] = {}
    end
    first = first + 1
    changed = true
  end
  if answer[1] == 0 and amount > 0 and (at < 0 or at >= oldest) then
    if limit >= 0 and total + amount > limit then
      answer[1] = position
    else
      local slot = at < 0 and newest or math.min(at, newest)
      local counted = read(slot)
      if not counted.held then redis.call('PEXPIRE', key, window + 2 * slot_ms) end
      counted.last = math.max(at < 0 and now or math.min(at * slot_ms, now), counted.last or 0)
      counted.held = (counted.held or 0) + amount
      first = total == 0 and slot or math.min(first, slot)
      total = total + amount
      redis.call('HSET', key, slot, counted.held, 'l' .. slot, counted.last, 't', total, 'f', first, 'n', newest)
      changed = false
    end
  end
  if changed then
    redis.call('HSET', key, 't', total, 'f', first, 'n', newest)
    redis.call('PEXPIRE', key, window + 2 * slot_ms)
  end
  answer[#answer + 1] = total
  answer[#answer + 1] = total > 0 and math.min(leaves(first) - now, window) or 0
end
local admitted = ARGV[#KEYS * 5 + 2]
if admitted ~= '' and answer[1] == 0 then redis.call('SET', admitted, 1, 'PX', 5000) end
return answer`,
};
