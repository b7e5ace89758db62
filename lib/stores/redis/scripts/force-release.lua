-- Takes a lock of any kind away from whoever holds it, and lets in or wakes who waits.
--
-- KEYS     as in queue.include.lua
-- ARGV[1]  channel of the plain lock
-- ARGV[2]  prefix of the channels of waiting processes
-- ARGV[3]  how long the fence stays, ms
--
-- Returns 1, or 0 when nobody held it. A key of another type is an error, and stays.

if redis.call('TYPE', KEYS[1]).ok == 'zset' then
-- @include queue

  local held = holders > 0
  redis.call('DEL', KEYS[1])
  holders = 0
  advance('', 1, ARGV[2], ARGV[3])
  return held and 1 or 0
end
if redis.call('HLEN', KEYS[1]) == 0 then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[1], '0')
return 1
