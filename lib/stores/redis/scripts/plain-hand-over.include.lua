-- The lock goes to the next in the queue, or to those outside of it. Expects plain-queue.include.lua, in `publishing` and
-- `release_channel` how a release is told, and in `kept` whether the lock stays taken all the same.

-- How long the head leaves the lock to those outside, ms.
local LEFT_TO_OUTSIDERS = 10
-- How many turns those outside have in a row, about: who releases it is quicker to take it again than a message to the head.
local TURNS_IN_A_ROW = 2

-- Who waits outside of the queue listens for the release, as Redisson does: it does not know the queue, and would never get
-- its turn. So each of them gets about as many turns as each who stands in it: now and then the lock is freed, and the head
-- follows its releases from then on.
local function is_left_to_outsiders()
  local counting = publishing == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local listening = redis.pcall('PUBSUB', counting, release_channel)[2]
  if type(listening) ~= 'number' or listening == 0 then return false end
  outsiders = true
  local rivals = listening + redis.call('ZCARD', KEYS[3])
  return admits() and micros % (TURNS_IN_A_ROW * rivals) < listening
end

-- The user may not be allowed to send it, and what has been done counts all the same.
local function tell_release() redis.pcall(publishing, release_channel, '0') end

-- Returns for how long `asker` leaves the lock to those outside, if it is the head.
local function hand_over()
  if not is_left_to_outsiders() then
    advance(not kept)
    -- Who waits outside looks at the end that it was told of. A lock that is kept has another, and a claim an earlier one.
    if free ~= false or kept or outsiders and blocked_until() - now <= CLAIM then tell_release() end
    return
  end
  tell_release()
  repeat
    local entry = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
    local owner = string.match(entry or '', '^%S (%S+)')
    if not owner then return end
    if owner == asker then return LEFT_TO_OUTSIDERS end
    local lives = tell(owner, 'next', owner, LEFT_TO_OUTSIDERS, 1)
    -- It may be frozen, and those outside may want nothing: then it is as if it had a claim.
    if lives then tell_further(CLAIM, owner) end
    if not lives then redis.call('ZREM', KEYS[3], entry) end
  until lives
end
