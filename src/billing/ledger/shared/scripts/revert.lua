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
return {}
