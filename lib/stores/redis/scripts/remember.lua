-- Notes beside a plain lock that the work of its holder is done. The note ends by itself.
--
-- KEYS[1]  the lock
-- KEYS[2]  the note: the server's time of the last success, ms
-- ARGV[1]  owner
-- ARGV[2]  how long the note stays, ms
--
-- Returns 1, or if the owner does not hold the lock, and nothing has changed: 0 if no owner holds it, -1 if another owner
-- holds it. A key that is no lock is an error.

-- @include hash
-- @include master

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  ensure_master('HDEL', KEYS[1], ARGV[1])
  local holder = holder_of(KEYS[1])
  if holder == false then return no_lock() end
  return holder and -1 or 0
end
local time = redis.call('TIME')
redis.call('SET', KEYS[2], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), 'PX', ARGV[2])
return 1
