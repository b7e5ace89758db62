-- Gives up what acquire-all.lua has reserved for an asker.
--
-- KEYS[i]  a turn
-- ARGV[1]  the asker
--
-- Returns how many were its own.

local left = 0
for _, key in ipairs(KEYS) do
  local turn = redis.call('GET', key)
  if turn and string.match(turn, ' (.*)$') == ARGV[1] then left = left + redis.call('DEL', key) end
end
return left
