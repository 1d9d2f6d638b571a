local index, sizes = KEYS[2], KEYS[3]
local prefix, name, text, lifetime, bound = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function forget(names)
  for _, each in ipairs(names) do
    redis.call('DEL', prefix .. each)
    local size = tonumber(redis.call('HGET', sizes, each))
    if size then
      redis.call('HINCRBY', sizes, '', -size)
      redis.call('HDEL', sizes, each)
    end
    redis.call('ZREM', index, each)
  end
end
forget({name})
forget(redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, 100))
local bytes = #text + 2 * #name + 200
redis.call('SET', prefix .. name, text, 'PX', lifetime)
redis.call('ZADD', index, now + lifetime, name)
redis.call('HSET', sizes, name, bytes)
local total = redis.call('HINCRBY', sizes, '', bytes)
-- Both last as long as the entry that expires last.
local kept = math.max(redis.call('PTTL', index), tonumber(lifetime))
redis.call('PEXPIRE', index, kept)
redis.call('PEXPIRE', sizes, kept)
while total > bound do
  local first = redis.call('ZRANGE', index, 0, 0)
  if #first == 0 then
    redis.call('DEL', sizes)
    break
  end
  forget(first)
  total = tonumber(redis.call('HGET', sizes, '')) or 0
end
return 0
