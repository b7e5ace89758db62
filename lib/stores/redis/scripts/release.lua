-- Gives up a plain lock and tells who waits, as Redisson does: DEL and a message "0".
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH
-- ARGV[3]  channel
-- ARGV[4]  the last fencing token given out under this hold; 0 when it is the one that the fence has
-- ARGV[5]  how long the fence outlives the lock, ms
-- ARGV[6]  how long the lock stays taken all the same, ms; 0 frees it
--
-- Returns 1, or when the owner did not hold it: 0 where nobody does, -1 where another does.
-- A key that is no lock is an error, and stays.

-- @include hash

local function not_held()
  local holder = holder_of(KEYS[1])
  if holder == false then return no_lock() end
  return holder and -1 or 0
end

local stay = ARGV[5] + ARGV[6]
-- The lock comes first: after a first write, a server that is out of memory lets the others be written too.
if ARGV[6] == '0' then
  -- The owner's is the only field, and the hash goes with it.
  if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return not_held() end
else
  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return not_held() end
  -- Under another owner, whom a renewal that comes late does not know. The key stays: in a slot that is on the move,
  -- one that is gone cannot be made anew.
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
  redis.call('HSET', KEYS[1], 'kept:' .. ARGV[1], 1)
  redis.call('HDEL', KEYS[1], ARGV[1])
  local left = redis.call('PTTL', KEYS[2])
  if left < stay then redis.call('PEXPIRE', KEYS[2], stay) end
end
if ARGV[4] ~= '0' then
  local fence = redis.call('GET', KEYS[2])
  local last = fence and tonumber(string.match(fence, '^%d+'))
  if not last or last < tonumber(ARGV[4]) then redis.call('SET', KEYS[2], ARGV[4], 'PX', stay) end
end
-- Also where the lock stays: who waits has been told of a later end. The user may not be allowed to send it, and what has
-- been done counts all the same.
redis.pcall(ARGV[2], ARGV[3], '0')
return 1
