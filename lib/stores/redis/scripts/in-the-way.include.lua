-- Finds the hold that is in the way of an owner of a plain lock. Expects plain.include.lua.

-- @include hash

-- In place of a PTTL: the key is a hash that is no lock.
local FOREIGN = -4

-- Returns the PTTL and the owner of the hold that is in the way. Returns nil if `owner` may enter, and then whether it holds
-- the lock already. `fields` is the answer to HLEN, if the caller has it.
local function in_the_way(lock, owner, fields)
  -- Mostly the lock is free, so this command comes first.
  fields = fields or redis.pcall('HLEN', lock)
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
