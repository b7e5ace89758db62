-- Takes a lock of any kind away from its holders, tells their processes, and lets in or wakes the waiters.
--
-- KEYS     as in queue.include.lua
-- ARGV[1]  PUBLISH, or SPUBLISH
-- ARGV[2]  channel of the release of a plain lock
-- ARGV[3]  x or s: only from the exclusive holder or the shared holders of a read-write lock; '' from all
-- ARGV[4]  how long the fence outlives the last holder, ms
-- ARGV[5]  the end of the message to the holders, which names the client that takes the lock
-- ARGV[6]  the owners that lose the lock, with a space between. A client of the application may send the script twice: the owner
--          that the first one has let in keeps the lock
-- ARGV[7]  as in queue.include.lua
--
-- Returns 1, or 0 if none of them holds the lock. A key that is no lock is an error, and stays.

-- @include plain
-- @include in-the-way
-- @include master

local publishing, release_channel, stay, asker_text = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local asker, outsiders

-- A semaphore may have thousands of holders, so the text is not searched for each.
local meant = {}
for owner in string.gmatch(ARGV[6], '%S+') do meant[owner] = true end

-- The message is a hint, which a user may not be allowed to send. The writes of the script stay valid.
local function tell_lost(owner)
  local client = string.match(owner, '^(.*):')
  if client then redis.pcall('PUBLISH', 'lock_queue__channel:' .. client, 'lost ' .. owner .. asker_text) end
end

if redis.call('TYPE', KEYS[1]).ok == 'zset' then
  -- The fence names the kind that the lock is in use as.
  local kind, capacity, member = '', 1, nil
-- @include holders
-- @include queue

  if foreign then return foreign end
  local taken = 0
  for _, holder in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if meant[string.sub(holder, 2)] and (ARGV[3] == '' or ARGV[3] == string.sub(holder, 1, 1)) then
      redis.call('ZREM', KEYS[1], holder)
      taken = taken + 1
      tell_lost(string.sub(holder, 2))
    end
  end
  holders = holders - taken
  if taken > 0 and holders > 0 then keep_until_last() end
  if taken == 0 then ensure_master('ZREM', KEYS[1], '') end
  advance()
  return math.min(taken, 1)
end
local owner = holder_of(KEYS[1])
if owner == false then return no_lock() end
if ARGV[3] ~= '' or not owner or not meant[owner] then
  ensure_master('HDEL', KEYS[1], '')
  return 0
end
redis.call('DEL', KEYS[1])
tell_lost(owner)
local kept, last_token = false, nil
-- @include plain-queue
-- @include plain-hand-over

hand_over()
return 1
