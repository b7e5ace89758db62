-- Names keys, one step of SCAN, and the run of the server that the step belongs to: after a restart or a failover, a cursor
-- of another run leads anywhere.
--
-- KEYS     none
-- ARGV[1]  cursor
-- ARGV[2]  pattern of the keys
-- ARGV[3]  how many keys the server looks at
--
-- Returns { the run, '' if the user may not ask for it; the next cursor; keys }

local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
local next_cursor, keys = unpack(redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3]))
return { run, next_cursor, keys }
