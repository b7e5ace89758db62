-- Takes a lock of any kind away from whoever holds it, and lets in or wakes who waits.
--
-- KEYS     as in queue.include.lua
-- ARGV[1]  PUBLISH, or SPUBLISH
-- ARGV[2]  channel of the plain lock
-- ARGV[3]  prefix of the channels of waiting processes
-- ARGV[4]  how long the fence outlives the last holder, ms
-- ARGV[5]  as in queue.include.lua
--
-- Returns 1, or 0 when nobody held it. A key of another type is an error, and stays.

if redis.call('TYPE', KEYS[1]).ok == 'zset' then
-- @include queue

  local held = holders > 0
  redis.call('DEL', KEYS[1])
  holders = 0
  advance('', 1, ARGV[3], ARGV[4])
  return held and 1 or 0
end
if redis.call('HLEN', KEYS[1]) == 0 then return 0 end
redis.call('DEL', KEYS[1])
redis.call(ARGV[1], ARGV[2], '0')
return 1
