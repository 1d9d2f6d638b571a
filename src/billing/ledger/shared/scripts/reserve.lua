local id, hour, ceiling, byok = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[12])
local keys, admitted, budgets = {unpack(ARGV, 16, 23)}, ARGV[26], {unpack(ARGV, 29)}
if isSettled(id) then return {'exists', '0|0', '0', '0'} end
local stale, hasSwept = {}, false
local function sweep()
  hasSwept = true
  local charges = sweepLapsed()
  local absent = missing({keys[1], keys[5]}, budgets)
  if absent then return absent end
  redis.call('HSET', W, 'q', text(now))
  stale = renewed(charges)
end
local absent = missing({keys[1], keys[5]}, budgets)
if not absent and isSweepDue() then absent = sweep() end
if absent then return absent end
local function answer(outcome, detail)
  return {outcome, detail, text(figures.m), text(figures.t), unpack(stale)}
end
if admitted ~= '' and redis.call('DEL', admitted) == 0 then return answer('not_admitted', '0|0') end
if redis.call('HEXISTS', H, id) == 1 then return answer('exists', '0|0') end
local held, free, byokHeld, byokFree = 0, 0, 0, ''
local function decide()
  if ceiling > 0 then
    local others, reason
    free, others, reason = bound(keys, hour, false, budgets)
    held = amountToHold(free, ceiling, tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11])
    if not held then return reason, text(free) .. '|' .. text(others) end
  end
  if byok > 0 then
    local left, others, reason = bound(keys, hour, true)
    if left then
      byokHeld, byokFree = amountToHold(left, byok, tonumber(ARGV[13]), tonumber(ARGV[14]), ARGV[15]), text(left)
      if not byokHeld then return reason, text(left) .. '|' .. text(others) end
    end
  end
end
local refusal, detail = decide()
local isTight = refusal or held < ceiling or (byokFree ~= '' and byokHeld < byok)
if isTight and not hasSwept then
  absent = sweep()
  if absent then
    -- The gateway asks again once it has read the figures. The windows have admitted the request.
    if admitted ~= '' then redis.call('SET', admitted, 1, 'PX', 5000) end
    return absent
  end
  refusal, detail = decide()
end
if refusal then return answer(refusal, detail) end
local entry = holdEntry(held, byokHeld, keys, ARGV[24], ARGV[25], node)
takeHolds({id}, entry)
local others, each, left = {}, tonumber(ARGV[28]), math.floor((free - held) / 64)
for other in string.gmatch(held == ceiling and ARGV[27] or '', '[^,]+') do
  if left < each then break end
  left = left - each
  others[#others + 1] = other
end
local otherEntry = ''
if #others > 0 then
  otherEntry = holdEntry(each, 0, keys, ARGV[24], ARGV[25], node)
  takeHolds(others, otherEntry)
end
return answer('ok', table.concat({entry, text(free) .. '|' .. byokFree, #others, otherEntry}, '/'))
