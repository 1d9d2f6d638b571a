redis.call('SET', root .. 'begun', now, 'NX', 'PX', hour_ms)
return {text(math.max(0, redis.call('GET', root .. 'begun') + ARGV[6] - now))}
