-- Gives up a hold, or a place in the queue, and lets in who is next.
--
-- KEYS     as in queue.include.lua
-- ARGV[1]  owner
-- ARGV[2]  mode: x or s
-- ARGV[3]  kind
-- ARGV[4]  capacity
-- ARGV[5]  how long the lock stays taken all the same, ms; 0 frees it
-- ARGV[6]  prefix of the channels of waiting processes
-- ARGV[7]  how long the fence outlives the last holder, ms
-- ARGV[8]  as in queue.include.lua
--
-- Returns 1, or 0 when the owner did not hold it.

-- @include queue

local member = ARGV[2] .. ARGV[1]
-- Under another owner, whom a renewal that comes late does not know. First, so that the key stays: in a slot that is on
-- the move, one that is gone cannot be made anew.
if ARGV[5] ~= '0' and redis.call('ZSCORE', KEYS[1], member) then
  hold(ARGV[2] .. 'kept:' .. ARGV[1], now + ARGV[5])
  keep_fence(ARGV[7])
end
local held = redis.call('ZREM', KEYS[1], member)
if held == 0 then
  -- Who holds it does not stand in the queue.
  redis.call('ZREM', KEYS[2], ARGV[2] .. ' ' .. ARGV[1])
else
  holders = holders - 1
  if holders > 0 then keep_until_last() end
end
advance(ARGV[3], tonumber(ARGV[4]), ARGV[6], ARGV[7])
return held
