-- How the queue goes on if the lock is plain. An entry belongs to a process, which keeps its callers in a local queue.
-- Expects plain.include.lua, hash.include.lua, in `stay` how long the fence outlives the lock, ms, and in `last_token` a token
-- that has been given out, if the script knows more than the fence tells.
--
-- KEYS     as in queue.include.lua, with the mode p

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)

local function is_of_kind(mode) return mode == 'p' end

local free
local function admits()
  if free == nil then free = redis.call('EXISTS', KEYS[1]) == 0 end
  return free
end

local function blocked_until() return now + math.max(redis.call('PTTL', KEYS[1]), 0) end

-- A hold that the fence does not know, and that is not kept after a release, belongs to Redisson. The release by Redisson
-- hands nothing over, and sends a message.
local function is_known(holder)
  if string.sub(holder or '', 1, 5) == 'kept:' then return true end
  return string.match(redis.call('GET', KEYS[2]) or '', '^%d+ (%S+)') == holder
end

-- The script has let an owner in.
local granted = false
local function hands_over() return granted or is_known(holder_of(KEYS[1])) end

local function next_token()
  local last = math.max(last_token or 0, read_fence(redis.call('GET', KEYS[2]) or '') or 0)
  return micros > last and micros or last + STRIDE
end

local function let_in(_, owner, token, span)
  free, granted = false, true
  last_token = token
  hold_for(KEYS[1], owner, span)
  redis.call('SET', KEYS[2], string.format('%.0f %s', token, owner), 'PX', span + stay)
end

local function put_out(_, owner)
  free = true
  redis.call('HDEL', KEYS[1], owner)
end

-- @include queue

-- The answer to an owner that stands in the queue behind a hold that ends in `left` ms.
-- If the hold belongs to Redisson, the head subscribes to releases. The other waiters poll now and then, because the head may
-- be dead.
local function busy_reply(entry, arrival, left, holder)
  local rank = redis.call('ZRANK', KEYS[3], entry)
  local known = is_known(holder)
  local listens = not known and rank == 0
  local look = look_after((known or listens) and left or math.min(left, CLAIM), rank)
  return { look, holder or false, digits(arrival), now, server(), listens and 1 or 0 }
end
