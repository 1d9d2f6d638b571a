import { ledgerScript } from "../ledger/shared/ledger-script.ts";

/**
 * Sets an amount aside for a run, whole or not at all: as a hold on its owner's limits until the
 * run is committed. Values: the id, the hour, the amount, what the owner's open runs have spent,
 * and the keys as in `reserveScript`.
 */
export const allocateScript = ledgerScript(
  "Allocate",
  `
local id, hour, amount, spentByRuns = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local keys = {unpack(ARGV, 10, 17)}
local absent = missing({keys[1], keys[5]})
if absent then return absent end
local free, others, reason = nil, 0, 'key_limit'
for at = 1, #keys, 4 do
  local limit = tonumber(keys[at + 1])
  if keys[at] ~= '' and limit >= 0 then
    local key = spends[keys[at]]
    local left = limit - spent(keys[at], tonumber(keys[at + 2]), hour, keys[at + 3] == '1') - key.held - key.allocated
    if free == nil or left < free then free, others = left, key.held end
  end
end
if free == nil then
  reason, others = 'insufficient_balance', figures.held
  free = figures.m + figures.t - others - math.max(0, spends[keys[1]].allocated - spentByRuns)
end
if free < amount then return {reason, text(free) .. '|' .. text(others), text(figures.m), text(figures.t)} end
takeHold(id, table.concat({'0', keys[1], text(amount), keys[5], keys[5] == '' and '0' or text(amount), '0', '0', '', node}, '|'))
return {'ok', '', text(figures.m), text(figures.t)}`,
);

/**
 * Replaces the hold of an allocation once its run is committed. A figure that was read with the run
 * stays as it is. Values: the id, its keys, and the amount.
 */
export const allocatedScript = ledgerScript(
  "Allocated",
  `
local id, keys, amount = ARGV[6], {ARGV[7], ARGV[8]}, tonumber(ARGV[9])
if redis.call('HEXISTS', H, id) == 0 then
  forget(keys)
  return {}
end
for _, name in ipairs(keys) do
  local key = root .. 'k:' .. name
  if name ~= '' and known(key) and not isRead(key, id) then add(key, 'a', amount) end
end
dropHold(id)
if missing(keys) then mark() end
return {}`,
);

/** Returns what counts against the limit of a key. Values: the hour, and the key. */
export const figuresScript = ledgerScript(
  "Figures",
  `
local hour, key = tonumber(ARGV[6]), ARGV[7]
local absent = missing({key})
if absent then return absent end
local total = spent(key, tonumber(ARGV[9]), hour, ARGV[10] == '1')
return {'ok', text(total) .. '|' .. text(spends[key].held) .. '|' .. text(spends[key].allocated), text(figures.m), text(figures.t)}`,
);
