-- Gives up a hold, or a place in the queue, and lets in who is next.
--
-- KEYS     as in queue.include.lua
-- ARGV[1]  owner
-- ARGV[2]  mode: x or s
-- ARGV[3]  kind
-- ARGV[4]  capacity
-- ARGV[5]  how long the lock stays taken all the same, ms; 0 frees it
-- ARGV[6]  the lease that the owner has asked for, ms; 0 where it is not known, and the queue is searched for its place
-- ARGV[7]  prefix of the channels of waiting processes
-- ARGV[8]  how long the fence outlives the last holder, ms
-- ARGV[9]  as in queue.include.lua
--
-- Returns 1, or when the owner did not hold it: -1 where it could not enter beside the present holders, else 0.

-- @include hash

local member = ARGV[2] .. ARGV[1]

-- @include queue

local function leave_queue()
  local place = ARGV[2] .. ' ' .. ARGV[1] .. ' '
  if ARGV[6] ~= '0' then return redis.call('ZREM', KEYS[2], place .. ARGV[6]) end
  for _, entry in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    if string.sub(entry, 1, #place) == place then redis.call('ZREM', KEYS[2], entry) end
  end
end
if foreign then
  -- The name has become something else. A place in the queue would outlive whoever waited there.
  leave_queue()
  return foreign
end
-- Under another owner, whom a renewal that comes late does not know. First, so that the key stays: in a slot that is on
-- the move, one that is gone cannot be made anew.
if ARGV[5] ~= '0' and redis.call('ZSCORE', KEYS[1], member) then
  -- Needs no room, and lets what follows be written where memory is full. The end is set anew below.
  redis.call('PEXPIREAT', KEYS[1], now + ARGV[5])
  hold(ARGV[2] .. 'kept:' .. ARGV[1], now + ARGV[5])
  keep_fence(ARGV[8])
end
local held = redis.call('ZREM', KEYS[1], member)
if held == 0 then
  if not admits(ARGV[2], ARGV[3], tonumber(ARGV[4])) then held = -1 end
  -- Who holds it does not stand in the queue.
  leave_queue()
else
  holders = holders - 1
  if holders > 0 then keep_until_last() end
end
advance(ARGV[3], tonumber(ARGV[4]), ARGV[7], ARGV[8])
return held
