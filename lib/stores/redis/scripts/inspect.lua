-- Reads the state of a lock of any kind.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence
-- KEYS[3]  the queue
-- ARGV[1]  NUMSUB, or SHARDNUMSUB
-- ARGV[2]  channel of the plain lock
-- ARGV[3]  'cluster' on a cluster, if this node does not know all subscribers
--
-- Returns false if the lock has no holder and no waiter in its queue, else
-- { fence or false, listeners, { owner, ms left, … }, { entry, arrival in microseconds, … }, 1 for a kind with holders,
-- { client, … } }.
-- With the kinds with holders, the mode stands before the owner: x or s. The clients have entries in the queue and no
-- subscription, so they are dead; on a cluster this script names none.

-- @include hash

local holders, with_holders = {}, 0
local queue = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'zset' or kind == 'none' and queue[1] and string.sub(queue[1], 1, 1) ~= 'p' then
  with_holders = 1
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local members = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
  if members[1] and not (may_be_holders(KEYS[1], members[1]) and names_kind(redis.call('GET', KEYS[2]))) then
    return no_lock()
  end
  for i = 1, #members, 2 do
    local left = members[i + 1] - now
    if left > 0 then
      holders[#holders + 1] = members[i]
      holders[#holders + 1] = left
    end
  end
else
  local owner, left = holder_of(KEYS[1])
  if owner == false then return no_lock() end
  if owner then holders = { owner, left } end
end
if #holders == 0 and #queue == 0 then return false end
local listeners = redis.call('PUBSUB', ARGV[1], ARGV[2])[2]
local seen, dead = {}, {}
for i = 1, ARGV[3] == 'cluster' and 0 or #queue, 2 do
  local client = string.match(queue[i], '^%S (%S*):')
  if client and not seen[client] then
    seen[client] = true
    if redis.call('PUBSUB', 'NUMSUB', 'lock_queue__channel:' .. client)[2] == 0 then dead[#dead + 1] = client end
  end
end
return { redis.call('GET', KEYS[2]), listeners, holders, queue, with_holders, dead }
