-- Gives up a hold, or a place in the queue, and lets in who is next.
--
-- KEYS     as in holders.include.lua
-- ARGV[1]  owner
-- ARGV[2]  mode: x or s
-- ARGV[3]  kind
-- ARGV[4]  capacity
-- ARGV[5]  how long the lock stays taken all the same, ms; 0 frees it
-- ARGV[6]  the lease that the owner has asked for, ms; 0 where it is not known, and the queue is searched for its place
-- ARGV[7]  how long the fence outlives the last holder, ms
-- ARGV[8]  as in queue.include.lua
--
-- Returns 1, or when the owner did not hold it: -1 where it could not enter beside the present holders, else 0.

-- @include hash

local owner, mode, kind, capacity, stay = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[7]
local member = mode .. owner

-- @include holders

local asker, outsiders

-- @include queue

if foreign then
  -- The name has become something else. A place in the queue would outlive whoever waited there.
  leave_queue(mode, owner, ARGV[6])
  return foreign
end
-- Under another owner, whom a renewal that comes late does not know. First, so that the key stays: in a slot that is on
-- the move, one that is gone cannot be made anew.
if ARGV[5] ~= '0' and redis.call('ZSCORE', KEYS[1], member) then
  -- Needs no room, and lets what follows be written where memory is full. The end is set anew below.
  redis.call('PEXPIREAT', KEYS[1], now + ARGV[5])
  hold(mode .. 'kept:' .. owner, now + ARGV[5])
  keep_fence()
end
local held = redis.call('ZREM', KEYS[1], member)
if held == 0 then
  if not may_enter(mode, kind, capacity) then held = -1 end
  -- Who holds it does not stand in the queue.
  leave_queue(mode, owner, ARGV[6])
  -- Those who wait for the plain lock are not for this one to let in. They would lose their place, and the name.
  local head = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if head and not in_line(string.sub(head, 1, 1)) then return held end
else
  holders = holders - 1
  if holders > 0 then keep_until_last() end
end
advance()
return held
