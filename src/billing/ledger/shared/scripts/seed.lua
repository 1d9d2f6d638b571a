if (redis.call('GET', V) or '') ~= ARGV[6] then return 0 end
local read, included = split(ARGV[7]), {}
for _, id in ipairs(cjson.decode(ARGV[8])) do included[id] = true end
local open, holds, reads = {}, {}, {}
local held = redis.call('HGETALL', H)
for at = 1, #held, 2 do
  if included[held[at]] then reads[#reads + 1] = held[at] else holds[#holds + 1] = split(held[at + 1]) end
end
local charges = redis.call('HGETALL', C)
for at = 1, #charges, 2 do
  if not included[charges[at]] then open[#open + 1] = split(charges[at + 1]) end
end
if not known(W) then
  local m, t, h = tonumber(read[1]), tonumber(read[2]), 0
  for _, parts in ipairs(open) do m, t = m - parts[1], t - parts[2] end
  for _, parts in ipairs(holds) do h = h + tonumber(parts[1]) end
  redis.call('HSET', W, 'm', text(m), 't', text(t), 'fm', read[3], 'fn', read[4], 'h', text(h))
  if #reads == 0 then redis.call('HSET', W, 'p', '') end
  for _, id in ipairs(reads) do redis.call('HSET', W, 'x' .. id, '') end
  redis.call('PEXPIRE', W, hour_ms)
end
for at = 9, #ARGV, 2 do
  local id, key = ARGV[at], root .. 'k:' .. ARGV[at]
  if not known(key) then
    redis.call('HSET', key, 'h', 0)
    redis.call('PEXPIRE', key, hour_ms)
    local hours = cjson.decode(ARGV[at + 1])
    for index = 1, #hours, 2 do redis.call('HSET', key, hours[index], hours[index + 1]) end
    for _, parts in ipairs(open) do
      if parts[3] == id or parts[4] == id then spend(id, parts[6], parts[1] + parts[2], tonumber(parts[5])) end
    end
    if #reads == 0 then redis.call('HSET', key, 'p', '') end
    for _, each in ipairs(reads) do redis.call('HSET', key, 'x' .. each, '') end
    for _, parts in ipairs(holds) do
      if parts[2] == id then add(key, 'h', tonumber(parts[3])) end
      if parts[4] == id then add(key, 'h', tonumber(parts[5])) end
    end
  end
end
return 1
