-- Reads when the work of a lock was last done; see remember.lua.
--
-- KEYS[1]  the note
-- ARGV     none
--
-- Returns the ms since then, or false if there is no note.

local done = tonumber(redis.call('GET', KEYS[1]) or nil)
if not done then return false end
local time = redis.call('TIME')
-- The clock may have been set back.
return math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - done)
