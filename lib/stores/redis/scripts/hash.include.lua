-- Tells the key of a lock from a key of the application. A key of the application is never read as a lock, changed or
-- deleted.

-- The key of a lock has an expiry, here and in Redisson. A key of the application mostly has none, even if it looks like a
-- lock.
local function ends_in(lock)
  local left = redis.call('PTTL', lock)
  return left >= 0 and left
end

-- Returns the owner of a plain lock and the time that is left of its hold, ms. Returns nil if the lock has no holder, and
-- false if the key is no lock. A key that is no hash raises an error here. `fields` is the number of its fields, if the
-- caller knows it. A lock has one field: its owner "<client>:<number>". The value counts how often the owner holds the lock;
-- Redisson counts up.
local function holder_of(lock, fields)
  fields = fields or redis.call('HLEN', lock)
  if fields < 1 then return nil end
  -- The script does not look further: a hash of the application may have millions of fields.
  if fields > 1 then return false end
  local owner, count = unpack(redis.call('HGETALL', lock))
  local left = string.find(owner, '^%S+:%d+$') and string.find(count, '^[1-9]%d*$') and ends_in(lock)
  if not left then return false end
  return owner, left
end

-- Whether a sorted set with this first member may be the holders of a lock. The fence of the lock decides the rest.
local function may_be_holders(lock, first) return string.find(first, '^[xs]%S+:%d+$') and ends_in(lock) end

-- Whether a fence names a kind with a queue. It also does so before there is a holder and after the last holder is gone.
local function names_kind(fence) return fence and string.find(fence, '^%d+ %S+ %S+ %d+$') end

local function no_lock() return redis.error_reply('WRONGTYPE Operation against a key that holds no lock') end
