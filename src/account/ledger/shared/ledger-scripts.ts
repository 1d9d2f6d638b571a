import type { SharedScript } from "../../../platform/shared-state/shared-state.ts";

/**
 * What every script of the shared ledger knows. Amounts are nano-USD, exact up to 2^53. For a workspace there are
 * `w:` its balances (`m` monthly, `t` top-ups, `fm` and `fn` what this month granted, `h` held), `h:` its holds
 * (`held|key|keyHeld|parent|parentHeld|byok`), `c:` what was charged and is not known to be committed
 * (`monthly|topup|key|parent|byok|hour`), `l:` until when each of both is somebody's, and `v:` a mark that
 * changes with everything that a reading of the database may have missed. For a key there is `k:` its spend by the
 * hour (`s` and `b` with the hour), a sum of them (`cw`, `ch`, `cs`, `cb`) and what is held (`h`). `w:` and `k:` are
 * filled from the database where they are absent. Values: the root of all names, the workspace, the wall time (0 for
 * the server's own), how long a hold is its owner's without a renewal, then those of the script.
 */
const prelude = `
local root, ws, now, lease = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
if now == 0 then now = time[1] * 1000 + math.floor(time[2] / 1000) end
local W, H, C, L, V = root .. 'w:' .. ws, root .. 'h:' .. ws, root .. 'c:' .. ws, root .. 'l:' .. ws, root .. 'v:' .. ws
local day, hour_ms = 86400000, 3600000
local function text(amount) return string.format('%.0f', amount) end
local function split(entry)
  local parts = {}
  for part in string.gmatch(entry .. '|', '([^|]*)|') do parts[#parts + 1] = part end
  return parts
end
local function field(key, name) return tonumber(redis.call('HGET', key, name)) or 0 end
local function add(key, name, amount)
  if amount ~= 0 then redis.call('HINCRBY', key, name, text(amount)) end
end
local function known(key) return redis.call('EXISTS', key) == 1 end
local function mark() redis.call('SET', V, time[1] .. '.' .. time[2], 'PX', day) end
local function missing(keys)
  local found = {}
  if not known(W) then found[1] = '' end
  for _, key in ipairs(keys) do
    if key ~= '' and not known(root .. 'k:' .. key) then found[#found + 1] = key end
  end
  if #found == 0 then return nil end
  local charges = redis.call('HGETALL', C)
  return {'unknown', redis.call('GET', V) or '', cjson.encode(found), unpack(charges)}
end
local function addHold(entry, sign)
  local parts = split(entry)
  if known(W) then add(W, 'h', sign * tonumber(parts[1])) end
  for at = 2, 4, 2 do
    local key = root .. 'k:' .. parts[at]
    if parts[at] ~= '' and known(key) then add(key, 'h', sign * tonumber(parts[at + 1])) end
  end
end
local function takeHold(id, entry)
  redis.call('HSET', H, id, entry)
  redis.call('ZADD', L, now + lease, 'h' .. id)
  addHold(entry, 1)
end
local function dropHold(id)
  local entry = redis.call('HGET', H, id)
  if not entry then return end
  redis.call('HDEL', H, id)
  redis.call('ZREM', L, 'h' .. id)
  addHold(entry, -1)
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
  local key = root .. 'k:' .. id
  local sums = redis.call('HMGET', key, 'cw', 'ch', 'cs', 'cb')
  if sums[1] ~= tostring(window) or sums[2] ~= tostring(hour) then
    local names = {}
    for age = 0, window do
      names[#names + 1] = 's' .. (hour - age)
      names[#names + 1] = 'b' .. (hour - age)
    end
    local amounts, total = redis.call('HMGET', key, unpack(names)), {0, 0}
    for at = 1, #names do total[2 - at % 2] = total[2 - at % 2] + (tonumber(amounts[at]) or 0) end
    sums = {window, hour, text(total[1]), text(total[2])}
    redis.call('HSET', key, 'cw', window, 'ch', hour, 'cs', sums[3], 'cb', sums[4])
  end
  return (tonumber(sums[3]) or 0) + (byok and (tonumber(sums[4]) or 0) or 0)
end
local function bound(keys, hour, byokOnly)
  local free, others, reason = nil, 0, 'insufficient_balance'
  if not byokOnly then
    others = field(W, 'h')
    free = field(W, 'm') + field(W, 't') - others
  end
  for at = 1, #keys, 4 do
    local limit, counts = tonumber(keys[at + 1]), keys[at + 3] == '1'
    if keys[at] ~= '' and limit >= 0 and (counts or not byokOnly) then
      local there = field(root .. 'k:' .. keys[at], 'h')
      local left = limit - spent(keys[at], tonumber(keys[at + 2]), hour, counts) - there
      if free == nil or left < free then free, others, reason = left, there, 'key_limit' end
    end
  end
  return free, others, reason
end
local function borne(free, ceiling, begin, least, share)
  if ceiling * 8 <= free then return ceiling end
  if free <= 0 or free < least then return nil end
  if share == '1' then begin = math.max(begin, math.floor(free / 8)) end
  return math.min(ceiling, begin, free)
end
local function holdEntry(held, byok, keys)
  local parts = {text(held)}
  for at = 1, 5, 4 do
    parts[#parts + 1] = keys[at]
    parts[#parts + 1] = text(keys[at + 3] == '1' and math.max(byok, held) or held)
  end
  parts[#parts + 1] = text(byok)
  return table.concat(parts, '|')
end
local function forget(keys)
  mark()
  redis.call('DEL', W)
  for _, key in ipairs(keys) do
    if key ~= '' then redis.call('DEL', root .. 'k:' .. key) end
  end
end
local function book(id, parts)
  add(W, 'm', -tonumber(parts[1]))
  add(W, 't', -tonumber(parts[2]))
  for at = 3, 4 do spend(parts[at], parts[6], parts[1] + parts[2], tonumber(parts[5])) end
  redis.call('HSET', C, id, table.concat(parts, '|'))
  redis.call('ZADD', L, now + lease, 'c' .. id)
end
`;

