local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local answer, counts, ahead = {0, 0, 0, 0}, {}, tonumber(ARGV[#KEYS * 6 + 3])
for position, key in ipairs(KEYS) do
  local base = position * 6 - 4
  local window, slot_ms, limit = tonumber(ARGV[base]), tonumber(ARGV[base + 1]), tonumber(ARGV[base + 2])
  local amount, at, each = tonumber(ARGV[base + 3]), tonumber(ARGV[base + 4]), tonumber(ARGV[base + 5])
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
  -- A slot after the oldest one cannot have left the window. Only windows of hours say when their
  -- oldest amount leaves.
  local isLong = window > 60000
  while first < oldest or (total > 0 and first < newest and (isLong or first == oldest)) do
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
  if amount < 0 then
    local counted = read(at)
    local back = math.min(-amount, counted.held or 0)
    if back > 0 then
      counted.held = counted.held - back
      total = total - back
      redis.call('HSET', key, at, counted.held, 't', total)
    end
  elseif answer[1] == 0 and amount > 0 and (at < 0 or at >= oldest) then
    if limit >= 0 and total + amount > limit then
      answer[1] = position
    else
      local slot = at < 0 and newest or math.min(at, newest)
      local counted = read(slot)
      local isNewSlot = not counted.held
      counted.last = math.max(at < 0 and now or math.min(at * slot_ms, now), counted.last or 0)
      counted.held = (counted.held or 0) + amount
      first = total == 0 and slot or math.min(first, slot)
      total = total + amount
      redis.call('HSET', key, slot, counted.held, 'l' .. slot, counted.last, 't', total, 'f', first, 'n', newest)
      -- After the write: a key that does not exist yet cannot be given an expiry.
      if isNewSlot then redis.call('PEXPIRE', key, window + 2 * slot_ms) end
      changed = false
      if limit >= 0 then ahead = math.min(ahead, math.floor((math.floor(limit / 2) - total) / each)) end
      if slot ~= current then ahead = 0 end
      counts[position] = {slot = slot, held = counted.held, total = total, ends = (slot + 1) * slot_ms - 1, each = each}
    end
  end
  if changed then
    redis.call('HSET', key, 't', total, 'f', first, 'n', newest)
    redis.call('PEXPIRE', key, window + 2 * slot_ms)
  end
  answer[#answer + 1] = total
  answer[#answer + 1] = isLong and total > 0 and math.min(leaves(first) - now, window) or 0
end
if answer[1] > 0 then return answer end
local admitted = ARGV[#KEYS * 6 + 2]
if admitted ~= '' then redis.call('SET', admitted, 1, 'PX', 5000) end
if ahead > 0 and #counts == #KEYS then
  for position, counted in ipairs(counts) do
    local amount = ahead * counted.each
    redis.call('HSET', KEYS[position], counted.slot, counted.held + amount, 'l' .. counted.slot, counted.ends, 't', counted.total + amount)
  end
  answer[2], answer[3], answer[4] = ahead, counts[1].slot, counts[1].ends - now
end
return answer
