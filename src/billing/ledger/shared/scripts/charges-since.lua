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
return found
