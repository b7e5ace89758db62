-- What the queue's scripts share: a lock with holders that have a deadline each, a capacity, and waiters in the order
-- of their arrival. Expects KEYS and the server's time in `now`.
--
-- KEYS[1]  the lock: a sorted set of holders, "x<owner>" (exclusive) or "s<owner>" (shared), by deadline in ms
-- KEYS[2]  the queue: a sorted set of waiters, "<x or s> <owner>", by arrival in microseconds
-- KEYS[3]  the fence: "<last token> <its owner> <kind> <capacity>"

local CLAIM = 1000
local SPREAD = 10

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)

-- A sorted set of somebody else's is left as it is.
local first = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if first and not string.find(first, '^[xs]%S+:%d+$') then
  return redis.error_reply('WRONGTYPE Operation against a key that holds no lock')
end

local function number(n) return string.format('%.0f', n) end

local function fence()
  local last, owner, kind, capacity = string.match(redis.call('GET', KEYS[3]) or '', '^(%d+) ?(%S*) ?(%S*) ?(%d*)$')
  return tonumber(last or 0), owner, kind, tonumber(capacity)
end

local function token_after(last) return math.max(last + 1, micros) end

-- Keeps the last token, with the lock's kind, so that one name is never two kinds at once.
local function write_fence(token, owner, kind, capacity, stay)
  redis.call('SET', KEYS[3], number(token) .. ' ' .. owner .. ' ' .. kind .. ' ' .. number(capacity), 'PX', stay)
end

-- The lock's key lives as long as its last holder.
local function keep_until_last()
  local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
  if last then redis.call('PEXPIREAT', KEYS[1], number(last)) end
end

local function hold(member, deadline)
  redis.call('ZADD', KEYS[1], number(deadline), member)
  keep_until_last()
end

-- Shared holders enter together, an exclusive one alone. A writer may read beside its own write hold.
local function admits(mode, kind, capacity, beside)
  local holders = redis.call('ZCARD', KEYS[1])
  if mode == 'x' then return holders == 0 end
  if holders >= capacity then return false end
  if kind ~= 'read-write' then return true end
  for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if string.sub(member, 1, 1) == 'x' and string.sub(member, 2) ~= beside then return false end
  end
  return true
end

-- When the hold that is in the way of `mode` ends by itself, and whose it is.
local function in_the_way(mode)
  local at = mode == 'x' and -1 or 0
  local member, deadline = unpack(redis.call('ZRANGE', KEYS[1], at, at, 'WITHSCORES'))
  return tonumber(deadline or now), member and string.sub(member, 2)
end

-- Tells one waiter's process; 0 when nobody listens there.
local function tell(owner, message, channel)
  return redis.call('PUBLISH', channel .. string.match(owner, '^(.*):'), message)
end

-- Lets in those at the head of the queue who may enter now, each on a short claim which its process has to confirm,
-- and tells the new head until when to wait. Whose process does not listen is gone, and does not hold up the others.
local function advance(kind, capacity, channel, stay)
  -- What it is in use as counts, not what the caller takes it for.
  local last, _, used, places = fence()
  if used and used ~= '' then kind, capacity = used, places end
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', number(now))
  while true do
    local entry = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    if not entry then return end
    local mode, owner = string.match(entry, '^(.) (.*)$')
    if admits(mode, kind, capacity) then
      redis.call('ZREM', KEYS[2], entry)
      local token = token_after(last)
      if tell(owner, 'granted ' .. owner .. ' ' .. number(token) .. ' ' .. number(now), channel) > 0 then
        last = token
        write_fence(token, owner, kind, capacity, stay)
        hold(mode .. owner, now + CLAIM)
      end
    else
      if tell(owner, 'next ' .. owner .. ' ' .. number(in_the_way(mode) - now), channel) > 0 then return end
      redis.call('ZREM', KEYS[2], entry)
    end
  end
end
