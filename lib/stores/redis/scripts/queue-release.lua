-- Gives up a hold, or an entry in the queue, and lets in the next waiters.
--
-- KEYS     as in holders.include.lua
-- ARGV[1]  owner
-- ARGV[2]  mode: x or s
-- ARGV[3]  kind
-- ARGV[4]  capacity
-- ARGV[5]  how long the lock stays taken after the release, ms; 0 frees it
-- ARGV[6]  the lease that the owner has asked for, ms; 0 if it is not known, and the script searches the queue for the entry
-- ARGV[7]  how long the fence outlives the last holder, ms
-- ARGV[8]  as in queue.include.lua
--
-- Returns 1, or if the owner did not hold the lock: -1 if it could not enter beside the present holders, else 0.

-- @include hash

local owner, mode, kind, capacity, stay = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[7]
local member = mode .. owner

-- @include holders

local asker, outsiders

-- @include queue

if foreign then
  -- The name is in use for something else now. An entry in the queue would outlive its waiter.
  leave_queue(mode, owner, ARGV[6])
  return foreign
end
-- The hold stays under another owner, which a late renewal does not know. This comes first, so that the key stays: in a slot
-- that is being moved, a key that is gone cannot be created again.
if ARGV[5] ~= '0' and redis.call('ZSCORE', KEYS[1], member) then
  -- This command needs no room, and lets the following writes pass if the memory is full. The end is set again below.
  redis.call('PEXPIREAT', KEYS[1], now + ARGV[5])
  hold(mode .. 'kept:' .. owner, now + ARGV[5])
  keep_fence()
end
-- The only holder goes with the next one that enters, for the same reason.
if in_cluster and holders == 1 and first == member then leaving = member end
local held = leaving and 1 or redis.call('ZREM', KEYS[1], member)
if held == 0 then
  if not may_enter(mode, kind, capacity) then held = -1 end
  -- An owner that holds the lock has no entry in the queue.
  leave_queue(mode, owner, ARGV[6])
  -- This script must not let in the waiters for the plain lock. They would lose their entry, and the name.
  local head = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if head and not is_of_kind(string.sub(head, 1, 1)) then return held end
else
  holders = holders - 1
  if holders > 0 then keep_until_last() end
end
advance()
if leaving then redis.call('ZREM', KEYS[1], leaving) end
-- A fence lives as long as the lease that it was written for, and longer. That lease has ended early.
if held == 1 and holders == 0 then redis.pcall('PEXPIRE', KEYS[2], stay) end
return held
