-- What the scripts that take plain locks share.

-- @include hash

-- In place of a PTTL: a kind with a queue holds the lock, or did so last and may have waiters still. See retire.lua.
local QUEUED = -3
-- The same: there is a hash that is no lock.
local FOREIGN = -4

-- Whose hold is in the way: its PTTL and its owner; nil where `owner` may enter, and whether it is in already.
local function in_the_way(lock, owner)
  -- Mostly it is free: that is the first question.
  local fields = redis.pcall('HLEN', lock)
  if fields == 0 then return nil end
  if type(fields) == 'table' then
    if redis.call('TYPE', lock).ok == 'zset' then return QUEUED end
    -- Refused, and no answer: asked again, it ends the script.
    redis.call('HLEN', lock)
  end
  -- A key of any other type is an error here.
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

-- How far a token lies from the last where the clock is behind: a holder that has lost the lock without knowing yet
-- gives out the tokens after its own, one with each hand-off inside its process, and there are fewer of them.
local STRIDE = 1000

-- Takes the lock in the layout of Redisson's RLock, a hash { owner = 1 } with a TTL, and returns its fencing token; nil
-- where the fence names a kind with a queue, and then nothing has changed.
-- The server's microseconds grow even where the counter was lost; the counter grows even where the clock steps back.
local function enter(lock, fence, owner, lease, least_token, stay)
  local time = redis.call('TIME')
  local token = math.max(time[1] * 1000000 + time[2], least_token)
  local function write_fence(text, life) return redis.call('SET', fence, text, 'PX', life, 'GET') end
  local function take() return write_fence(string.format('%.0f %s', token, owner), lease + stay) end
  -- Written before the last one is known, which is mostly less: what is asked for apart costs a call more.
  local fenced = take()
  if fenced then
    local last, queued = read_fence(fenced)
    if queued then
      -- Nobody holds the lock, so it had no longer to live than this.
      write_fence(fenced, stay)
      return nil
    end
    if last and last >= token then
      token = last + STRIDE
      take()
    end
  end
  redis.call('HSET', lock, owner, 1)
  redis.call('PEXPIRE', lock, lease)
  return token
end
