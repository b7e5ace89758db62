-- Tells the hash of a plain lock from one of the application's, which is neither read as a lock nor deleted.

-- Whose lock it is: nil where nobody holds it, false where it is no lock. A key that is no hash is an error here.
-- `fields` says how many it has, where that is known. A lock has one, its owner "<client>:<number>", and counts how often that one holds it; Redisson counts up.
local function holder_of(lock, fields)
  fields = fields or redis.call('HLEN', lock)
  if fields < 1 then return nil end
  -- Not looked into any further: the application's may have millions.
  if fields > 1 then return false end
  local owner, count = unpack(redis.call('HGETALL', lock))
  return string.find(owner, '^%S+:%d+$') and string.find(count, '^[1-9]%d*$') and owner or false
end

local function no_lock() return redis.error_reply('WRONGTYPE Operation against a key that holds no lock') end
