-- Takes a lock of any kind away from its holders, tells their processes, and lets in or wakes who waits.
--
-- KEYS     as in queue.include.lua
-- ARGV[1]  PUBLISH, or SPUBLISH
-- ARGV[2]  channel of the plain lock
-- ARGV[3]  x or s: from the exclusive holder or the shared ones of a read-write lock only; '' from all
-- ARGV[4]  prefix of the channels of processes
-- ARGV[5]  how long the fence outlives the last holder, ms
-- ARGV[6]  as in queue.include.lua
--
-- Returns 1, or 0 when nobody held it. A key that is no lock is an error, and stays.

-- @include hash

-- A hint, which a user may not be allowed to send: what has been done counts all the same.
local function tell_lost(owner)
  local client = string.match(owner, '^(.*):')
  if client then redis.pcall('PUBLISH', ARGV[4] .. client, 'lost ' .. owner) end
end

if redis.call('TYPE', KEYS[1]).ok == 'zset' then
  local member
-- @include queue

  if foreign then return foreign end
  local taken = 0
  for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if ARGV[3] == '' or ARGV[3] == string.sub(member, 1, 1) then
      redis.call('ZREM', KEYS[1], member)
      taken = taken + 1
      tell_lost(string.sub(member, 2))
    end
  end
  holders = holders - taken
  if taken > 0 and holders > 0 then keep_until_last() end
  advance('', 1, ARGV[4], ARGV[5])
  return math.min(taken, 1)
end
local owner = holder_of(KEYS[1])
if owner == false then return no_lock() end
if ARGV[3] ~= '' or not owner then return 0 end
redis.call('DEL', KEYS[1])
tell_lost(owner)
redis.pcall(ARGV[1], ARGV[2], '0')
return 1
