for at = 6, #ARGV do dropHold(ARGV[at]) end
return {}
