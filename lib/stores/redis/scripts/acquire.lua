-- Takes a plain lock, or an entry in its queue.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence: "<last token> <its owner>"
-- KEYS[3]  the queue: "p <owner> <lease in ms>" by arrival in microseconds; left out by a store that has no queues
-- ARGV[1]  owner
-- ARGV[2]  lease, ms
-- ARGV[3]  the least token to give; 0 for any
-- ARGV[4]  the lease and how long the fence outlives it, ms
-- ARGV[5]  to take an entry in the queue if the lock is busy: the arrival that the owner was told before, microseconds, or 0
--          for a new owner; '' or left out only to ask
-- ARGV[#ARGV]  as in queue.include.lua
--
-- Returns the fencing token if the owner holds the lock now, or { -3 } if the name was last used as a kind with a queue,
-- which queue-acquire.lua has to look at first. If another owner holds the lock, returns { PTTL, holder }, or, if the owner has an
-- entry, { ms until it polls again, holder, arrival, server ms, server, 1 if it has to subscribe to releases }.
-- An owner that holds the lock already (a command sent twice, or a claim that the owner confirms) keeps it, and its hold
-- count stays 1. The hold ends no sooner: a command that arrives late may come after an extension.

-- @include plain
-- @include rights

local owner, lease = ARGV[1], ARGV[2]

-- Mostly the lock is free and has no waiters. That is done before the functions are made which only the other cases need:
-- the server makes them anew at each call, which takes as long as two commands.
local fields = redis.pcall('HLEN', KEYS[1])
if fields == 0 and not (KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1) then
  need('HDEL', KEYS[1])
  return enter(KEYS[1], KEYS[2], owner, lease, tonumber(ARGV[3]), ARGV[4]) or { QUEUED }
end

-- @include in-the-way
-- @include master

local stay = ARGV[4] - lease
local entry = KEYS[3] and (ARGV[5] or '') ~= '' and 'p ' .. owner .. ' ' .. lease
local left, holder = in_the_way(KEYS[1], owner, fields)
if left == QUEUED then return { QUEUED } end
-- An entry would be a write.
if left == FOREIGN or left and not entry then ensure_master('HDEL', KEYS[1], owner) end
if left == FOREIGN then return no_lock() end
if left and not entry then return { left, holder } end
need('HDEL', KEYS[1])
local token
if not left then
  -- Neither of these commands needs room. So a command that is sent again, and an owner at its turn, is not refused if the
  -- memory is full.
  if entry and ARGV[5] ~= '0' then redis.call('ZREM', KEYS[3], entry) end
  local span = lease
  if holder then
    span = math.max(redis.call('PTTL', KEYS[1]), tonumber(lease))
    redis.call('PEXPIRE', KEYS[1], span)
  end
  local has_waiters = KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1
  -- An owner that finds the lock free takes it. A holder hands the lock over, so the lock is free only if a holder has died.
  token = enter(KEYS[1], KEYS[2], owner, span, tonumber(ARGV[3]), span + stay)
  if not token then return { QUEUED } end
  if not has_waiters then return token end
else
  need('ZREM', KEYS[3])
end

local asker, outsiders, last_token

-- @include plain-queue

if not token then return busy_reply(entry, take_entry(entry, ARGV[5], ARGV[4] + left), left, holder) end
-- The owner may still have an entry: the answer that told it so was lost, or it asks without one because it hears no
-- messages now.
redis.call('ZREM', KEYS[3], 'p ' .. owner .. ' ' .. lease)
-- The waiters have been told of another end.
advance(true)
return token
