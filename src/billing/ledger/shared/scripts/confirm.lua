redis.call('ZREM', L, 'c' .. ARGV[6])
local keys = {ARGV[7], ARGV[8]}
local entry = redis.call('HGET', C, ARGV[6])
if entry and known(R) then redis.call('HSET', R, ARGV[6], entry) end
if redis.call('HDEL', C, ARGV[6]) == 0 then
  forget(keys)
elseif missing(keys) then
  mark()
end
return {}
