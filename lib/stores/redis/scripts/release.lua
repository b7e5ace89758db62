-- Gives up a plain lock, or an entry in its queue, and hands the lock over to the next waiter. If the queue is empty, it
-- tells the subscribers to releases, as Redisson does: DEL and a message "0". In the same step another owner may take an
-- entry at the end of the queue: the next caller of the process that gives the lock up.
--
-- KEYS     as in acquire.lua
-- ARGV[1]  owner
-- ARGV[2]  PUBLISH, or SPUBLISH
-- ARGV[3]  channel of the release
-- ARGV[4]  the last fencing token given out under this hold; 0 if it is the one that the fence has
-- ARGV[5]  how long the fence outlives the lock, ms
-- ARGV[6]  how long the lock stays taken after the release, ms; 0 or left out frees it
-- ARGV[7]  the lease that the owner has asked for if it may have an entry in the queue, ms; else '' or left out
-- ARGV[8]  the owner that takes an entry; '' or left out for none
-- ARGV[9]  the lease that this owner asks for, ms
-- ARGV[10] as in queue.include.lua
--
-- Returns 1, or if the owner did not hold the lock: 0 if no owner holds it, -1 if another owner holds it. If an owner takes
-- an entry, returns { that, and what acquire.lua answers to it }, or { that, its token, its rivals }, with the rivals as in
-- queue.include.lua.
-- A key that is no lock is an error, and stays.

local owner, publishing, release_channel, kept = ARGV[1], ARGV[2], ARGV[3], (ARGV[6] or '0') ~= '0'
local stay = kept and ARGV[5] + ARGV[6] or ARGV[5]
local asker = (ARGV[8] or '') ~= '' and ARGV[8]
local released
-- In a slot that is being moved, a key that is gone cannot be created again. So on a cluster the hold goes after the next one
-- is written.
local goes_last = ARGV[#ARGV] == 'cluster' and not kept and KEYS[3] and (asker or redis.call('EXISTS', KEYS[3]) == 1)
-- The write to the lock comes first: after a first write, a server that is out of memory lets the other writes pass too.
if not kept then
  -- The owner's field is the only one, and the hash is deleted with it.
  released = redis.pcall(goes_last and 'HEXISTS' or 'HDEL', KEYS[1], owner)
  if type(released) == 'table' then
    -- The name may be in use for something else now. An entry in the queue would outlive its waiter.
    if (ARGV[7] or '') ~= '' then redis.pcall('ZREM', KEYS[3], 'p ' .. owner .. ' ' .. ARGV[7]) end
    -- The second call raises the error and ends the script, and the error names this line.
    redis.call('HDEL', KEYS[1], owner)
  end
  if goes_last and released == 1 then
    -- Needs no room. If a later command is refused, the hold ends soon.
    redis.call('PEXPIRE', KEYS[1], 1000)
  elseif goes_last then
    -- A replica refuses this.
    redis.call('HDEL', KEYS[1], owner)
    goes_last = false
  end
else
  released = redis.call('HEXISTS', KEYS[1], owner)
  if released == 0 then
-- @include master
    ensure_master('HDEL', KEYS[1], owner)
  else
    -- The hold stays under another owner, which a late renewal does not know. The key stays: in a slot that is being moved,
    -- a key that is gone cannot be created again.
    redis.call('PEXPIRE', KEYS[1], ARGV[6])
    redis.call('HSET', KEYS[1], 'kept:' .. owner, 1)
    redis.call('HDEL', KEYS[1], owner)
    local left = redis.call('PTTL', KEYS[2])
    if left < stay then redis.call('PEXPIRE', KEYS[2], stay) end
  end
end
local last_token
if released == 1 and ARGV[4] ~= '0' then
  last_token = tonumber(ARGV[4])
  -- Written before the other token is known, as in plain.include.lua.
  local fence = redis.call('SET', KEYS[2], ARGV[4], 'PX', stay, 'GET')
  local fenced = fence and tonumber(string.match(fence, '^%d+'))
  if fenced and fenced > last_token then
    redis.call('SET', KEYS[2], fence, 'PX', stay)
    last_token = fenced
  end
end

-- Mostly no owner waits. That is done before the functions are made that only the other cases need: see acquire.lua.
if released == 1 and not asker and not (KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1) then
  -- The message is also sent if the lock stays taken: the waiters have been told of a later end. The user may not be allowed
  -- to send the message. The writes of the script stay valid.
  redis.pcall(publishing, release_channel, '0')
  return released
end

-- @include plain
-- @include in-the-way

-- An owner that holds the lock has no entry in the queue.
local stood = released == 0 and (ARGV[7] or '') ~= '' and redis.call('ZREM', KEYS[3], 'p ' .. owner .. ' ' .. ARGV[7]) == 1
if released == 0 then
  local holder = holder_of(KEYS[1])
  if holder == false then return no_lock() end
  if holder then released = -1 end
end
-- Nothing has changed for the waiters. If the lock has no holder any more, the script goes on, because the waiters may not
-- know that yet.
if released == -1 and not stood and not asker then return released end
if released ~= 1 and not asker and not (KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1) then return released end

-- The lock has no holder, and the first in the queue waits for a lock of another kind. This script may neither let it in nor
-- pass it.
if released == 0 then
  local head = KEYS[3] and redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if head and string.sub(head, 1, 1) ~= 'p' then
    if asker then return no_lock() end
    return released
  end
end

local outsiders

-- @include plain-queue
-- @include plain-hand-over

free = goes_last or nil
local function pass_on()
  local wait = hand_over()
  if goes_last then redis.call('HDEL', KEYS[1], owner) end
  return wait
end

if not asker then
  pass_on()
  return released
end
if redis.call('HEXISTS', KEYS[1], asker) == 1 then
  -- This command has been sent twice. The owner may have been granted a claim meanwhile, and takes this answer for its whole
  -- lease. It may also have extended its hold.
  local left = math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[9]))
  redis.call('PEXPIRE', KEYS[1], digits(left))
  redis.call('PEXPIRE', KEYS[2], digits(left + ARGV[5]))
  local token = read_fence(redis.call('GET', KEYS[2]) or '')
  -- The fence may have been evicted.
  if not token then
    token = next_token()
    let_in(nil, asker, token, left)
  end
  return { released, token, redis.call('EXISTS', KEYS[3]) }
end
local entry = 'p ' .. asker .. ' ' .. ARGV[9]
local arrival = take_entry(entry, 0, ARGV[9] + ARGV[5] + blocked_until() - now)
local wait = pass_on()
if asker_token then return { released, asker_token, asker_rivals } end
if wait then return { released, wait, false, digits(arrival), now, server(), 1 } end
local left = blocked_until() - now
return { released, unpack(busy_reply(entry, arrival, left, holder_of(KEYS[1]) or nil)) }
