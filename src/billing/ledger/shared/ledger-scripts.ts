import { plainWeight, type BudgetBound } from "../../budgets/budget.ts";
import type { SpendingKey, TightHold } from "../hold-rule.ts";
import { ledgerScript } from "./ledger-script.ts";

/**
 * Takes a hold, and holds in advance out of a 64th of what is free beyond it. Values:
 * - the id of the hold, and the hour
 * - the ceiling, the beginning, the least, and 1 where the hold takes an eighth; then the same at
 *   list price
 * - for the key and for its parent: the id (empty for none), the limit (-1 for none), the hours of
 *   its window, and 1 where it counts own provider keys
 * - the day, the tags that budgets count the hold by, and the name that rate windows set when they
 *   admitted the request (empty for none)
 * - the ids of the holds in advance, separated by commas, and the amount of each
 * - for each budget: the name of its sum, its limit, and the weight at which the sum counts
 * Returns the entry of the hold, the free amounts, the number of holds in advance, and their entry.
 */
export const reserveScript = ledgerScript(
  "Reserve",
  `
local id, hour, ceiling, byok = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[12])
local keys, admitted, budgets = {unpack(ARGV, 16, 23)}, ARGV[26], {unpack(ARGV, 29)}
if isSettled(id) then return {'exists', '0|0', '0', '0'} end
local stale, hasSwept = {}, false
local function sweep()
  hasSwept = true
  local charges = sweepLapsed()
  local absent = missing({keys[1], keys[5]}, budgets)
  if absent then return absent end
  redis.call('HSET', W, 'q', text(now))
  stale = renewed(charges)
end
local absent = missing({keys[1], keys[5]}, budgets)
if not absent and isSweepDue() then absent = sweep() end
if absent then return absent end
local function answer(outcome, detail)
  return {outcome, detail, text(figures.m), text(figures.t), unpack(stale)}
end
if admitted ~= '' and redis.call('DEL', admitted) == 0 then return answer('not_admitted', '0|0') end
if redis.call('HEXISTS', H, id) == 1 then return answer('exists', '0|0') end
local held, free, byokHeld, byokFree = 0, 0, 0, ''
local function decide()
  if ceiling > 0 then
    local others, reason
    free, others, reason = bound(keys, hour, false, budgets)
    held = amountToHold(free, ceiling, tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11])
    if not held then return reason, text(free) .. '|' .. text(others) end
  end
  if byok > 0 then
    local left, others, reason = bound(keys, hour, true)
    if left then
      byokHeld, byokFree = amountToHold(left, byok, tonumber(ARGV[13]), tonumber(ARGV[14]), ARGV[15]), text(left)
      if not byokHeld then return reason, text(left) .. '|' .. text(others) end
    end
  end
end
local refusal, detail = decide()
local isTight = refusal or held < ceiling or (byokFree ~= '' and byokHeld < byok)
if isTight and not hasSwept then
  absent = sweep()
  if absent then
    -- The gateway asks again once it has read the figures. The windows have admitted the request.
    if admitted ~= '' then redis.call('SET', admitted, 1, 'PX', 5000) end
    return absent
  end
  refusal, detail = decide()
end
if refusal then return answer(refusal, detail) end
local entry = holdEntry(held, byokHeld, keys, ARGV[24], ARGV[25], node)
takeHolds({id}, entry)
local others, each, left = {}, tonumber(ARGV[28]), math.floor((free - held) / 64)
for other in string.gmatch(held == ceiling and ARGV[27] or '', '[^,]+') do
  if left < each then break end
  left = left - each
  others[#others + 1] = other
end
local otherEntry = ''
if #others > 0 then
  otherEntry = holdEntry(each, 0, keys, ARGV[24], ARGV[25], node)
  takeHolds(others, otherEntry)
end
return answer('ok', table.concat({entry, text(free) .. '|' .. byokFree, #others, otherEntry}, '/'))`,
);

/**
 * Raises a hold as far as the free amount allows. Values: its id, the hour, the amount; the keys as
 * in `reserveScript`; its entry, for a server that has lost it; then for each budget the name of
 * its sum, its limit, and its weight.
 */
