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
    indexSum(name)
    if isNew then redis.call('PEXPIRE', B, hour_ms) end
  end
end
return {}
