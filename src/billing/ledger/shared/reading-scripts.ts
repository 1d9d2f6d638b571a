import { ledgerScript } from "./ledger-script.ts";

/**
 * Returns the rest of a period that began when this script first ran. Values: the period in
 * milliseconds. The answer is in milliseconds too.
 */
export const runBegunScript = ledgerScript(
  "RunBegun",
  `
redis.call('SET', root .. 'begun', now, 'NX', 'PX', hour_ms)
return {text(math.max(0, redis.call('GET', root .. 'begun') + ARGV[6] - now))}`,
);

/**
 * Fills the absent figures from a reading of the database, unless there was a change since then
 * that the reading may lack. Values: the mark from before the reading; the balances as `m|t|fm|fn`;
 * JSON with the ids of the charges that the reading includes, and of the holds whose charges it
 * includes; then for each key its id, and JSON with hours and amounts.
 */
export const seedScript = ledgerScript(
  "Seed",
  `
if (redis.call('GET', V) or '') ~= ARGV[6] then return 0 end
local read, included = split(ARGV[7]), {}
for _, id in ipairs(cjson.decode(ARGV[8])) do included[id] = true end
local open, holds, reads = {}, {}, {}
local held = redis.call('HGETALL', H)
for at = 1, #held, 2 do
  if included[held[at]] then reads[#reads + 1] = held[at] else holds[#holds + 1] = split(held[at + 1]) end
end
local charges = redis.call('HGETALL', C)
for at = 1, #charges, 2 do
  if not included[charges[at]] then open[#open + 1] = split(charges[at + 1]) end
end
if not known(W) then
  local m, t, h = tonumber(read[1]), tonumber(read[2]), 0
  for _, parts in ipairs(open) do m, t = m - parts[1], t - parts[2] end
  for _, parts in ipairs(holds) do h = h + tonumber(parts[1]) end
  redis.call('HSET', W, 'm', text(m), 't', text(t), 'fm', read[3], 'fn', read[4], 'h', text(h))
  if #reads == 0 then redis.call('HSET', W, 'p', '') end
  for _, id in ipairs(reads) do redis.call('HSET', W, 'x' .. id, '') end
  redis.call('PEXPIRE', W, hour_ms)
end
for at = 9, #ARGV, 2 do
  local id, key = ARGV[at], root .. 'k:' .. ARGV[at]
  if not known(key) then
    redis.call('HSET', key, 'h', 0)
    redis.call('PEXPIRE', key, hour_ms)
    local hours = cjson.decode(ARGV[at + 1])
    for index = 1, #hours, 2 do redis.call('HSET', key, hours[index], hours[index + 1]) end
    for _, parts in ipairs(open) do
      if parts[3] == id or parts[4] == id then spend(id, parts[6], parts[1] + parts[2], tonumber(parts[5])) end
    end
    if #reads == 0 then redis.call('HSET', key, 'p', '') end
    for _, each in ipairs(reads) do redis.call('HSET', key, 'x' .. each, '') end
    for _, parts in ipairs(holds) do
      if parts[2] == id then add(key, 'h', tonumber(parts[3])) end
      if parts[4] == id then add(key, 'h', tonumber(parts[5])) end
    end
  end
end
return 1`,
);

/**
 * Begins a reading of budget sums. From now on confirmed charges are kept beside the open ones, so
 * that the reading can find out which of them it includes. Returns a mark, which concurrent
 * readings share.
 */
export const beginSumsScript = ledgerScript(
  "BeginSums",
  `
local begun = redis.call('HGET', R, '')
if not begun then
  begun = time[1] .. '.' .. time[2]
  redis.call('HSET', R, '', begun)
end
redis.call('PEXPIRE', R, 30000)
return {begun}`,
);

/**
 * Returns the charges that a reading of sums may lack: the id and the entry of each, and for holds
 * the id and an empty text.
 */
export const chargesSinceScript = ledgerScript(
  "ChargesSince",
  `
local found = redis.call('HGETALL', C)
local confirmed = redis.call('HGETALL', R)
for at = 1, #confirmed, 2 do
  if confirmed[at] ~= '' then
    found[#found + 1] = confirmed[at]
    found[#found + 1] = confirmed[at + 1]
  end
end
for _, id in ipairs(redis.call('HKEYS', H)) do
  found[#found + 1] = id
  found[#found + 1] = ''
end
return found`,
);

/**
 * Fills budget sums from a reading, unless its mark is no longer the current one. Values: the mark;
 * JSON with the ids of the charges that the reading includes, and of the holds whose charges it
 * includes; then for each sum its name and the spend.
 */
export const seedSumsScript = ledgerScript(
  "SeedSums",
  `
if redis.call('HGET', R, '') ~= ARGV[6] then return {} end
local included, open = {}, {}
for _, id in ipairs(cjson.decode(ARGV[7])) do included[id] = true end
for _, key in ipairs({C, R}) do
  local charges = redis.call('HGETALL', key)
  for at = 1, #charges, 2 do
    if charges[at] ~= '' and not included[charges[at]] then open[charges[at]] = split(charges[at + 1]) end
  end
end
local holds = redis.call('HGETALL', H)
for at = 8, #ARGV, 2 do
  local name, spent, held = ARGV[at], tonumber(ARGV[at + 1]), 0
  if redis.call('HEXISTS', B, 's' .. name) == 0 then
    for _, parts in pairs(open) do
      local weight = parts[8] and weightIn(name, parts[7], parts[8])
      if weight then spent = spent + priced(parts[1] + parts[2], weight) end
    end
    local isNew = not known(B)
    for each = 1, #holds, 2 do
      local parts = split(holds[each + 1])
      if included[holds[each]] then
        redis.call('HSET', B, 'x' .. holds[each] .. ' ' .. name, '')
      else
        local weight = parts[8] and weightIn(name, parts[7], parts[8])
        if weight then held = held + priced(tonumber(parts[1]), weight) end
      end
    end
    redis.call('HSET', B, 's' .. name, text(spent), 'h' .. name, text(held))
    if isNew then redis.call('PEXPIRE', B, hour_ms) end
  end
end
return {}`,
);
