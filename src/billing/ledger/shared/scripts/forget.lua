forget({unpack(ARGV, 6)})
return {}
