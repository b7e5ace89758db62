-- Notes that a node has a new run.
--
-- KEYS[1]  the charter of the node that is told
-- ARGV[1]  the run
-- ARGV[2]  1 removes the note: the run has its vote
--
-- Returns for how long this node has known that run, ms.

-- @include charter

-- Runs that never got a vote: their nodes have restarted again.
local FORGOTTEN = 7 * 86400000
local noted = 'seen ' .. ARGV[1]
for field, value in pairs(charter) do
  if field ~= noted and string.sub(field, 1, 5) == 'seen ' and time - value > FORGOTTEN then
    redis.call('HDEL', KEYS[1], field)
  end
end
if ARGV[2] == '1' then redis.call('HDEL', KEYS[1], noted) end
if ARGV[2] == '1' then return 0 end
if not charter[noted] then set(noted, string.format('%.0f', time)) end
return math.max(0, time - charter[noted])
