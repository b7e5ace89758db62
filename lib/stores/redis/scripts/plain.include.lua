-- The shared part of the scripts that take plain locks.

-- In place of a PTTL: a kind with a queue holds the lock, or held it last and may still have waiters. See queue-acquire.lua.
local QUEUED = -3

-- Reads a fence: the last token, and whether a kind with a queue gave it out.
local function read_fence(fence)
  local token, kind = string.match(fence, '^(%d+) ?%S* ?(%S*)')
  return tonumber(token), kind ~= '' and kind ~= nil
end

-- The distance of a token from the last one if the clock is behind. A holder that has lost the lock and does not know it yet
-- gives out the tokens after its own, one with each hand-off inside its process. These are fewer than STRIDE.
local STRIDE = 1000

-- If the command for the end is refused, the hold is gone: without an end, the key would be no lock, and stay if this process
-- dies. A text costs a command less than a number, which has to be written out.
local function hold_for(lock, owner, span)
  redis.call('HSET', lock, owner, '1')
  if redis.pcall('PEXPIRE', lock, span) == 1 then return end
  redis.call('HDEL', lock, owner)
  redis.call('PEXPIRE', lock, span)
end

-- The time in microseconds, as digits. The scripts of a lane read it once for all of them.
local moment

-- The token that the clock gives, and its text. The server's microseconds grow even if the counter was lost.
local function clock_token(least_token)
  if not moment then
    local time = redis.call('TIME')
    moment = time[1] .. string.sub('00000' .. time[2], -6)
  end
  local token = tonumber(moment)
  if token < least_token then return least_token, string.format('%.0f', least_token) end
  return token, moment
end

-- Takes the lock in the layout of Redisson's RLock, a hash { owner = 1 } with a TTL, and returns its fencing token. Returns
-- nil if the fence names a kind with a queue, and then nothing has changed.
-- The counter grows even if the clock steps back. `life` is the lease, ms, and how long the fence outlives it.
local function enter(lock, fence, owner, lease, least_token, life)
  local token, text = clock_token(least_token)
  -- Written before the last token is known: that one is mostly less, and a separate read would cost one more call.
  local fenced = redis.call('SET', fence, text .. ' ' .. owner, 'PX', life, 'GET')
  if fenced then
    local last, queued = read_fence(fenced)
    if queued then
      -- The lock has no holder, so its fence had no longer to live than this.
      redis.call('SET', fence, fenced, 'PX', life)
      return nil
    end
    if last and last >= token then
      token = last + STRIDE
      redis.call('SET', fence, string.format('%.0f %s', token, owner), 'PX', life)
    end
  end
  hold_for(lock, owner, lease)
  return token
end