/** A script of the shared ledger. */
export const ledgerScript = (name: string, body: string): SharedScript => ({ name: `switchyardLedger${name}`, lua: prelude + body });

/**
 * Fills what is absent from a reading of the database, unless something happened since that it may have missed.
 * Values: the mark of before the reading; the balances as `m|t|fm|fn`; JSON of the charges that the reading had in it
 * already; then for each key its id and JSON of hours and amounts.
 */
export const seedScript = ledgerScript("Seed", `
if (redis.call('GET', V) or '') ~= ARGV[5] then return 0 end
local read, standing = split(ARGV[6]), cjson.decode(ARGV[7])
local stands = {}
for _, id in ipairs(standing) do stands[id] = true end
local open, holds = {}, redis.call('HGETALL', H)
local charges = redis.call('HGETALL', C)
for at = 1, #charges, 2 do
  if not stands[charges[at]] then open[#open + 1] = split(charges[at + 1]) end
end
if not known(W) then
  local m, t, h = tonumber(read[1]), tonumber(read[2]), 0
  for _, parts in ipairs(open) do m, t = m - parts[1], t - parts[2] end
  for at = 2, #holds, 2 do h = h + tonumber(split(holds[at])[1]) end
  redis.call('HSET', W, 'm', text(m), 't', text(t), 'fm', read[3], 'fn', read[4], 'h', text(h))
  redis.call('PEXPIRE', W, hour_ms)
end
for at = 8, #ARGV, 2 do
  local id, key = ARGV[at], root .. 'k:' .. ARGV[at]
  if not known(key) then
    redis.call('HSET', key, 'h', 0)
    redis.call('PEXPIRE', key, hour_ms)
    local hours = cjson.decode(ARGV[at + 1])
    for index = 1, #hours, 2 do redis.call('HSET', key, hours[index], hours[index + 1]) end
    for _, parts in ipairs(open) do
      if parts[3] == id or parts[4] == id then spend(id, parts[6], parts[1] + parts[2], tonumber(parts[5])) end
    end
    for each = 2, #holds, 2 do
      local parts = split(holds[each])
      if parts[2] == id then add(key, 'h', tonumber(parts[3])) end
      if parts[4] == id then add(key, 'h', tonumber(parts[5])) end
    end
  end
end
return 1`);

/**
 * Takes a hold. Values: its id, the hour; the ceiling, what it begins with, the least and 1 where it takes an eighth, then the
 * same at list price; then for the key and for the one that made it the id (empty for none), the limit (-1 for none), its
 * hours, and 1 where it counts own provider keys.
 */
export const reserveScript = ledgerScript("Reserve", `
local id, hour, ceiling, byok = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[11])
local keys = {unpack(ARGV, 15, 22)}
local absent = missing({keys[1], keys[5]})
if absent then return absent end
local stale = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', L, '-inf', now, 'LIMIT', 0, 50)) do
  local each = string.sub(member, 2)
  if string.sub(member, 1, 1) == 'h' then
    dropHold(each)
  else
    redis.call('ZADD', L, now + lease, member)
    local entry = redis.call('HGET', C, each)
    if entry then
      stale[#stale + 1] = each
      stale[#stale + 1] = entry
    end
  end
end
local m, t = field(W, 'm'), field(W, 't')
local function refuse(reason, free, others)
  return {reason, text(free) .. '|' .. text(others), text(m), text(t), unpack(stale)}
end
if redis.call('HEXISTS', H, id) == 1 then return refuse('exists', 0, 0) end
local held, free = 0, 0
if ceiling > 0 then
  local others, reason
  free, others, reason = bound(keys, hour, false)
  held = borne(free, ceiling, tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10])
  if not held then return refuse(reason, free, others) end
end
local byokHeld, byokFree = 0, ''
if byok > 0 then
  local left, others, reason = bound(keys, hour, true)
  if left then
    byokHeld, byokFree = borne(left, byok, tonumber(ARGV[12]), tonumber(ARGV[13]), ARGV[14]), text(left)
    if not byokHeld then return refuse(reason, left, others) end
  end
end
local entry = holdEntry(held, byokHeld, keys)
takeHold(id, entry)
return {'ok', entry .. '/' .. text(free) .. '|' .. byokFree, text(m), text(t), unpack(stale)}`);

