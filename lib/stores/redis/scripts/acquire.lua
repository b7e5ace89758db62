-- Takes a plain lock, in the layout of Redisson's RLock: a hash { owner = 1 } with a TTL.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence: "<last token> <its owner>"
-- ARGV[1]  owner
-- ARGV[2]  lease, ms
-- ARGV[3]  how long the fence outlives the lease, ms
--
-- Returns the fencing token when the owner holds the lock now, else { PTTL, holder }.
-- An owner that holds it already (a command sent twice) keeps it, and its hold count stays 1.

local mine = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if not mine and redis.call('EXISTS', KEYS[1]) == 1 then
  return { redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1] }
end

redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])

-- The server's microseconds grow even where the counter was lost; the counter grows even where the clock steps back.
local time = redis.call('TIME')
local token = time[1] * 1000000 + time[2]
local fence = redis.call('GET', KEYS[2])
local last = fence and tonumber(string.match(fence, '^%d+'))
if last and last >= token then token = last + 1 end
redis.call('SET', KEYS[2], string.format('%.0f %s', token, ARGV[1]), 'PX', ARGV[2] + ARGV[3])
return token
