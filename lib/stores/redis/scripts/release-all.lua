-- Gives up several plain locks of one owner, each as release.lua does. If one of them fails, its answer is the error, and the
-- others go on.
--
-- KEYS[i]     the i-th of n locks
-- KEYS[n+i]   its fence
-- KEYS[2n+i]  its queue
-- ARGV[1]     owner
-- ARGV[2]     PUBLISH, or SPUBLISH
-- ARGV[3]     how long a fence outlives its lock, ms
-- ARGV[4]     the lease that the owner has asked for, ms
-- ARGV[5]     as in queue.include.lua
-- ARGV[5+i]   channel of the release of the i-th lock, for SPUBLISH; that for PUBLISH follows from the key
--
-- Returns what release.lua answers for each lock, in their order, or 1 alone if that is the answer for all, as mostly. On a
-- replica it returns one error.

-- @include error-of
-- @include pieces

local scripts = {
  -- @script release
}

local locks = #KEYS / 3
local owner, publishing = ARGV[1], ARGV[2]

-- The channel as keys.ts makes it. Fifty arguments less make the command shorter by a quarter.
local function channel_of(i)
  local lock = KEYS[i]
  return ARGV[5 + i] or 'redisson_lock__channel:' .. (string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}')
end

-- Mostly no lock has waiters, so one command asks for all queues.
local waited = exist(2 * locks + 1, 3 * locks)

-- A lock that the owner holds and that has no waiters. Any other one is left to release.lua.
local function freed(i)
  if waited or redis.pcall('HDEL', KEYS[i], owner) ~= 1 then return false end
  redis.pcall(publishing, channel_of(i), '0')
  return true
end

local function release(i)
  local keys = { KEYS[i], KEYS[locks + i], KEYS[2 * locks + i] }
  return scripts.release(keys, { owner, publishing, channel_of(i), '0', ARGV[3], '0', ARGV[4], '', '0', ARGV[5] })
end

local replies, are_freed = {}, true
for i = 1, locks do
  if freed(i) then
    replies[i] = 1
  else
    are_freed = false
    local done, reply = pcall(release, i)
    if not done then
      reply = error_of(reply, 'release-all.lua')
      -- A replica refuses all of them. The connection looks for the master if the script as a whole is refused.
      if string.find(reply.err, 'READONLY ', 1, true) then return reply end
    end
    replies[i] = reply
  end
end
return are_freed and 1 or replies
