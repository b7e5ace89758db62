-- Deletes a plain lock whoever holds it, and tells who waits.
--
-- KEYS[1]  the lock
-- ARGV[1]  channel
--
-- Returns 1, or 0 when nobody held it. A key of another type is an error, and stays.

if redis.call('HLEN', KEYS[1]) == 0 then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[1], '0')
return 1
