-- Enters a lock with a queue, or takes an entry in the queue. A second run by the same owner changes nothing, except that a
-- lost entry is taken again and a granted claim becomes the full lease.
--
-- KEYS     as in holders.include.lua
-- ARGV[1]  owner
-- ARGV[2]  mode: x or s
-- ARGV[3]  kind: fair, read-write or semaphore; '' only makes the name free for the plain lock, unless it is in use
-- ARGV[4]  capacity
-- ARGV[5]  lease, ms
-- ARGV[6]  1 to take an entry in the queue if the lock is busy
-- ARGV[7]  the arrival that the owner was told before, microseconds; 0 for a new owner
-- ARGV[8]  the owner's own write hold, beside which it may read; '' if it has none
-- ARGV[9]  how long the fence outlives the last holder, ms
-- ARGV[10] as in queue.include.lua
--
-- Returns { 1, server ms, server, token } if the owner holds the lock now, { 0, server ms, server, ms until it polls again,
-- arrival, holder } if it does not, or { -1, kind, capacity } if the name is in use as another kind. Without a kind
-- it always returns that: { -1, lock, 1 } if the name is free for the plain lock.

-- @include hash
-- @include master
-- @include rights

local owner, mode, kind, capacity, lease = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local own_write_hold, stay = ARGV[8], ARGV[9]
local member, entry = mode .. owner, table.concat({ mode, owner, ARGV[5] }, ' ')

-- @include holders

-- No `asker`: a message reaches the owner that asks before the answer does, and says less.
local asker, outsiders

-- @include queue

if foreign then
  -- A plain lock is another kind.
  if redis.call('TYPE', KEYS[1]).ok == 'hash' and holder_of(KEYS[1]) then
    ensure_master('HDEL', KEYS[1], '')
    return { -1, 'lock', 1 }
  end
  return foreign
end
need('ZREM', KEYS[1])
read_fence()
local is_other = used ~= kind or used_capacity ~= capacity
if (used and is_other or kind == '') and in_use() then
  -- Perhaps only dead processes use the lock. The living waiters get their turn.
  advance()
  if in_use() then
    ensure_master('ZREM', KEYS[1], '')
    -- If the fence was lost, nothing tells which kind it is.
    return { -1, used or 'queued', used_capacity or 1 }
  end
end
if kind == '' then
  -- From now on the fence names no kind, so that acquire.lua has nothing to ask for.
  if used then redis.call('SET', KEYS[2], digits(last) .. ' ' .. last_owner, 'KEEPTTL') end
  return { -1, 'lock', 1 }
end
local function head_of_queue() return redis.call('ZRANGE', KEYS[3], 0, 0)[1] end
local head = head_of_queue()
-- The lock has no holder, and some waiters wait for it as a plain lock. A name with waiters keeps its kind, so the first one
-- gets a claim of that kind: without this, a later owner would take the name from waiters that arrived before it. Each dead
-- waiter that cannot be told from a living one keeps this owner out for the time of a claim.
while head and not is_of_kind(string.sub(head, 1, 1)) do
  local whose, wanted = string.match(head, '^%S (%S+) ?(%d*)$')
  local token, span = next_token(), math.min(tonumber(wanted) or CLAIM, CLAIM)
  redis.call('ZREM', KEYS[3], head)
  if is_subscribed(whose) then
    redis.call('HSET', KEYS[1], whose, 1)
    redis.call('PEXPIRE', KEYS[1], span)
    redis.call('SET', KEYS[2], digits(token) .. ' ' .. whose, 'PX', span + stay)
    local rivals = head_of_queue() and 1 or 0
    if send(whose, 'granted', whose, digits(token), digits(now), digits(span), server(), rivals) then return { -1, 'lock', 1 } end
    redis.call('HDEL', KEYS[1], whose)
  end
  head = head_of_queue()
end

-- After its first write a script is not refused any more because the memory is full. An owner that has the lock already, or
-- is at its turn, leaves the queue first, and gets its promised hold. A new owner begins with the write that needs
-- room.
local function enter(deadline, waited)
  if waited then redis.call('ZREM', KEYS[3], entry) end
  hold(member, math.max(deadline or 0, now + lease))
  if not waited then redis.call('ZREM', KEYS[3], entry) end
  -- A claim has its token already, and the token may be in use.
  if deadline and last_owner == owner then
    keep_fence()
    return { 1, now, server(), last }
  end
  local token = next_token()
  write_fence(token, member, kind, capacity)
  return { 1, now, server(), token }
end

local function own_deadline() return redis.call('ZSCORE', KEYS[1], member) end
local deadline = first == member and ends or second and own_deadline()
if deadline then return enter(tonumber(deadline), true) end

-- The waiters ahead come first, if one of them may enter: perhaps no other process has noticed that a hold is over. If a
-- waiter ahead may not enter, and is all that keeps this owner out, it has to be alive.
local function enters() return may_enter(mode, kind, capacity, own_write_hold) end
if head and head ~= entry and (may_enter(string.sub(head, 1, 1), kind, capacity) or enters()) then
  advance()
  deadline = own_deadline()
  if deadline then return enter(tonumber(deadline), true) end
  head = head_of_queue()
end

-- An owner that reads beside its own write hold passes the waiters: they wait for this owner. That hold may be over.
local function writes() return own_write_hold ~= '' and exclusive_owner() == own_write_hold end
if (not head or head == entry or writes()) and enters() then
  local reply = enter(nil, head == entry)
  -- The owner has polled, so the waiters behind it have got no message. Some of them may enter too.
  if head == entry then advance() end
  return reply
end

local arrival = tonumber(redis.call('ZSCORE', KEYS[3], entry) or ARGV[7])
if ARGV[6] == '1' then
  arrival = take_entry(entry, arrival, lease + stay + math.max(blocked_until('x') - now, 0))
else
  ensure_master('ZREM', KEYS[1], '')
end

local ends_at, holder = blocked_until(mode)
local rank = redis.call('ZRANK', KEYS[3], entry) or 0
return { 0, now, server(), look_after(math.max(ends_at - now, 1), rank), arrival, holder or false }
