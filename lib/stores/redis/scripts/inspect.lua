-- Looks at a plain lock.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence
-- ARGV[1]  channel
--
-- Returns false when nobody holds it, else { PTTL, owners, fence or false, listeners }.

local owners = redis.call('HKEYS', KEYS[1])
if #owners == 0 then return false end
return {
  redis.call('PTTL', KEYS[1]),
  owners,
  redis.call('GET', KEYS[2]),
  redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2],
}
