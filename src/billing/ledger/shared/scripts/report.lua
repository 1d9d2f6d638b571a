local charges, ids, members = {}, {}, {}
for at = 6, #ARGV, 8 do
  local id, m, t, key, parent, hour, on, tags = unpack(ARGV, at, at + 7)
  charges[#charges + 1] = {m, t, key, parent, '0', hour, on, tags, node}
  ids[#ids + 1], members[#members + 1] = id, 'h' .. id
end
local entries, hasSettled = redis.call('HMGET', H, unpack(ids)), known(S)
-- The charges that replace a hold, and the keys that these count towards.
local heldBefore, unheld, keysUsed, splits = {}, {}, {}, {}
for index, parts in ipairs(charges) do
  if hasSettled and isSettled(ids[index]) then
    charges[index] = false
  elseif entries[index] then
    -- Holds in advance share their entry.
    splits[entries[index]] = splits[entries[index]] or split(entries[index])
    heldBefore[index] = splits[entries[index]]
    keysUsed[parts[3]], keysUsed[parts[4]] = true, true
  else
    charges[index] = false
    unheld[#unheld + 1], unheld[#unheld + 2] = parts[3], parts[4]
  end
end
keysUsed[''] = nil
if #unheld > 0 then forget(unheld) end
local function readsOf(key, isPlain)
  local names = {}
  if isPlain then return names, names end
  for index, id in ipairs(ids) do names[index] = 'x' .. id end
  return redis.call('HMGET', key, unpack(names)), names
end
local function forgetRead(key, reads, names)
  for index, name in ipairs(names) do
    if reads[index] then redis.call('HDEL', key, name) end
  end
end
-- The figures of the workspace: balances, and sums of budgets.
local balances, isReading, hasSums = redis.call('HMGET', W, 'h', 'm', 't', 'p'), known(R), known(B)
local reads, names = readsOf(W, balances[4])
local growths, gone, isUnknown = {m = 0, t = 0, h = 0}, {}, not balances[1]
for index, parts in ipairs(charges) do
  if parts then
    gone[#gone + 1] = ids[index]
    if isReading then redis.call('HSET', R, ids[index], table.concat(parts, '|')) end
    if not reads[index] then
      growths.m, growths.t = growths.m - parts[1], growths.t - parts[2]
      growths.h = growths.h - heldBefore[index][1]
    end
    if hasSums then
      addSums('s', parts[1] + parts[2], parts[7], parts[8], ids[index])
      addSums('h', -tonumber(heldBefore[index][1]), heldBefore[index][7], heldBefore[index][8], ids[index])
      forgetReadSums(ids[index], heldBefore[index][8])
    end
  end
end
-- The figures of each key: spend by the hour, and the held amount.
for id in pairs(keysUsed) do
  local key = root .. 'k:' .. id
  local sums = redis.call('HMGET', key, 'h', 'ch', 'p')
  local readsOfKey, namesOfKey = readsOf(key, sums[3])
  if not sums[1] then isUnknown = true end
  local spent, held = {}, 0
  for index, parts in ipairs(charges) do
    if parts and (parts[3] == id or parts[4] == id) and not readsOfKey[index] then
      spent[parts[6]] = (spent[parts[6]] or 0) + parts[1] + parts[2]
      for at = 2, 4, 2 do
        if heldBefore[index][at] == id then held = held + heldBefore[index][at + 1] end
      end
    end
  end
  if sums[1] then
    for hour, amount in pairs(spent) do
      add(key, 's' .. hour, amount)
      if sums[2] == hour then add(key, 'cs', amount) else redis.call('HDEL', key, 'ch') end
    end
    add(key, 'h', -held)
    forgetRead(key, readsOfKey, namesOfKey)
  end
end
if isUnknown and #gone > 0 then mark() end
if balances[1] then
  for name, amount in pairs(growths) do add(W, name, amount) end
  forgetRead(W, reads, names)
end
if #gone > 0 then
  redis.call('HDEL', H, unpack(gone))
  redis.call('ZREM', L, unpack(members))
end
if not balances[1] then return {} end
return {text((balances[2] or 0) + growths.m), text((balances[3] or 0) + growths.t)}
