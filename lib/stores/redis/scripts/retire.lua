-- Makes a name that was last used as a kind with holders free for the plain lock, unless it is still in use as that kind.
--
-- KEYS     as in holders.include.lua
-- ARGV[1]  how long the fence outlives the last holder, ms
-- ARGV[2]  as in queue.include.lua
--
-- Returns { 1 if the name is in use, else 0, kind, capacity }.

-- @include hash
-- @include master

-- The fence names the kind that the lock is in use as.
local stay, kind, capacity, member = ARGV[1], '', 1, nil

-- @include holders

local asker, outsiders

-- @include queue

if foreign then return foreign end
read_fence()
-- Perhaps only dead processes use the lock. The living waiters get their turn.
if in_use() then advance() end
local busy = in_use()
-- From now on the fence names no kind, so that the plain lock has nothing to ask for.
if used and not busy then redis.call('SET', KEYS[2], digits(last) .. ' ' .. last_owner, 'KEEPTTL') end
if busy then ensure_master('ZREM', KEYS[1], '') end
-- If the fence was lost, nothing tells which kind it is.
return { busy and 1 or 0, used or 'queued', used_capacity or 1 }
