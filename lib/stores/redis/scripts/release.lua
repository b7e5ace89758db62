-- Gives up a plain lock and tells who waits, as Redisson does: DEL and a message "0".
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence
-- ARGV[1]  owner
-- ARGV[2]  channel
-- ARGV[3]  the last fencing token given out under this hold; 0 when it is the one that the fence has
-- ARGV[4]  how long the fence stays, ms
-- ARGV[5]  how long the lock stays taken all the same, ms; 0 frees it
--
-- Returns 1, or 0 when the owner did not hold it.

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end

-- The lock comes first: after a first write, a server that is out of memory lets the fence be written too.
redis.call('DEL', KEYS[1])
if ARGV[5] ~= '0' then
  -- Under another owner, whom a renewal that comes late does not know.
  redis.call('HSET', KEYS[1], 'kept:' .. ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
if ARGV[3] ~= '0' then
  local fence = redis.call('GET', KEYS[2])
  local last = fence and tonumber(string.match(fence, '^%d+'))
  if not last or last < tonumber(ARGV[3]) then redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4]) end
end
-- Also where the lock stays: who waits has been told of a later end.
redis.call('PUBLISH', ARGV[2], '0')
return 1
