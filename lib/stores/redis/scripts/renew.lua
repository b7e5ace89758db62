-- Makes holds last longer, never shorter: a batch, in which each hold counts for itself. A lease of 0 only asks, and writes
-- nothing.
--
-- KEYS[2i-1]   the lock
-- KEYS[2i]     its fence, which outlives it
-- ARGV[1]      how long the fence outlives the lease, ms
-- ARGV[2i]     the lock's owner
-- ARGV[2i+1]   lease, ms
--
-- Returns per lock, in order: 1 held, 0 no owner holds it, -1 another owner holds it, -2 it is no lock.
-- The lock is Redisson's hash, or the sorted set of a kind with a queue. The script uses pcall, so that a key which has
-- become something else costs only its own hold.

-- @include hash

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- A hold of the kinds with a queue, which has a deadline of its own. A hold that is over stays over: another owner may have
-- entered.
local function renew_queued(key, owner, lease)
  for _, mode in ipairs({ 'x', 's' }) do
    local deadline = tonumber(redis.call('ZSCORE', key, mode .. owner) or 0)
    if deadline and deadline > now then
      if lease == 0 then return 1 end
      local longer = math.max(deadline, now + lease)
      -- As a number: the text of a score may have an exponent.
      local latest = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
      -- The expiry of the key comes first, which needs no room: after a first write, a server that is out of memory lets the
      -- write of the hold pass too.
      redis.call('PEXPIREAT', key, math.max(latest, longer))
      redis.call('ZADD', key, string.format('%.0f', longer), mode .. owner)
      return 1
    end
  end
  local first = redis.call('ZRANGE', key, 0, 0)[1]
  if first and not may_be_holders(key, first) then return -2 end
  -- An exclusive holder is certainly another owner. A shared holder may have been there before.
  for _, member in ipairs(redis.call('ZRANGE', key, now + 1, '+inf', 'BYSCORE')) do
    if string.sub(member, 1, 1) == 'x' then return -1 end
  end
  return 0
end

local held = {}
-- A renewal writes, and a replica refuses that. Without one, a write that changes nothing tells the same of all keys.
local written, unwritten = false, nil
for i = 1, #KEYS / 2 do
  local key, fence, owner, lease = KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i], tonumber(ARGV[2 * i + 1])
  local mine = redis.pcall('HEXISTS', key, owner)
  if mine == 1 then
    held[i] = 1
    -- Written even if nothing changes, so that a WAIT which follows has a write to wait for.
    local left = lease > 0 and redis.call('PTTL', key)
    if left then redis.call('PEXPIRE', key, string.format('%.0f', math.max(left, lease))) end
  elseif mine == 0 then
    local holder = holder_of(key)
    held[i] = holder and -1 or holder == false and -2 or 0
  else
    local kind = redis.call('TYPE', key).ok
    -- The command is refused, which is no answer. The second call raises the error and ends the script.
    if kind == 'hash' or kind == 'none' then redis.call('HEXISTS', key, owner) end
    held[i] = kind == 'zset' and renew_queued(key, owner, lease) or -2
  end
  if lease > 0 and held[i] == 1 then
    written = true
  elseif type(mine) == 'number' then
    unwritten = { 'HDEL', key, mine == 0 and owner or '' }
  elseif held[i] ~= -2 then
    unwritten = { 'ZREM', key, '' }
  end
  local stay = lease + ARGV[1]
  local stays = lease > 0 and held[i] == 1 and redis.call('PTTL', fence)
  if stays and stays < stay then redis.call('PEXPIRE', fence, stay) end
end
if unwritten and not written then
-- @include master
  ensure_master(unpack(unwritten))
end
return held