export const growScript = ledgerScript(
  "Grow",
  `
local id, hour, wanted = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local keys, budgets = {unpack(ARGV, 9, 16)}, {unpack(ARGV, 18)}
if isSettled(id) then return {'ok', ARGV[17], '0', '0'} end
local absent = missing({keys[1], keys[5]}, budgets)
if absent then return absent end
local parts = split(redis.call('HGET', H, id) or ARGV[17])
local held = tonumber(parts[1])
dropHold(id)
look({keys[1], keys[5]})
local free = bound(keys, hour, false, budgets)
local entry = holdEntry(math.max(held, math.min(wanted, free)), tonumber(parts[6]) or 0, keys, parts[7] or '0', parts[8] or '', node)
takeHold(id, entry)
return {'ok', entry, text(field(W, 'm')), text(field(W, 't'))}`,
);

/**
 * Charges a hold and frees it. A second call returns the same. Values: its id, the hour, the
 * amount, and that at list price; the keys as the hold was taken with them; the day of the hold,
 * the tags that budgets count the charge by, and for each budget the name of its sum, its
 * limit, and its weight.
 */
export const postScript = ledgerScript(
  "Post",
  `
local id, hour, amount, byok = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local keys, budgets = {unpack(ARGV, 10, 17)}, {unpack(ARGV, 20)}
if isSettled(id) then return {'settled', '0|0', '0', '0'} end
local absent = missing({keys[1], keys[5]}, budgets)
if absent then return absent end
local before = redis.call('HGET', C, id)
if not before then
  dropHold(id)
  look({keys[1], keys[5]})
  local charged = math.max(0, math.min(amount, (bound(keys, hour, false, budgets))))
  local monthly = math.min(charged, math.max(field(W, 'm'), 0))
  local parts = {text(monthly), text(charged - monthly), keys[1], keys[5], ARGV[9], ARGV[7], ARGV[18], ARGV[19]}
  book(id, parts)
  before = table.concat(parts, '|')
end
return {'ok', before, text(field(W, 'm')), text(field(W, 't'))}`,
);

/**
 * Takes credits out of a bucket. Values: the id, `monthly` or `topup`, the most (-1 for all), and
 * the month whose grants stay.
 */
export const withdrawScript = ledgerScript(
  "Withdraw",
  `
local id, monthly, most = ARGV[6], ARGV[7] == 'monthly', tonumber(ARGV[8])
local absent = missing({})
if absent then return absent end
local m, t = field(W, 'm'), field(W, 't')
local there = t
if monthly then
  there = m
  if redis.call('HGET', W, 'fm') == ARGV[9] then there = m - field(W, 'fn') end
end
local taken = math.max(0, math.min(there, m + t - field(W, 'h')))
if most >= 0 then taken = math.min(taken, most) end
if taken > 0 and redis.call('HEXISTS', C, id) == 0 then
  book(id, {text(monthly and taken or 0), text(monthly and 0 or taken), '', '', '0', '0'})
end
return {'ok', text(taken), text(field(W, 'm')), text(field(W, 't'))}`,
);

/** Frees holds. Values: their ids. */
export const voidScript = ledgerScript(
  "Void",
  `
for at = 6, #ARGV do dropHold(ARGV[at]) end
return {}`,
);

/** Records that a charge is committed. Values: its id, its keys. */
export const confirmScript = ledgerScript(
  "Confirm",
  `
redis.call('ZREM', L, 'c' .. ARGV[6])
local keys = {ARGV[7], ARGV[8]}
local entry = redis.call('HGET', C, ARGV[6])
if entry and known(R) then redis.call('HSET', R, ARGV[6], entry) end
if redis.call('HDEL', C, ARGV[6]) == 0 then
  forget(keys)
elseif missing(keys) then
  mark()
end
return {}`,
);

/** Undoes a charge that the database refused. Values: its id. */
export const revertScript = ledgerScript(
  "Revert",
  `
local entry = redis.call('HGET', C, ARGV[6])
if not entry then return {} end
redis.call('HDEL', C, ARGV[6])
redis.call('ZREM', L, 'c' .. ARGV[6])
local parts = split(entry)
if missing({parts[3], parts[4]}) then mark() end
if known(W) then
  add(W, 'm', tonumber(parts[1]))
  add(W, 't', tonumber(parts[2]))
end
for at = 3, 4 do spend(parts[at], parts[6], -(parts[1] + parts[2]), -tonumber(parts[5])) end
addSums('s', -(parts[1] + parts[2]), parts[7], parts[8], ARGV[6])
return {}`,
);

