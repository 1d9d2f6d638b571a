redis.call('SET', root .. 'd:' .. ARGV[6], '', 'PX', 600000)
redis.call('SET', S, '', 'PX', 600000)
dropHold(ARGV[6])
redis.call('HDEL', C, ARGV[6])
redis.call('ZREM', L, 'c' .. ARGV[6])
forget({ARGV[7], ARGV[8]})
return {}
