import { ledgerScript } from "./ledger-script.ts";

/**
 * Begins a reading of sums of budgets: from now on charges that are confirmed are kept beside those
 * that are open, so that the reading can tell which of them it has. Answers a mark, which another
 * reading under way shares.
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

/** The charges that a reading of sums may have missed: ids and entries in turn. */
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
return found`,
);

/**
 * Fills sums of budgets from a reading. Values: its mark, JSON of the charges that it had in it
 * already; then for each sum its name and what was spent. Does nothing where the mark is another
 * one.
 */
export const seedSumsScript = ledgerScript(
  "SeedSums",
  `
if redis.call('HGET', R, '') ~= ARGV[6] then return {} end
local stands, open = {}, {}
for _, id in ipairs(cjson.decode(ARGV[7])) do stands[id] = true end
for _, key in ipairs({C, R}) do
  local charges = redis.call('HGETALL', key)
  for at = 1, #charges, 2 do
    if charges[at] ~= '' and not stands[charges[at]] then open[charges[at]] = split(charges[at + 1]) end
  end
end
local holds = redis.call('HVALS', H)
for at = 8, #ARGV, 2 do
  local name, spent, held = ARGV[at], tonumber(ARGV[at + 1]), 0
  if redis.call('HEXISTS', B, 's' .. name) == 0 then
    for _, parts in pairs(open) do
      if parts[8] and counted(name, parts[7], parts[8]) then spent = spent + parts[1] + parts[2] end
    end
    for _, entry in ipairs(holds) do
      local parts = split(entry)
      if parts[8] and counted(name, parts[7], parts[8]) then held = held + tonumber(parts[1]) end
    end
    local isNew = not known(B)
    redis.call('HSET', B, 's' .. name, text(spent), 'h' .. name, text(held))
    if isNew then redis.call('PEXPIRE', B, hour_ms) end
  end
end
return {}`,
);