/**
 * Books a charge of zero before credits are added, so that another process resolves it where this
 * one ends. Values: its id.
 */
export const announceScript = ledgerScript(
  "Announce",
  `
book(ARGV[6], {'0', '0', '', '', '0', '0'})
return {}`,
);

/**
 * Removes the figures of a workspace, because the database has changes that they lack. The next
 * request reads them again. Values: the ids of keys whose figures are removed as well.
 */
export const forgetScript = ledgerScript(
  "Forget",
  `
forget({unpack(ARGV, 6)})
return {}`,
);

/**
 * Ends a hold whose outcome was decided without the shared server. The next request reads the
 * database, and earlier scripts of the hold that arrive later change nothing. Values: its id, its
 * keys.
 */
export const settledScript = ledgerScript(
  "Settled",
  `
redis.call('SET', root .. 'd:' .. ARGV[6], '', 'PX', 600000)
redis.call('SET', S, '', 'PX', 600000)
dropHold(ARGV[6])
redis.call('HDEL', C, ARGV[6])
redis.call('ZREM', L, 'c' .. ARGV[6])
forget({ARGV[7], ARGV[8]})
return {}`,
);

/**
 * Replaces holds with their committed charges. A figure that was read with the charge stays as it
 * is. Where a hold is missing, the next request reads the database. Values: for each charge the id,
 * what each bucket paid, its keys, the hour, the day of the hold, and the tags that budgets count
 * it by. Returns the balances, where they are known.
 */
export const reportScript = ledgerScript(
  "Report",
  `
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
return {text((balances[2] or 0) + growths.m), text((balances[3] or 0) + growths.t)}`,
);

/**
 * Renews the leases of holds and charges. A hold that was lost is restored, and the next request
 * reads the database, which may have its charge. Values: for each `h` or `c` followed by the id,
 * and the entry.
 */
export const renewScript = ledgerScript(
  "Renew",
  `
for at = 6, #ARGV, 2 do
  local kind, id = string.sub(ARGV[at], 1, 1), string.sub(ARGV[at], 2)
  if kind == 'h' and redis.call('HEXISTS', H, id) == 0 then
    if not isSettled(id) then
      local parts = split(ARGV[at + 1])
      takeHold(id, ARGV[at + 1])
      forget({parts[2], parts[4]})
    end
  elseif kind == 'h' or redis.call('HEXISTS', C, id) == 1 then
    redis.call('ZADD', L, now + lease, ARGV[at])
  end
end
keep(H, C, L)
return {}`,
);

/** Returns the values of a hold's keys for the scripts. */
export const keyValues = ({
  key,
  parent,
}: {
  key: SpendingKey;
  parent: SpendingKey | undefined;
}): (string | number)[] =>
  [key, parent].flatMap((each) =>
    each === undefined
      ? ["", -1, 0, 0]
      : [
          each.keyId,
          String(each.keyLimit?.limitNano ?? -1n),
          each.keyLimit?.windowHours ?? 0,
          each.countsByok ? 1 : 0,
        ],
  );

/** Returns the values of budgets for the scripts. */
export const budgetValues = (bounds: readonly BudgetBound[]): string[] =>
  bounds.flatMap(({ budget: { limitNano }, counter, weight = plainWeight }) => [
    counter,
    String(limitNano),
    String(weight),
  ]);

/** Returns the values of a worst case for `reserveScript`. */
export function tightValues(
  ceilingNano: bigint,
  tight: (() => TightHold) | undefined,
): (string | number)[] {
  const { beginNano, leastNano, takesShare } = tight?.() ?? {
    beginNano: ceilingNano,
    leastNano: 1n,
    takesShare: false,
  };
  return [String(ceilingNano), String(beginNano), String(leastNano), takesShare ? 1 : 0];
}

/** Returns tags in the form in which the scripts search them. */
export const tagText = (tags: readonly string[]): string =>
  tags.length === 0 ? "" : `,${tags.join(",")},`;
