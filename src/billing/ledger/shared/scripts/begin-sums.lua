local begun = redis.call('HGET', R, '')
if not begun then
  begun = time[1] .. '.' .. time[2]
  redis.call('HSET', R, '', begun)
end
redis.call('PEXPIRE', R, 30000)
return {begun}
