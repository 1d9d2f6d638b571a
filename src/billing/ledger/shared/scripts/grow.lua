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
return {'ok', entry, text(field(W, 'm')), text(field(W, 't'))}