/**
 * Raises a hold as far as there is something free. Values: its id, the hour, the amount; the keys as a hold is taken with them;
 * its entry, for a server that has lost it.
 */
export const growScript = ledgerScript("Grow", `
local id, hour, wanted = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local keys = {unpack(ARGV, 8, 15)}
local absent = missing({keys[1], keys[5]})
if absent then return absent end
local parts = split(redis.call('HGET', H, id) or ARGV[16])
local held = tonumber(parts[1])
dropHold(id)
local free = bound(keys, hour, false)
local entry = holdEntry(math.max(held, math.min(wanted, free)), tonumber(parts[6]) or 0, keys)
takeHold(id, entry)
return {'ok', entry, text(field(W, 'm')), text(field(W, 't'))}`);

/**
 * Charges a hold and frees it; a second time it answers the same. Values: its id, the hour, the amount, that at list price;
 * then the keys as the hold was taken with them.
 */
export const postScript = ledgerScript("Post", `
local id, hour, amount, byok = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local keys = {unpack(ARGV, 9, 16)}
local absent = missing({keys[1], keys[5]})
if absent then return absent end
local before = redis.call('HGET', C, id)
if not before then
  dropHold(id)
  local charged = math.max(0, math.min(amount, (bound(keys, hour, false))))
  local monthly = math.min(charged, math.max(field(W, 'm'), 0))
  local parts = {text(monthly), text(charged - monthly), keys[1], keys[5], ARGV[8], ARGV[6]}
  book(id, parts)
  before = table.concat(parts, '|')
end
return {'ok', before, text(field(W, 'm')), text(field(W, 't'))}`);

/** Takes credits out of a bucket. Values: the id, `monthly` or `topup`, the most (-1 for all), the month whose grants stay. */
export const withdrawScript = ledgerScript("Withdraw", `
local id, monthly, most = ARGV[5], ARGV[6] == 'monthly', tonumber(ARGV[7])
local absent = missing({})
if absent then return absent end
local m, t = field(W, 'm'), field(W, 't')
local there = t
if monthly then
  there = m
  if redis.call('HGET', W, 'fm') == ARGV[8] then there = m - field(W, 'fn') end
end
local taken = math.max(0, math.min(there, m + t - field(W, 'h')))
if most >= 0 then taken = math.min(taken, most) end
if taken > 0 and redis.call('HEXISTS', C, id) == 0 then
  book(id, {text(monthly and taken or 0), text(monthly and 0 or taken), '', '', '0', '0'})
end
return {'ok', text(taken), text(field(W, 'm')), text(field(W, 't'))}`);

/** Frees a hold. Values: its id. */
export const voidScript = ledgerScript("Void", `
dropHold(ARGV[5])
return {}`);

/** A charge is committed. Values: its id, its keys. */
export const confirmScript = ledgerScript("Confirm", `
redis.call('ZREM', L, 'c' .. ARGV[5])
local keys = {ARGV[6], ARGV[7]}
if redis.call('HDEL', C, ARGV[5]) == 0 then
  forget(keys)
elseif missing(keys) then
  mark()
end
return {}`);

/** A charge was refused by the database. Values: its id. */
export const revertScript = ledgerScript("Revert", `
local entry = redis.call('HGET', C, ARGV[5])
if not entry then return {} end
redis.call('HDEL', C, ARGV[5])
redis.call('ZREM', L, 'c' .. ARGV[5])
local parts = split(entry)
if missing({parts[3], parts[4]}) then mark() end
if known(W) then
  add(W, 'm', tonumber(parts[1]))
  add(W, 't', tonumber(parts[2]))
end
for at = 3, 4 do spend(parts[at], parts[6], -(parts[1] + parts[2]), -tonumber(parts[5])) end
return {}`);

/** Credits are about to be added: a charge of nothing, which is nobody's where its process dies. Values: their id. */
export const announceScript = ledgerScript("Announce", `
book(ARGV[5], {'0', '0', '', '', '0', '0'})
return {}`);

/** The database knows more than this: the next request reads it. */
export const forgetScript = ledgerScript("Forget", `
forget({})
return {}`);

/** Keeps holds and charges that are under way. Values: for each `h` or `c` with its id, and its entry. */
export const renewScript = ledgerScript("Renew", `
for at = 5, #ARGV, 2 do
  local kind, id = string.sub(ARGV[at], 1, 1), string.sub(ARGV[at], 2)
  if kind == 'h' and redis.call('HEXISTS', H, id) == 0 then
    takeHold(id, ARGV[at + 1])
  elseif kind == 'h' or redis.call('HEXISTS', C, id) == 1 then
    redis.call('ZADD', L, now + lease, ARGV[at])
  end
end
return {}`);

/** Tells how long ago it was asked this first, as what is left of a time. Values: that time, in milliseconds. */
export const runBegunScript = ledgerScript("RunBegun", `
redis.call('SET', root .. 'begun', now, 'NX')
return {text(math.max(0, redis.call('GET', root .. 'begun') + ARGV[5] - now))}`);
