-- Tells the key of a lock from one of the application's, which is neither read as a lock nor changed or deleted.

-- A lock's key has an end, ours and Redisson's. What an application keeps mostly has none, whatever it looks like.
local function ends_in(lock)
  local left = redis.call('PTTL', lock)
  return left >= 0 and left
end

-- Whose plain lock it is, and for how long, ms: nil where nobody holds it, false where it is no lock. A key that is no hash is
-- an error here. `fields` says how many it has, where that is known. A lock has one, its owner "<client>:<number>", and
-- counts how often that one holds it; Redisson counts up.
local function holder_of(lock, fields)
  fields = fields or redis.call('HLEN', lock)
  if fields < 1 then return nil end
  -- Not looked into any further: the application's may have millions.
  if fields > 1 then return false end
  local owner, count = unpack(redis.call('HGETALL', lock))
  local left = string.find(owner, '^%S+:%d+$') and string.find(count, '^[1-9]%d*$') and ends_in(lock)
  if not left then return false end
  return owner, left
end

-- Whether a sorted set with this first member may be that of a lock's holders. Its fence tells the rest.
local function may_be_holders(lock, first) return string.find(first, '^[xs]%S+:%d+$') and ends_in(lock) end

-- Whether a fence names a kind with a queue, as it does before there is a holder and after the last one is gone.
local function names_kind(fence) return fence and string.find(fence, '^%d+ %S+ %S+ %d+$') end

local function no_lock() return redis.error_reply('WRONGTYPE Operation against a key that holds no lock') end
