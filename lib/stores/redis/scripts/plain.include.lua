-- The shared part of the scripts that take plain locks.

-- @include hash

-- In place of a PTTL: a kind with a queue holds the lock, or held it last and may still have waiters. See retire.lua.
local QUEUED = -3
-- In place of a PTTL: the key is a hash that is no lock.
local FOREIGN = -4

-- Returns the PTTL and the owner of the hold that is in the way. Returns nil if `owner` may enter, and then whether it holds
-- the lock already.
local function in_the_way(lock, owner)
  -- Mostly the lock is free, so this command comes first.
  local fields = redis.pcall('HLEN', lock)
  if fields == 0 then return nil end
  if type(fields) == 'table' then
    if redis.call('TYPE', lock).ok == 'zset' then return QUEUED end
    -- The command is refused, which is no answer. The second call raises the error and ends the script.
    redis.call('HLEN', lock)
  end
  -- A key of any other type raises an error here.
  if redis.call('HEXISTS', lock, owner) == 1 then return nil, true end
  local holder, left = holder_of(lock, fields)
  if not holder then return FOREIGN end
  return left, holder
end

-- What a fence says: the last token, and whether a kind with a queue gave it out.
local function read_fence(fence)
  local token, kind = string.match(fence, '^(%d+) ?%S* ?(%S*)')
  return tonumber(token), kind ~= '' and kind ~= nil
end

-- The distance of a token from the last one if the clock is behind. A holder that has lost the lock and does not know it yet
-- gives out the tokens after its own, one with each hand-off inside its process. These are fewer than STRIDE.
local STRIDE = 1000

-- If the command for the end is refused, the hold is gone: without an end, the key would be no lock, and stay if this process
-- dies.
local function hold_for(lock, owner, span)
  redis.call('HSET', lock, owner, 1)
  if redis.pcall('PEXPIRE', lock, span) == 1 then return end
  redis.call('HDEL', lock, owner)
  redis.call('PEXPIRE', lock, span)
end

-- A token by the server's clock. The microseconds grow even if the last token was lost.
local function clock_token(least_token)
  local time = redis.call('TIME')
  return math.max(time[1] * 1000000 + time[2], least_token)
end

local function fence_text(token, owner) return string.format('%.0f %s', token, owner) end

-- Takes the lock in the layout of Redisson's RLock, a hash { owner = 1 } with a TTL, and returns its fencing token. Returns
-- nil if the fence names a kind with a queue, and then nothing has changed.
-- The token is greater than the last one even if the clock steps back.
local function enter(lock, fence, owner, lease, least_token, stay)
  local token = clock_token(least_token)
  local function write_fence(text, life) return redis.call('SET', fence, text, 'PX', life, 'GET') end
  local function take() return write_fence(fence_text(token, owner), lease + stay) end
  -- Written before the last token is known: that one is mostly less, and a separate read would cost one more call.
  local fenced = take()
  if fenced then
    local last, queued = read_fence(fenced)
    if queued then
      -- The lock has no holder, so its fence had no longer to live than this.
      write_fence(fenced, stay)
      return nil
    end
    if last and last >= token then
      token = last + STRIDE
      take()
    end
  end
  hold_for(lock, owner, lease)
  return token
end
