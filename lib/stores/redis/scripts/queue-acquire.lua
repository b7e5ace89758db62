-- Enters a lock with a queue, or stands in the queue. Run again by the same owner it changes nothing, except that a
-- lost place is taken again and a granted claim becomes the full lease.
--
-- KEYS     as in queue.include.lua
-- ARGV[1]  owner
-- ARGV[2]  mode: x or s
-- ARGV[3]  kind: fair, read-write or semaphore
-- ARGV[4]  capacity
-- ARGV[5]  lease, ms
-- ARGV[6]  1 to stand in the queue when it is busy
-- ARGV[7]  the arrival that the owner was told before, microseconds; 0 when it is new
-- ARGV[8]  the owner's own write hold, beside which it may read; '' when it has none
-- ARGV[9]  prefix of the channels of waiting processes
-- ARGV[10] how long the fence outlives the last holder, ms
-- ARGV[11] as in queue.include.lua
--
-- Returns { 1, server ms, server, token } when it holds the lock now, { 0, server ms, server, ms until it should look
-- again, arrival, holder } when it does not, or { -1, kind, capacity } when the name is in use as another kind.

-- @include hash

local owner, mode, kind, capacity, lease = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local beside, channel, stay = ARGV[8], ARGV[9], ARGV[10]
local member, entry = mode .. owner, table.concat({ mode, owner, ARGV[5] }, ' ')

-- @include queue

if foreign then
  -- A plain lock is another kind.
  if redis.call('TYPE', KEYS[1]).ok == 'hash' and holder_of(KEYS[1]) then return { -1, 'lock', 1 } end
  return foreign
end
read_fence()
if used and (used ~= kind or places ~= capacity) and in_use() then
  -- Perhaps by the dead only.
  advance(used, places, channel, stay)
  if in_use() then return { -1, used, places } end
end

-- After its first write a script is not refused any more because memory is full. One that has the lock already, or whose
-- turn it is, leaves the queue first, and gets what it has been promised. A new one begins with what needs room.
local function enter(deadline, waited)
  if waited then redis.call('ZREM', KEYS[2], entry) end
  hold(member, math.max(deadline or 0, now + lease))
  if not waited then redis.call('ZREM', KEYS[2], entry) end
  -- A claim has its token already, and it may be in use.
  if deadline and last_owner == owner then
    keep_fence(stay)
    return { 1, now, server(), last }
  end
  local token = next_token()
  write_fence(token, owner, kind, capacity, stay)
  return { 1, now, server(), token }
end

local function own_deadline() return redis.call('ZSCORE', KEYS[1], member) end
local deadline = first == member and ends or second and own_deadline()
if deadline then return enter(tonumber(deadline), true) end

-- Those ahead come first, if one of them may enter: nobody else may have noticed that a holder is over. One that may not,
-- and is all that keeps this one out, has to be alive.
local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
local function may_pass() return admits(string.sub(head, 1, 1), kind, capacity) or admits(mode, kind, capacity, beside) end
if head and head ~= entry and may_pass() then
  advance(kind, capacity, channel, stay)
  deadline = own_deadline()
  if deadline then return enter(tonumber(deadline), true) end
  head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
end

-- Whoever reads beside its own write hold passes those who wait: it is what they wait for.
if (not head or head == entry or beside ~= '') and admits(mode, kind, capacity, beside) then
  local reply = enter(nil, head == entry)
  -- It has looked by itself, so nobody has told those behind it, some of whom may enter too.
  if head == entry then advance(kind, capacity, channel, stay) end
  return reply
end

local stands = redis.call('ZSCORE', KEYS[2], entry)
local arrival = tonumber(stands or ARGV[7])
if ARGV[6] == '1' then
  if arrival == 0 then
    local latest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
    arrival = math.max(micros, latest and latest + 1 or 0)
  end
  -- One that stands there needs no room, and is not refused for lack of it.
  if not stands then redis.call('ZADD', KEYS[2], arrival, entry) end
  -- The queue outlives whom it waits for.
  redis.call('PEXPIRE', KEYS[2], lease + stay + math.max(in_the_way('x') - now, 0))
end

local ends_at, holder = in_the_way(mode)
local rank = redis.call('ZRANK', KEYS[2], entry) or 0
return { 0, now, server(), look_after(math.max(ends_at - now, 1), rank), arrival, holder or false }
