-- Takes several plain locks for one owner: all, or none.
--
-- KEYS[2i-1]  the i-th lock
-- KEYS[2i]    its fence
-- ARGV[1..4]  as in acquire.lua
--
-- Returns the fencing tokens in the order of the locks if the owner holds all of them now, { -i, ms, holder } if another
-- owner has the i-th, which is the first that is busy, { -i, -3 } if the i-th was last used as a kind with a queue, which
-- retire.lua has to look at first, or { -i } if the i-th is no lock.

-- @include plain
-- @include in-the-way
-- @include rights

local locks = #KEYS / 2
local fences = {}
for i = 1, locks do fences[i] = KEYS[2 * i] end

local entered
for i = 1, locks do
  local lock = KEYS[2 * i - 1]
  local kind = redis.call('TYPE', lock).ok
  if kind ~= 'hash' and kind ~= 'none' and kind ~= 'zset' then return { -i } end
  local left, holder = in_the_way(lock, ARGV[1])
  if left == QUEUED then return { -i, QUEUED } end
  if left == FOREIGN then return { -i } end
  if left then return { -i, left, holder } end
  if holder then entered = lock end
end

-- This comes before any write, which could not be undone. It reads in pieces: Lua passes no more than 8,000 values to a
-- call.
for from = 1, locks, 1000 do
  for i, fence in ipairs(redis.call('MGET', unpack(fences, from, math.min(from + 999, locks)))) do
    local _, kind = read_fence(fence or '')
    if kind then return { -(from + i - 1), QUEUED } end
  end
end

if lacks('HDEL', KEYS[1]) then redis.call('HDEL', KEYS[1], '') end
-- As in acquire.lua.
if entered then redis.call('PEXPIRE', entered, ARGV[2]) end
local tokens = {}
for i = 1, locks do
  tokens[i] = enter(KEYS[2 * i - 1], KEYS[2 * i], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4])
end
return tokens
