-- The lock goes to the next waiter in the queue, or to the waiters outside of the queue. Expects plain-queue.include.lua, in
-- `publishing` and `release_channel` how a release is announced, and in `kept` whether the lock stays taken after it.

-- How long the head leaves the lock to the waiters outside of the queue, ms.
local LEFT_TO_OUTSIDERS = 10
-- About how many turns the waiters outside of the queue have in a row. The client that releases the lock takes it again
-- sooner than a message reaches the head.
local TURNS_IN_A_ROW = 2

-- A waiter outside of the queue subscribes to releases, as Redisson does. It does not know the queue, and would never get
-- its turn. So each of these waiters gets about as many turns as each waiter in the queue. Now and then the lock is freed,
-- and from then on the head follows the releases of the lock.
local function is_left_to_outsiders()
  local counting = publishing == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local listening = redis.pcall('PUBSUB', counting, release_channel)[2]
  if type(listening) ~= 'number' or listening == 0 then return false end
  outsiders = true
  local rivals = listening + redis.call('ZCARD', KEYS[3])
  return admits() and micros % (TURNS_IN_A_ROW * rivals) < listening
end

-- The user may not be allowed to send the message. The writes of the script stay valid.
local function tell_release() redis.pcall(publishing, release_channel, '0') end

-- Returns for how long `asker` leaves the lock to the waiters outside of the queue, if `asker` is the head.
local function hand_over()
  if not is_left_to_outsiders() then
    advance(not kept)
    -- A waiter outside of the queue polls at the end that it was told. A lock that is kept has another end, and a claim has
    -- an earlier one.
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
    -- The process may be frozen, and the waiters outside may not want the lock. Then this is as if the process had a claim.
    if lives then tell_further(CLAIM, owner) end
    if not lives then redis.call('ZREM', KEYS[3], entry) end
  until lives
end
