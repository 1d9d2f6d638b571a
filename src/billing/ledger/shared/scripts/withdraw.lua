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
return {'ok', text(taken), text(field(W, 'm')), text(field(W, 't'))}
