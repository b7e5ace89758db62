-- Keeps the note of a client for other processes, or reads it, or removes it.
--
-- KEYS[1]  the note
-- ARGV[1]  ms for which it is kept; '' only reads, '0' removes it
-- ARGV[2]  the note to keep
--
-- Returns the note, or false if none is kept.

if ARGV[1] == '' then return redis.call('GET', KEYS[1]) end
if ARGV[1] == '0' then
  redis.call('PEXPIRE', KEYS[1], 0)
  return false
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
return ARGV[2]
