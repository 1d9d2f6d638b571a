local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count = redis.call('INCR', KEYS[3])
if count <= tonumber(ARGV[4]) then
  redis.call('DEL', KEYS[1], KEYS[4])
  return {0}
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
for _, at in ipairs({1, 3}) do redis.call('PEXPIRE', KEYS[at], ARGV[3]) end
return {count, redis.call('GET', KEYS[1]) or '', unpack(redis.call('ZRANGE', KEYS[2], 0, -1))}
