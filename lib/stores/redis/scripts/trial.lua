-- Takes a plain lock that no caller wants and gives it up again, in one step: what would refuse an acquisition refuses this.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence
-- ARGV[1]  owner
-- ARGV[2]  lease, ms
-- ARGV[3]  PUBLISH, or SPUBLISH
-- ARGV[4]  channel
-- ARGV[5]  1 to let replicas have it, for a WAIT that follows
--
-- Returns 1, or the error with which the message of a release is refused.

-- @include plain

-- What is gone again when the script ends is nothing for replicas and for the append-only file.
if ARGV[5] ~= '1' and redis.set_repl then pcall(redis.set_repl, redis.REPL_NONE) end
if not in_the_way(KEYS[1], ARGV[1]) then
  enter(KEYS[1], KEYS[2], ARGV[1], ARGV[2], 0, 0)
  redis.call('HDEL', KEYS[1], ARGV[1])
  -- Where the user may not, it ends with the lease: no acquisition needs that right.
  redis.pcall('DEL', KEYS[2])
end
local told = redis.pcall(ARGV[3], ARGV[4], '')
return type(told) == 'table' and told.err or 1
