book(ARGV[6], {'0', '0', '', '', '0', '0'})
return {}
