local id, hour, amount, byok = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local keys, budgets = {unpack(ARGV, 10, 17)}, {unpack(ARGV, 20)}
if isSettled(id) then return {'settled', '0|0', '0', '0'} end
local absent = missing({keys[1], keys[5]}, budgets)
if absent then return absent end
local before = redis.call('HGET', C, id)
if not before then
  local held = dropHold(id)
  look({keys[1], keys[5]})
  -- Its own hold covers a charge, although a budget or a plan was made or lowered since.
  local covered = math.min(held and tonumber(held[1]) or 0, figures.m + figures.t - figures.held)
  local most = math.max(covered, (bound(keys, hour, false, budgets)))
  local charged = math.max(0, math.min(amount, most))
  local monthly = math.min(charged, math.max(field(W, 'm'), 0))
  local parts = {text(monthly), text(charged - monthly), keys[1], keys[5], ARGV[9], ARGV[7], ARGV[18], ARGV[19]}
  book(id, parts)
  before = table.concat(parts, '|')
end
return {'ok', before, text(field(W, 'm')), text(field(W, 't'))}
