-- Takes several plain locks for one owner: all, or none. An asker that has been refused often reserves the locks that are
-- in its way: others that want several locks at once then leave these alone, unless they have been refused for longer. A
-- reservation holds nothing against a request for a single lock. A lock that is free is never reserved anew, so an asker
-- that does not get through keeps it from others for GRACE at a time.
--
-- KEYS[3i-2]  the i-th lock
-- KEYS[3i-1]  its fence
-- KEYS[3i]    its turn: "<ms since when it is refused> <asker>" of the asker that has reserved it
-- ARGV[1..4]  as in acquire.lua
-- ARGV[5]     who asks, the same at every attempt
-- ARGV[6]     for how long it has been refused, ms; '' to reserve nothing
--
-- Returns the fencing tokens in the order of the locks when the owner holds all of them now, { -i, ms, holder } when
-- another has the i-th, { -i, ms, false } when another has reserved it, { -i, -3 } when the i-th was last used as a kind with a
-- queue, which retire.lua has to look at first, or { -i } when that is no lock.

-- @include plain

-- How long a lock stays reserved after it has been found free, ms.
local GRACE = 250

local locks = #KEYS / 3
local fences, turns = {}, {}
for i = 1, locks do fences[i], turns[i] = KEYS[3 * i - 1], KEYS[3 * i] end

-- Calls back with each value that there is and the number of its lock.
local function each_value(keys, callback)
  -- In pieces: Lua passes no more than 8,000 values to a call.
  for from = 1, locks, 1000 do
    for i, value in ipairs(redis.call('MGET', unpack(keys, from, math.min(from + 999, locks)))) do
      if value then callback(from + i - 1, value) end
    end
  end
end

local asker, reserves, since = ARGV[5], ARGV[6] ~= '', 0
if reserves then
  local time = redis.call('TIME')
  since = time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[6]
end

local mine, reserved_by = {}, {}
each_value(turns, function(i, turn)
  local refused_since, whose = string.match(turn, '^(%d+) (.*)$')
  reserved_by[i] = { since = tonumber(refused_since), asker = whose }
  if whose == asker then
    mine[#mine + 1] = turns[i]
    -- Told by the first request that reserved something. Counted anew, two of one age could each be the elder in turn.
    since = tonumber(refused_since)
  end
end)
-- A strict order: of two, one is the elder for both.
local function of_elder(i)
  local by = reserved_by[i]
  if not by or by.asker == asker then return false end
  return not reserves or by.since < since or by.since == since and by.asker < asker
end

local held, reserved, entered
for i = 1, locks do
  local kind = redis.call('TYPE', KEYS[3 * i - 2]).ok
  if kind ~= 'hash' and kind ~= 'none' and kind ~= 'zset' then return { -i } end
  local left, holder = in_the_way(KEYS[3 * i - 2], ARGV[1])
  if left == QUEUED then return { -i, QUEUED } end
  if left == FOREIGN then return { -i } end
  if left then
    held = held or { -i, left, holder }
    if not reserves then break end
    -- As long as it is held, that keeps it from nobody.
    if not of_elder(i) then
      redis.call('SET', turns[i], string.format('%.0f %s', since, asker), 'PX', math.max(left, 0) + GRACE)
    end
  elseif holder then
    entered = KEYS[3 * i - 2]
  elseif of_elder(i) then
    local left = redis.call('PTTL', turns[i])
    if left > GRACE then redis.call('PEXPIRE', turns[i], GRACE) end
    reserved = reserved or { -i, math.min(left, GRACE), false }
  end
end
if held or reserved then return held or reserved end

local queued
each_value(fences, function(i, fence)
  local _, kind = read_fence(fence)
  if kind then queued = i end
end)
if queued then return { -queued, QUEUED } end

-- As in acquire.lua.
if entered then redis.call('PEXPIRE', entered, ARGV[2]) end
local tokens = {}
for i = 1, locks do
  tokens[i] = enter(KEYS[3 * i - 2], KEYS[3 * i - 1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4])
end
-- Only now: after a write that needs no room, what needs some would be granted where memory is full.
for _, turn in ipairs(mine) do redis.call('DEL', turn) end
return tokens
