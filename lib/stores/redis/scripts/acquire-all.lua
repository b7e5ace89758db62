-- Takes several plain locks for one owner: all, or none.
--
-- KEYS[i]     the i-th of n locks
-- KEYS[n+i]   its fence
-- ARGV[1..4]  as in acquire.lua
--
-- Returns the fencing tokens in the order of the locks if the owner holds all of them now, or the token alone if all have the
-- same, as mostly. Returns { -i, ms, holder } if another owner has the i-th, which is the first that is busy, { -i, -3 } if
-- the i-th was last used as a kind with a queue, which queue-acquire.lua has to look at first, or { -i } if the i-th is no lock.

-- @include plain
-- @include in-the-way
-- @include master
-- @include rights
-- @include pieces

local owner, lease, life = ARGV[1], ARGV[2], ARGV[4]
local stay = life - lease
local locks = #KEYS / 2

-- Mostly all locks are free, so one command asks for all of them.
-- How long the locks that the owner holds already last, ms, by their positions: no sooner than before, as in acquire.lua.
local held = {}
if exist(1, locks) then
  for i = 1, locks do
    local lock = KEYS[i]
    local kind = redis.call('TYPE', lock).ok
    if kind ~= 'hash' and kind ~= 'none' and kind ~= 'zset' then return { -i } end
    local left, holder = in_the_way(lock, owner)
    if left == QUEUED then return { -i, QUEUED } end
    if left then ensure_master('HDEL', lock, owner) end
    if left == FOREIGN then return { -i } end
    if left then return { -i, left, holder } end
    if holder then held[i] = math.max(redis.call('PTTL', lock), tonumber(lease)) end
  end
end

-- This comes before any write, which could not be undone.
local last_tokens = {}
-- Locks that have been taken together have the same fence.
local known_fence, its_token, its_kind
for from, to in pieces(locks + 1, 2 * locks) do
  for i, fence in ipairs(redis.call('MGET', unpack(KEYS, from, to))) do
    if fence then
      local position = from + i - 1 - locks
      if fence ~= known_fence then
        known_fence = fence
        its_token, its_kind = read_fence(fence)
        if its_kind then return { -position, QUEUED } end
      end
      last_tokens[position] = its_token
    end
  end
end

need('HDEL', KEYS[1])
-- As in acquire.lua.
local entered, span = next(held)
if entered then redis.call('PEXPIRE', KEYS[entered], span) end
local least, digits_of_least = clock_token(tonumber(ARGV[3]))
local least_fence = digits_of_least .. ' ' .. owner
local tokens, are_same = {}, true
for i = 1, locks do
  local token, text = least, least_fence
  local last = last_tokens[i]
  if last and last >= least then
    token, are_same = last + STRIDE, false
    text = string.format('%.0f %s', token, owner)
  end
  redis.call('SET', KEYS[locks + i], text, 'PX', held[i] and held[i] + stay or life)
  hold_for(KEYS[i], owner, held[i] or lease)
  tokens[i] = token
end
return are_same and least or tokens
