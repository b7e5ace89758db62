-- Makes a name that was last used as a kind with holders free for the plain lock, unless it is in use as that kind still.
--
-- KEYS     as in holders.include.lua
-- ARGV[1]  how long the fence outlives the last holder, ms
-- ARGV[2]  as in queue.include.lua
--
-- Returns { 1 when it is in use, else 0, kind, capacity }.

-- @include hash

-- What it is in use as says its fence.
local stay, kind, capacity, member = ARGV[1], '', 1, nil

-- @include holders

local asker, outsiders

-- @include queue

if foreign then return foreign end
read_fence()
-- Perhaps by the dead only. Those who live get their turn.
if in_use() then advance() end
local busy = in_use()
-- From now on the fence names no kind, so that the plain lock has nothing to ask for.
if used and not busy then redis.call('SET', KEYS[2], digits(last) .. ' ' .. last_owner, 'KEEPTTL') end
-- Where the fence was lost, nothing tells which kind it is.
return { busy and 1 or 0, used or 'queued', places or 1 }
