-- Passes the hold of a plain lock on from its owner to another one, under a new token. Waiters get a message only if the hold
-- now ends sooner than they have been told.
--
-- KEYS     as in acquire.lua
-- ARGV[1]  owner
-- ARGV[2]  the next owner
-- ARGV[3]  lease of the next owner, ms
-- ARGV[4]  the least token to give
-- ARGV[5]  how long the fence outlives the lease, ms
-- ARGV[6]  PUBLISH, or SPUBLISH
-- ARGV[7]  channel of the release
-- ARGV[8]  as in queue.include.lua
--
-- Returns { 1, token, server ms } if the next owner holds the lock now, also if it did before (a command sent twice). Returns
-- { 0, 0, server ms } if no owner holds the lock, and { -1, 0, server ms } if another owner holds it.
-- A key that is no lock is an error, and stays.

-- @include plain
-- @include in-the-way
-- @include master
-- @include rights

local owner, next_owner, least, stay = ARGV[1], ARGV[2], tonumber(ARGV[4]), ARGV[5]
local publishing, release_channel = ARGV[6], ARGV[7]
local asker, outsiders, last_token
-- The lock stays taken.
local kept = true

-- @include plain-queue
-- @include plain-hand-over

local repeated = redis.call('HEXISTS', KEYS[1], next_owner) == 1
if not repeated and redis.call('HEXISTS', KEYS[1], owner) == 0 then
  ensure_master('HDEL', KEYS[1], owner)
  local holder = holder_of(KEYS[1])
  if holder == false then return no_lock() end
  return { holder and -1 or 0, 0, now }
end
need('HDEL', KEYS[1])
local left, lease = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
-- The next owner may have renewed its hold since.
if repeated then lease = math.max(left, lease) end
-- This command needs no room, and lets the following writes pass if the memory is full.
redis.call('PEXPIRE', KEYS[1], digits(lease))
if repeated then
  local token, last_owner = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) (%S+)')
  if last_owner == next_owner and tonumber(token) >= least then
    redis.call('PEXPIRE', KEYS[2], digits(lease + stay))
    return { 1, tonumber(token), now }
  end
end
local token = enter(KEYS[1], KEYS[2], next_owner, digits(lease), least, digits(lease + stay))
if not token then return no_lock() end
-- Only now, so that the key stays: in a slot that is being moved, a key that is gone cannot be created again.
if not repeated then redis.call('HDEL', KEYS[1], owner) end
if left < 0 or lease < left then hand_over() end
return { 1, token, now }
