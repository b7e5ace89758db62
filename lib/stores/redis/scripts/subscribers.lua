-- Counts subscribers. In a script, because the server of a script is that of the locks: a proxy in front of a master and its
-- replicas may send a PUBSUB by itself to any of these.
--
-- KEYS     none
-- ARGV     channels
--
-- Returns { channel, count, … }

return redis.call('PUBSUB', 'NUMSUB', unpack(ARGV))
