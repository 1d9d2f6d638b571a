for at = 6, #ARGV, 2 do
  local kind, id = string.sub(ARGV[at], 1, 1), string.sub(ARGV[at], 2)
  if kind == 'h' and redis.call('HEXISTS', H, id) == 0 then
    if not isSettled(id) then
      local parts = split(ARGV[at + 1])
      takeHold(id, ARGV[at + 1])
      forget({parts[2], parts[4]})
    end
  elseif kind == 'h' or redis.call('HEXISTS', C, id) == 1 then
    redis.call('ZADD', L, now + lease, ARGV[at])
  end
end
keep(H, C, L)
return {}
