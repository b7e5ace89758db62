-- Keeps the label of a client, or reads it.
--
-- KEYS[1]  the label
-- ARGV[1]  ms for which it is kept; '' only reads
-- ARGV[2]  the label to keep
--
-- Returns the label, or false if none is kept.

if ARGV[1] == '' then return redis.call('GET', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
return ARGV[2]
