-- Takes a plain lock, or stands in its queue.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence: "<last token> <its owner>"
-- KEYS[3]  the queue: "p <owner> <lease in ms>" by arrival in microseconds; left out by a store that has no queues
-- ARGV[1]  owner
-- ARGV[2]  lease, ms
-- ARGV[3]  the least token to give; 0 for any
-- ARGV[4]  how long the fence outlives the lease, ms
-- ARGV[5]  to stand in the queue when it is busy: the arrival that the owner was told before, microseconds, or 0 when it is new;
--          '' or left out only to ask
-- ARGV[6]  as in queue.include.lua
--
-- Returns the fencing token when the owner holds the lock now, or { -3 } when it was last used as a kind with a queue, which
-- retire.lua has to look at first. When another holds it, { PTTL, holder }, or where the owner stands { ms until it should look
-- again, holder, arrival, server ms, server, 1 when it has to listen for the release }.
-- An owner that holds it already (a command sent twice, or a claim that it confirms) keeps it, and its hold count stays 1.

-- @include plain

local owner, lease, stay = ARGV[1], ARGV[2], ARGV[4]
local entry = KEYS[3] and (ARGV[5] or '') ~= '' and 'p ' .. owner .. ' ' .. lease
local left, holder = in_the_way(KEYS[1], owner)
if left == FOREIGN then return no_lock() end
if left == QUEUED then return { QUEUED } end
local token
if not left then
  -- Neither needs room, so that a command that is sent again, and one whose turn it is, is not refused where memory is full.
  if entry and ARGV[5] ~= '0' then redis.call('ZREM', KEYS[3], entry) end
  if holder then redis.call('PEXPIRE', KEYS[1], lease) end
  -- Whoever finds it free takes it, for who holds it hands it over: it is free where a holder has died.
  token = enter(KEYS[1], KEYS[2], owner, lease, tonumber(ARGV[3]), stay)
  if not token then return { QUEUED } end
  if not KEYS[3] or redis.call('EXISTS', KEYS[3]) == 0 then return token end
elseif not entry then
  return { left, holder }
end

local asker, outsiders, last_token

-- @include plain-queue

if not token then return place_of(entry, stand(entry, ARGV[5], lease + stay + left), left, holder) end
-- The owner may stand there all the same: the answer that told it of its place was lost.
if entry and ARGV[5] == '0' then redis.call('ZREM', KEYS[3], entry) end
-- Those who wait have been told of another end.
advance(true)
return token
