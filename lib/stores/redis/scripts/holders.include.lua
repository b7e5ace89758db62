-- What the scripts of the kinds with holders share: a lock with holders that have a deadline each, and a capacity. Expects
-- hash.include.lua, and in `member` the hold of the owner who asks, nil where none does; in `kind`, `capacity` what it
-- takes the lock for, and in `stay` how long the fence outlives the last holder, ms.
-- Leaves the server's time in `now`, and the number of those whose hold is not over in `holders`.
--
-- KEYS[1]  the lock: a sorted set of holders, "x<owner>" (exclusive) or "s<owner>" (shared), by deadline in ms
-- KEYS[2]  the fence: "<last token> <its owner> <kind> <capacity>"
-- KEYS[3]  the queue, with the modes x and s

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)

-- Whose hold ends first, when, and who else holds it: mostly nobody does.
local first_holders = redis.pcall('ZRANGE', KEYS[1], 0, 1, 'WITHSCORES')
local first, ends, second = unpack(first_holders)
-- What is refused is no answer: asked again, it ends the script, with the line at which that was.
if first_holders.err and not string.find(first_holders.err, 'WRONGTYPE', 1, true) then redis.call('ZRANGE', KEYS[1], 0, 1) end
-- An error where the key is somebody else's, which is left as it is; nil where it is a lock's.
local foreign
-- Asked for only where there is a holder; kept, so that it is not asked for again.
local fence
local function is_lock()
  -- Nobody else has written it.
  if first == member then return true end
  if may_be_holders(KEYS[1], first) then
    fence = redis.call('GET', KEYS[2])
    if names_kind(fence) then return true end
  end
  -- A fence may have been evicted. Who holds the lock gets it all the same, and writes it anew.
  return member and redis.call('ZSCORE', KEYS[1], member)
end
if first_holders.err or first and not is_lock() then
  foreign = no_lock()
elseif first and tonumber(ends) <= now then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  first, ends, second = unpack(redis.call('ZRANGE', KEYS[1], 0, 1, 'WITHSCORES'))
end
local holders = second and not foreign and redis.call('ZCARD', KEYS[1]) or first and 1 or 0

-- The last token and whose it is, and what the lock is in use as. What it is in use as counts, not what the caller takes it
-- for.
local last, last_owner, used, places
local function read_fence()
  if last then return end
  local token, owner, used_kind, count = string.match(fence or redis.call('GET', KEYS[2]) or '', '^(%d+) ?(%S*) ?(%S*) ?(%d*)$')
  last, last_owner, used, places = tonumber(token or 0), owner, used_kind ~= '' and used_kind or nil, tonumber(count)
end

-- Somebody holds it, or waits for it.
local function in_use() return holders > 0 or redis.call('EXISTS', KEYS[3]) == 1 end

-- Of a plain lock a process may have given out the tokens after the last that is known: see STRIDE in plain.include.lua.
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

local function hold(holder, deadline)
  holders = holders + redis.call('ZADD', KEYS[1], deadline, holder)
  if holders > 1 then return keep_until_last() end
  latest_end = deadline
  redis.call('PEXPIREAT', KEYS[1], deadline)
end

-- Keeps the last token, with the lock's kind, so that one name is never two kinds at once. Called after `hold`: it
-- outlives the last holder, who need not be the one that has just entered.
local function write_fence(token, owner, as, many)
  last, last_owner = token, owner
  redis.call('SET', KEYS[2], string.format('%.0f %s %s %.0f', token, owner, as, many), 'PXAT', latest_end + stay)
end

local function keep_fence() redis.call('PEXPIREAT', KEYS[2], latest_end + stay) end

-- Owner of the exclusive hold, '' without one. While a script runs, none comes to others, and none goes after this.
local exclusive
local function exclusive_owner()
  if exclusive then return exclusive end
  exclusive = ''
  for _, holder in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if string.sub(holder, 1, 1) == 'x' then exclusive = string.sub(holder, 2) end
  end
  return exclusive
end

-- Shared holders enter together, an exclusive one alone. A writer may read beside its own write hold.
local function may_enter(mode, as, many, own_write_hold)
  if holders == 0 then return true end
  if mode == 'x' or holders >= many then return false end
  return as ~= 'read-write' or exclusive_owner() == '' or exclusive_owner() == own_write_hold
end

local function in_line(mode) return mode == 'x' or mode == 's' end

local function admits(mode)
  read_fence()
  return may_enter(mode, used or kind, places or capacity)
end

-- When the hold that is in the way of `mode` ends by itself, and whose it is.
local function blocked_until(mode)
  local at = mode == 'x' and -1 or 0
  local holder, deadline = unpack(redis.call('ZRANGE', KEYS[1], at, at, 'WITHSCORES'))
  return tonumber(deadline or now), holder and string.sub(holder, 2)
end

local function let_in(mode, owner, token, span)
  hold(mode .. owner, now + span)
  write_fence(token, owner, used or kind, places or capacity)
end

local function put_out(mode, owner)
  redis.call('ZREM', KEYS[1], mode .. owner)
  holders = holders - 1
  if holders > 0 then keep_until_last() end
end
