-- Takes several plain locks for one owner: all, or none. Whoever has been refused often reserves its turn: others who want
-- several locks at once then leave these alone for a moment. A reservation holds nothing against who wants a single one.
--
-- KEYS[3i-2]  the i-th lock
-- KEYS[3i-1]  its fence
-- KEYS[3i]    its turn: who has reserved it
-- ARGV[1..4]  as in acquire.lua
-- ARGV[5]     who asks, the same at every attempt
-- ARGV[6]     how long to reserve the turn when it is refused, ms; 0 not to
--
-- Returns the fencing tokens in the order of the locks when the owner holds all of them now, { -i, ms, holder } when
-- another has the i-th or its turn, or { -i } when that is no plain lock.

-- @include plain

local locks = #KEYS / 3
local turns = {}
for i = 1, locks do turns[i] = KEYS[3 * i] end

local refusal
local others, mine = false, false
-- In pieces: Lua passes no more than 8,000 values to a call.
for from = 1, locks, 1000 do
  for i, asker in ipairs(redis.call('MGET', unpack(turns, from, math.min(from + 999, locks)))) do
    if asker == ARGV[5] then
      mine = true
    elseif asker then
      others = true
      local turn = from + i - 1
      refusal = refusal or { -turn, redis.call('PTTL', turns[turn]), asker }
    end
  end
end
for i = 1, locks do
  local kind = redis.call('TYPE', KEYS[3 * i - 2]).ok
  if kind ~= 'hash' and kind ~= 'none' then return { -i } end
  local left, holder = in_the_way(KEYS[3 * i - 2], ARGV[1])
  if left then
    refusal = { -i, left, holder }
    break
  end
end

if refusal then
  -- All or none, too: two that had half of each other's turns would both wait.
  if not others and ARGV[6] ~= '0' then
    for i = 1, locks do redis.call('SET', turns[i], ARGV[5], 'PX', ARGV[6]) end
  end
  return refusal
end

if mine then
  for i = 1, locks do redis.call('DEL', turns[i]) end
end
local tokens = {}
for i = 1, locks do
  tokens[i] = enter(KEYS[3 * i - 2], KEYS[3 * i - 1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4])
end
return tokens
