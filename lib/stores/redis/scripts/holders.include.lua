-- The shared part of the scripts of the kinds with holders: a lock with holders that have one deadline each, and a capacity.
-- Expects hash.include.lua. Expects in `member` the hold of the owner that asks, nil if no owner asks; in `kind` and
-- `capacity` what that owner takes the lock for; in `stay` how long the fence outlives the last holder, ms.
-- Leaves the server's time in `now`, and in `holders` the number of holds that are not over.
--
-- KEYS[1]  the lock: a sorted set of holders, "x<owner>" (exclusive) or "s<owner>" (shared), by deadline in ms
-- KEYS[2]  the fence: "<last token> <its owner> <kind> <capacity>". If a read-write lock has several holders,
--          ";<writer>" follows the owner, and ";" if none of them writes. Version 0.1.0 takes that for part of the owner.
-- KEYS[3]  the queue, with the modes x and s

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)

-- The holder with the first end, that end, and another holder. Mostly there is no other holder.
local first_holders = redis.pcall('ZRANGE', KEYS[1], 0, 1, 'WITHSCORES')
local first, ends, second = unpack(first_holders)
-- A refused command is no answer. The second call raises the error and ends the script, and the error names this line.
if first_holders.err and not string.find(first_holders.err, 'WRONGTYPE', 1, true) then redis.call('ZRANGE', KEYS[1], 0, 1) end
-- An error if the key holds no lock; the key stays as it is. nil if the key holds a lock.
local foreign
-- Read only if there is a holder. Kept, so that it is not read again.
local fence
local function is_lock()
  -- Only the scripts of this library write the member of this owner.
  if first == member then return true end
  if may_be_holders(KEYS[1], first) then
    fence = redis.call('GET', KEYS[2])
    if names_kind(fence) then return true end
  end
  -- The fence may have been evicted. An owner that holds the lock still gets it, and writes the fence again.
  return member and redis.call('ZSCORE', KEYS[1], member)
end
if first_holders.err or first and not is_lock() then
  foreign = no_lock()
elseif first and tonumber(ends) <= now then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  first, ends, second = unpack(redis.call('ZRANGE', KEYS[1], 0, 1, 'WITHSCORES'))
end
local holders = second and not foreign and redis.call('ZCARD', KEYS[1]) or first and 1 or 0

-- The last token and its owner, and the kind and capacity that the lock is in use as. These count, not the kind and capacity
-- that the caller takes the lock for. And the writer beside whose hold its own scope has begun to read, '' if there is none,
-- and nil if the fence does not say.
local last, last_owner, used, used_capacity, writer
local function read_fence()
  if last then return end
  local token, owner, mark, beside, used_kind, count =
    string.match(fence or redis.call('GET', KEYS[2]) or '', '^(%d+) ?([^ ;]*)(;?)(%S*) ?(%S*) ?(%d*)$')
  last, last_owner, used, used_capacity = tonumber(token or 0), owner, used_kind ~= '' and used_kind or nil, tonumber(count)
  writer = mark == ';' and beside or nil
end

-- The lock has a holder or a waiter.
local function in_use() return holders > 0 or redis.call('EXISTS', KEYS[3]) == 1 end

-- A process may have given out tokens of a plain lock after the last known one: see STRIDE in plain.include.lua.
local function next_token()
  read_fence()
  return micros > last and micros or last + (used and 1 or 1000)
end

-- The lock's key lives as long as its last holder.
local latest_end
local function keep_until_last()
  latest_end = tonumber(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2])
  redis.call('PEXPIREAT', KEYS[1], latest_end)
end

-- A holder that a new one takes the place of.
local leaving

-- If the command for the end is refused, the hold is gone: a key without an end would stay if this process dies.
local function hold(holder, deadline)
  local added = redis.call('ZADD', KEYS[1], deadline, holder)
  if leaving then redis.call('ZREM', KEYS[1], leaving) end
  leaving = nil
  holders = holders + added
  if holders > 1 then return keep_until_last() end
  latest_end = deadline
  if redis.pcall('PEXPIREAT', KEYS[1], deadline) == 1 then return end
  if added == 1 then redis.call('ZREM', KEYS[1], holder) end
  redis.call('PEXPIREAT', KEYS[1], deadline)
end

-- The owner of the exclusive hold, '' without one. It is read once: while a script runs, no exclusive hold comes to other
-- holders, and none goes after this. Thousands of readers may hold the lock, so they are not searched: an exclusive holder is
-- alone, or the fence names it as the writer. Its hold may be kept after its release. If the fence does not say, because it
-- was lost, as by eviction, or written by version 0.1.0, the holders are searched.
local exclusive
local function exclusive_owner()
  if exclusive then return exclusive end
  exclusive = ''
  read_fence()
  if holders > 1 and writer then
    for _, owner in ipairs(writer ~= '' and { writer, 'kept:' .. writer } or {}) do
      if redis.call('ZSCORE', KEYS[1], 'x' .. owner) then exclusive = owner end
    end
    return exclusive
  end
  for _, holder in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if string.sub(holder, 1, 1) == 'x' then exclusive = string.sub(holder, 2) end
  end
  return exclusive
end

-- Keeps the last token together with the lock's kind, so that one name is never two kinds at once. Called after `hold`: the
-- fence outlives the last holder, which is not always the holder that has just entered. If the command is refused, the holder
-- is gone: a holder without a fence would be read as no lock.
local function write_fence(token, holder, as, many)
  local owner = string.sub(holder, 2)
  local named, ends_at = owner, latest_end + stay
  -- Asked only beside other holders, which stay while the script runs: a holder that is alone may be put out again.
  if as == 'read-write' and holders > 1 then
    local beside = string.sub(holder, 1, 1) == 'x' and owner or exclusive_owner()
    named = owner .. ';' .. string.gsub(beside, '^kept:', '')
  end
  local text = string.format('%.0f %s %s %.0f', token, named, as, many)
  last, last_owner = token, owner
  if not redis.pcall('SET', KEYS[2], text, 'PXAT', ends_at).err then return end
  redis.call('ZREM', KEYS[1], holder)
  redis.call('SET', KEYS[2], text, 'PXAT', ends_at)
end

local function keep_fence() redis.call('PEXPIREAT', KEYS[2], latest_end + stay) end

-- Shared holders enter together. An exclusive holder enters alone. A writer may read beside its own write hold.
local function may_enter(mode, as, many, own_write_hold)
  if holders == 0 then return true end
  if mode == 'x' or holders >= many then return false end
  return as ~= 'read-write' or exclusive_owner() == '' or exclusive_owner() == own_write_hold
end

local function is_of_kind(mode) return mode == 'x' or mode == 's' end

local function admits(mode)
  read_fence()
  return may_enter(mode, used or kind, used_capacity or capacity)
end

-- When the hold that is in the way of `mode` ends by itself, and its owner.
local function blocked_until(mode)
  local at = mode == 'x' and -1 or 0
  local holder, deadline = unpack(redis.call('ZRANGE', KEYS[1], at, at, 'WITHSCORES'))
  return tonumber(deadline or now), holder and string.sub(holder, 2)
end

local function hands_over() return true end

local function let_in(mode, owner, token, span)
  hold(mode .. owner, now + span)
  write_fence(token, mode .. owner, used or kind, used_capacity or capacity)
end

local function put_out(mode, owner)
  redis.call('ZREM', KEYS[1], mode .. owner)
  holders = holders - 1
  if holders > 0 then keep_until_last() end
end
