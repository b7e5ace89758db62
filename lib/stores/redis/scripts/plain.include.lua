-- What the scripts that take plain locks share.

-- Whose hold is in the way: its PTTL and its owner; nil where `owner` may enter.
local function in_the_way(lock, owner)
  -- Mostly it is free: that is the first question.
  if redis.call('HLEN', lock) == 0 or redis.call('HEXISTS', lock, owner) == 1 then return nil end
  return redis.call('PTTL', lock), redis.call('HKEYS', lock)[1]
end

-- How far a token lies from the last where the clock is behind: a holder that has lost the lock without knowing yet
-- gives out the tokens after its own, one with each hand-off inside its process, and there are fewer of them.
local STRIDE = 1000

-- Takes the lock in the layout of Redisson's RLock, a hash { owner = 1 } with a TTL, and returns its fencing token.
-- The server's microseconds grow even where the counter was lost; the counter grows even where the clock steps back.
local function enter(lock, fence, owner, lease, least_token, stay)
  redis.call('HSET', lock, owner, 1)
  redis.call('PEXPIRE', lock, lease)
  local time = redis.call('TIME')
  local token = math.max(time[1] * 1000000 + time[2], least_token)
  local function write_fence()
    return redis.call('SET', fence, string.format('%.0f %s', token, owner), 'PX', lease + stay, 'GET')
  end
  -- Written before the last one is known, which is mostly less: what is asked for apart costs a call more.
  local fenced = write_fence()
  local last = fenced and tonumber(string.match(fenced, '^%d+'))
  if last and last >= token then
    token = last + STRIDE
    write_fence()
  end
  return token
end
