-- Takes a plain lock.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence: "<last token> <its owner>"
-- ARGV[1]  owner
-- ARGV[2]  lease, ms
-- ARGV[3]  the least token to give; 0 for any
-- ARGV[4]  how long the fence outlives the lease, ms
--
-- Returns the fencing token when the owner holds the lock now, { PTTL, holder } when another does, or { -3 } when it was
-- last used as a kind with a queue, which retire.lua has to look at first.
-- An owner that holds it already (a command sent twice) keeps it, and its hold count stays 1.

-- @include plain

local left, holder = in_the_way(KEYS[1], ARGV[1])
if left == FOREIGN then return no_lock() end
if left then return { left, holder } end
-- Needs no room, so that a command that is sent again is not refused where memory is full meanwhile.
if holder then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return enter(KEYS[1], KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]) or { QUEUED }
