-- The functions and names that all scripts of the shared ledger start with. Amounts are nano-USD,
-- exact up to 2^53.
--
-- The keys of a workspace are:
-- - `w:` balances: `m` the monthly bucket, `t` top-ups, `fm` and `fn` the current month and the sum
--   of its grants, `h` the held amount, `q` the time of the last search for expired leases, `d`
--   that of the last search for holds of dead gateways; filled from the database where it is absent
-- - `h:` holds by id: `held|key|keyHeld|parent|parentHeld|byok|day|tags|node`
-- - `c:` charges by id that are not known to be committed:
--   `monthly|topup|key|parent|byok|hour|day|tags|node`
-- - `l:` the end of the lease of each hold (`h` and its id) and charge (`c` and its id)
-- - `b:` the sums that blocking budgets limit: spend (`s`) and holds (`h`), each followed by the
--   name of the sum, which is its tag and the days of its period (`tag~first~last`). A hold whose tag
--   ends in `@` and a weight counts there at that many ten-thousandths
-- - `r:` the charges that were confirmed while such a sum is read
-- - `v:` a mark that changes with everything that a reading of the database may have missed
-- - `d:` and the id of a hold: the mark of a charge that was settled without this server; `settled`
--   exists while there may be such a mark
--
-- `k:` and the id of a key has the key's spend by hour (`s`, and `b` through own provider keys,
-- each followed by the hour), its cached spend over a window of hours (`cw` hours up to the hour
-- `ch`: `cs` and `cb`), the held amount (`h`), and the amount that is set aside for open runs (`a`).
-- It is filled from the database too.
--
-- A field `x` in `w:`, `k:` or `b:`, followed by the id of a hold (and by the name of a sum in
-- `b:`), says that the figure was read from the database with the charge of that hold, before the
-- charge was reported. The figure then counts the charge and not the hold. A field `p` in `w:` or
-- `k:` says that there is no such field.
--
-- `nodes` has the time until which each gateway counts as alive. Until the time in `grace`, the
-- holds of dead gateways are kept.
--
-- The first values of each script are the root of all names, the workspace, the wall time (0 for
-- the server's own), the length of a lease, and the gateway that asks. The values that the script
-- names follow.
local root, ws, now, lease, node = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local time = redis.call('TIME')
if now == 0 then now = time[1] * 1000 + math.floor(time[2] / 1000) end
local W, H, C, L, V = root .. 'w:' .. ws, root .. 'h:' .. ws, root .. 'c:' .. ws, root .. 'l:' .. ws, root .. 'v:' .. ws
local B, R = root .. 'b:' .. ws, root .. 'r:' .. ws
local N, G, S = root .. 'nodes', root .. 'grace', root .. 'settled'
local day, hour_ms = 86400000, 3600000
local function text(amount) return string.format('%.0f', amount) end
local function split(entry)
  local parts = {}
  for part in string.gmatch(entry .. '|', '([^|]*)|') do parts[#parts + 1] = part end
  return parts
end
local function field(key, name) return tonumber(redis.call('HGET', key, name)) or 0 end
local function add(key, name, amount)
  if amount ~= 0 then redis.call('HINCRBY', key, name, amount) end
end
-- Every key expires after its epoch: what is held or open is renewed long before.
local function keep(...)
  for _, key in ipairs({...}) do redis.call('PEXPIRE', key, hour_ms) end
end
local function known(key) return redis.call('EXISTS', key) == 1 end
local function mark() redis.call('SET', V, time[1] .. '.' .. time[2], 'PX', day) end
-- The ten-thousandths at which a sum counts an amount, or nil where it does not.
local function weightIn(name, on, tags)
  local tag, first, last = string.match(name, '^(.*)~(%d+)~(%d+)$')
  on = tonumber(on)
  if on < tonumber(first) or on >= tonumber(last) then return nil end
  if string.find(tags, ',' .. tag .. ',', 1, true) then return 10000 end
  local _, to = string.find(tags, ',' .. tag .. '@', 1, true)
  return to and tonumber(string.match(tags, '^%d+', to + 1))
end
-- The price of a cost, rounded up; and the most cost within a price. Both stay exact below 2^53.
local function priced(amount, weight)
  if weight == 10000 or amount == 0 then return amount end
  if amount < 0 then return -priced(-amount, weight) end
  return math.floor(amount / 10000) * weight + math.ceil(amount % 10000 * weight / 10000)
end
local function within(price, weight)
  if weight == 10000 or price < 0 then return price end
  return math.floor(price / weight) * 10000 + math.floor(price % weight * 10000 / weight)
end
-- Calls with each sum that counts what has these tags on a day, and its weight. The field i and a tag
-- names the sums of that tag, so that the sums of other customers cost nothing.
local function eachSum(on, tags, visit)
  on = tonumber(on)
  for entry in string.gmatch(tags, '[^,]+') do
    local tag, weight = string.match(entry, '^(.*)@(%d+)$')
    local names = redis.call('HGET', B, 'i' .. (tag or entry))
    for name in string.gmatch(names or '', '[^,]+') do
      local first, last = string.match(name, '~(%d+)~(%d+)$')
      if on >= tonumber(first) and on < tonumber(last) then visit(name, tonumber(weight) or 10000) end
    end
  end
end
local function indexSum(name)
  local key = 'i' .. string.match(name, '^(.*)~%d+~%d+$')
  local names = redis.call('HGET', B, key)
  if not names then
    redis.call('HSET', B, key, name)
  elseif not string.find(',' .. names .. ',', ',' .. name .. ',', 1, true) then
    redis.call('HSET', B, key, names .. ',' .. name)
  end
end
local function isRead(key, id) return redis.call('HEXISTS', key, 'x' .. id) == 1 end
local function addSums(kind, amount, on, tags, id, times)
  if amount == 0 or not tags or tags == '' or not known(B) then return end
  eachSum(on, tags, function(sum, weight)
    if not isRead(B, id .. ' ' .. sum) then add(B, kind .. sum, priced(amount, weight) * (times or 1)) end
  end)
end
local function holdIds()
  local ids = redis.call('HKEYS', H)
  return #ids == 0 and '[]' or cjson.encode(ids)
end
local figures, spends = {}, {}
local function look(keys)
  local read = redis.call('HMGET', W, 'h', 'm', 't', 'q')
  figures = {
    held = tonumber(read[1]), m = tonumber(read[2]) or 0, t = tonumber(read[3]) or 0,
    sweptAt = tonumber(read[4]) or 0,
  }
  for _, key in ipairs(keys) do
    if key ~= '' then
      local sums = redis.call('HMGET', root .. 'k:' .. key, 'h', 'cw', 'ch', 'cs', 'cb', 'a')
      spends[key] = {
        held = tonumber(sums[1]), window = sums[2], hour = sums[3],
        spent = tonumber(sums[4]) or 0, byok = tonumber(sums[5]) or 0, allocated = tonumber(sums[6]) or 0,
      }
    end
  end
end
local function missing(keys, budgets)
  look(keys)
  local found = {}
  if not figures.held then found[1] = '' end
  for _, key in ipairs(keys) do
    if key ~= '' and not spends[key].held then found[#found + 1] = key end
  end
  for at = 1, #(budgets or {}), 3 do
    if redis.call('HEXISTS', B, 's' .. budgets[at]) == 0 then
      found[#found + 1] = 'b:' .. budgets[at]
    else
      -- A gateway of an earlier release fills sums without their index.
      indexSum(budgets[at])
    end
  end
  if #found == 0 then return nil end
  local charges = redis.call('HGETALL', C)
  return {'unknown', redis.call('GET', V) or '', cjson.encode(found), holdIds(), unpack(charges)}
end
local function addHold(id, entry, sign)
  local parts = split(entry)
  local function addTo(key, amount)
    local there = redis.call('HMGET', key, 'h', 'x' .. id)
    if there[2] then
      if sign < 0 then redis.call('HDEL', key, 'x' .. id) end
    elseif there[1] then
      add(key, 'h', sign * tonumber(amount))
    end
  end
  addTo(W, parts[1])
  for at = 2, 4, 2 do
    if parts[at] ~= '' then addTo(root .. 'k:' .. parts[at], parts[at + 1]) end
  end
  addSums('h', sign * tonumber(parts[1]), parts[7], parts[8], id)
  return parts
end
local function takeHold(id, entry)
  redis.call('HSET', H, id, entry)
  redis.call('ZADD', L, now + lease, 'h' .. id)
  keep(H, L)
  addHold(id, entry, 1)
end
-- Takes new holds that share one entry. All figures that they count towards are filled, and no
-- reading can include their charge.
local function takeHolds(ids, entry)
  local entries, ends, parts = {}, {}, split(entry)
  for _, id in ipairs(ids) do
    entries[#entries + 1], entries[#entries + 2] = id, entry
    ends[#ends + 1], ends[#ends + 2] = now + lease, 'h' .. id
  end
  redis.call('HSET', H, unpack(entries))
  redis.call('ZADD', L, unpack(ends))
  keep(H, L)
  add(W, 'h', #ids * parts[1])
  for at = 2, 4, 2 do
    if parts[at] ~= '' then add(root .. 'k:' .. parts[at], 'h', #ids * parts[at + 1]) end
  end
  addSums('h', tonumber(parts[1]), parts[7], parts[8], ids[1], #ids)
end
local function forgetReadSums(id, tags)
  if not tags or tags == '' or not known(B) then return end
  for entry in string.gmatch(tags, '[^,]+') do
    local names = redis.call('HGET', B, 'i' .. (string.match(entry, '^(.*)@%d+$') or entry))
    for name in string.gmatch(names or '', '[^,]+') do redis.call('HDEL', B, 'x' .. id .. ' ' .. name) end
  end
end
local function dropHold(id)
  local entry = redis.call('HGET', H, id)
  redis.call('ZREM', L, 'h' .. id)
  if not entry then return end
  redis.call('HDEL', H, id)
  local parts = addHold(id, entry, -1)
  forgetReadSums(id, parts[8])
  return parts
end
local function spend(id, hour, amount, byok)
  local key = root .. 'k:' .. id
  if id == '' or not known(key) then return end
  add(key, 's' .. hour, amount)
  add(key, 'b' .. hour, byok)
  if redis.call('HGET', key, 'ch') == tostring(hour) then
    add(key, 'cs', amount)
    add(key, 'cb', byok)
  else
    redis.call('HDEL', key, 'ch')
  end
end
local function spent(id, window, hour, byok)
  local sums = spends[id]
  if sums.window ~= tostring(window) or sums.hour ~= tostring(hour) then
    local key, names = root .. 'k:' .. id, {}
    -- The next hour is included, because clocks of gateways differ by minutes.
    for age = -1, window do
      names[#names + 1] = 's' .. (hour - age)
      names[#names + 1] = 'b' .. (hour - age)
    end
    local amounts, total = redis.call('HMGET', key, unpack(names)), {0, 0}
    for at = 1, #names do total[2 - at % 2] = total[2 - at % 2] + (tonumber(amounts[at]) or 0) end
    sums.window, sums.hour, sums.spent, sums.byok = tostring(window), tostring(hour), total[1], total[2]
    redis.call('HSET', key, 'cw', window, 'ch', hour, 'cs', text(total[1]), 'cb', text(total[2]))
  end
  return sums.spent + (byok and sums.byok or 0)
end
local function bound(keys, hour, byokOnly, budgets)
  local free, others, reason = nil, 0, 'insufficient_balance'
  if not byokOnly then
    others = figures.held
    free = figures.m + figures.t - others
  end
  for at = 1, #keys, 4 do
    local limit, counts = tonumber(keys[at + 1]), keys[at + 3] == '1'
    if keys[at] ~= '' and limit >= 0 and (counts or not byokOnly) then
      local there = spends[keys[at]].held
      local left = limit - spent(keys[at], tonumber(keys[at + 2]), hour, counts) - there - spends[keys[at]].allocated
      if free == nil or left < free then free, others, reason = left, there, 'key_limit' end
    end
  end
  for at = 1, #(budgets or {}), 3 do
    local there, weight = field(B, 'h' .. budgets[at]), tonumber(budgets[at + 2])
    local left = within(tonumber(budgets[at + 1]) - field(B, 's' .. budgets[at]) - there, weight)
    if left < free then
      free, others, reason = left, within(there, weight), 'budget ' .. string.format('%d', (at - 1) / 3)
    end
  end
  return free, others, reason
end
local function amountToHold(free, ceiling, begin, least, share)
  if ceiling * 8 <= free then return ceiling end
  if free <= 0 or free < least then return nil end
  if share == '1' then begin = math.max(begin, math.floor(free / 8)) end
  return math.min(ceiling, begin, free)
end
local function holdEntry(held, byok, keys, on, tags, owner)
  local parts = {text(held)}
  for at = 1, 5, 4 do
    parts[#parts + 1] = keys[at]
    parts[#parts + 1] = text(keys[at + 3] == '1' and math.max(byok, held) or held)
  end
  parts[#parts + 1] = text(byok)
  parts[#parts + 1] = on
  parts[#parts + 1] = tags
  parts[#parts + 1] = owner
  return table.concat(parts, '|')
end
local function forget(keys)
  mark()
  redis.call('DEL', W, B, R)
  for _, key in ipairs(keys) do
    if key ~= '' then redis.call('DEL', root .. 'k:' .. key) end
  end
end
local function isSettled(id) return redis.call('EXISTS', root .. 'd:' .. id) == 1 end
local function isGrace() return (tonumber(redis.call('GET', G)) or 0) > now end
local function sweepDead()
  local since = redis.call('HGET', W, 'd')
  local dead, isDead = redis.call('ZRANGEBYSCORE', N, since and '(' .. since or '-inf', now), {}
  if #dead == 0 or isGrace() then return end
  for _, each in ipairs(dead) do isDead[each] = true end
  local charges, holds, readings, isFound = redis.call('HGETALL', C), redis.call('HGETALL', H), {}, false
  for at = 1, #charges, 2 do
    if isDead[split(charges[at + 1])[9] or ''] then redis.call('ZADD', L, now, 'c' .. charges[at]) end
  end
  for at = 1, #holds, 2 do
    local parts = split(holds[at + 1])
    if isDead[parts[9] or ''] then
      isFound, readings[#readings + 1], readings[#readings + 2] = true, parts[2], parts[4]
      dropHold(holds[at])
    end
  end
  if isFound then
    -- The database may have charges of these holds that were never reported here.
    forget(readings)
  elseif known(W) then
    redis.call('HSET', W, 'd', text(now))
  end
end
local function isSweepDue() return math.abs(now - figures.sweptAt) >= 1000 end
local function sweepLapsed()
  sweepDead()
  local lapsed, charges = redis.call('ZRANGEBYSCORE', L, '-inf', now, 'LIMIT', 0, 50), {}
  if #lapsed == 0 or isGrace() then return charges end
  for _, member in ipairs(lapsed) do
    if string.sub(member, 1, 1) == 'c' then
      charges[#charges + 1] = member
    else
      -- The database may have a charge of this hold that was never reported here.
      local parts = dropHold(string.sub(member, 2))
      if parts then forget({parts[2], parts[4]}) end
    end
  end
  return charges
end
local function renewed(charges)
  local entries = {}
  if #charges > 0 then keep(C, L) end
  for _, member in ipairs(charges) do
    local id = string.sub(member, 2)
    redis.call('ZADD', L, now + lease, member)
    local entry = redis.call('HGET', C, id)
    if entry then entries[#entries + 1], entries[#entries + 2] = id, entry end
  end
  return entries
end
local function book(id, parts)
  parts[7], parts[8], parts[9] = parts[7] or '0', parts[8] or '', node
  add(W, 'm', -tonumber(parts[1]))
  add(W, 't', -tonumber(parts[2]))
  for at = 3, 4 do spend(parts[at], parts[6], parts[1] + parts[2], tonumber(parts[5])) end
  addSums('s', parts[1] + parts[2], parts[7], parts[8], id)
  redis.call('HSET', C, id, table.concat(parts, '|'))
  redis.call('ZADD', L, now + lease, 'c' .. id)
  keep(C, L)
end
