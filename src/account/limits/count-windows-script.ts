import type { SharedScript } from "../../platform/shared-state/shared-state.ts";

/**
 * Counts in sliding windows, one key each, the semantics of `SlidingWindow`: a hash with an amount a slot, the time of a
 * slot's last request `l<slot>`, their total `t`, the first slot that may hold any `f` and the newest `n`. Each call
 * drops what left its window since the last one. Values: the wall time, 0 for the server's own; then for each key the
 * window and the slot in milliseconds, the limit (-1 for none), the amount and the slot to count in (-1 for the newest).
 * The first window that is full ends the counting; an amount of 0 only looks. Answers its position, or 0, and then for
 * each window what it counts and when the oldest of it leaves.
 */
export const countWindowsScript: SharedScript = {
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
return answer`,
};
