-- Passes a hold of a kind with holders on from its owner to another one, under a new token. Waiters get a message only if the
-- hold now ends sooner than they have been told.
--
-- KEYS     as in holders.include.lua
-- ARGV[1]  owner
-- ARGV[2]  the next owner
-- ARGV[3]  mode: x or s
-- ARGV[4]  kind
-- ARGV[5]  capacity
-- ARGV[6]  lease of the next owner, ms
-- ARGV[7]  the least token to give
-- ARGV[8]  how long the fence outlives the last holder, ms
-- ARGV[9]  as in queue.include.lua
--
-- Returns as transfer.lua: { 1, token, server ms }, { 0, 0, server ms } if the owner could enter beside the present holders,
-- or { -1, 0, server ms }, also if the lock is of another kind or capacity.

-- @include hash
-- @include master
-- @include rights

local owner, mode, kind, capacity = ARGV[1], ARGV[3], ARGV[4], tonumber(ARGV[5])
local lease, least, stay = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local member, next_member = mode .. owner, mode .. ARGV[2]

-- @include holders

local asker, outsiders

-- @include queue

if foreign then return foreign end
local function deadline_of(holder) return tonumber(redis.call('ZSCORE', KEYS[1], holder) or nil) end
local repeated = deadline_of(next_member)
local ends_before = repeated or deadline_of(member)
read_fence()
-- A permit of a semaphore and the hold of a reader have the same member.
local is_other = used and (used ~= kind or used_capacity ~= capacity)
if not ends_before or is_other then ensure_master('ZREM', KEYS[1], '') end
if not ends_before then return { may_enter(mode, kind, capacity) and 0 or -1, 0, now } end
if is_other then return { -1, 0, now } end
need('ZREM', KEYS[1])
-- The next owner may have renewed its hold since.
local ends_at = math.max(repeated or 0, now + lease)
-- This command needs no room, and lets the following writes pass if the memory is full.
local latest = tonumber(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2])
redis.call('PEXPIREAT', KEYS[1], math.max(ends_at, latest))
hold(next_member, ends_at)
if repeated and last_owner == ARGV[2] and last >= least then
  keep_fence()
  return { 1, last, now }
end
local token = math.max(next_token(), least)
write_fence(token, next_member, used or kind, used_capacity or capacity)
if not repeated then
  put_out(mode, owner)
  if ends_at < ends_before then advance() end
end
return { 1, token, now }
