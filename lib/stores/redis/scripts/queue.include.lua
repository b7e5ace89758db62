-- What the queue's scripts share: a lock with holders that have a deadline each, a capacity, and waiters in the order
-- of their arrival. Expects KEYS, hash.include.lua, and in `member` the hold of the owner who asks, nil where none does.
-- Leaves the server's time in `now`, and the number of those whose hold is not over in `holders`. A hand-over is as long as
-- its script, so what is known already is not asked for again.
--
-- KEYS[1]  the lock: a sorted set of holders, "x<owner>" (exclusive) or "s<owner>" (shared), by deadline in ms
-- KEYS[2]  the queue: a sorted set of waiters, "<x or s> <owner> <lease in ms>", by arrival in microseconds
-- KEYS[3]  the fence: "<last token> <its owner> <kind> <capacity>"
-- ARGV[#ARGV]  'cluster' on a cluster, where the message goes to nodes that PUBLISH does not count

local in_cluster = ARGV[#ARGV] == 'cluster'
local CLAIM = 1000
local SPREAD = 10
local WIDEST = 250

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)

-- Whose hold ends first, when, and who else holds it: mostly nobody does.
local first_holders = redis.pcall('ZRANGE', KEYS[1], 0, 1, 'WITHSCORES')
local first, ends, second = unpack(first_holders)
-- What is refused is no answer: asked again, it ends the script, with the line at which that was.
if first_holders.err and not string.find(first_holders.err, 'WRONGTYPE', 1, true) then redis.call('ZRANGE', KEYS[1], 0, 1) end
-- An error where the key is somebody else's, which is left as it is; nil where it is a lock's.
local foreign
-- Asked for only where there is a holder; kept, so that it is not asked for again.
local fence
local function is_lock()
  -- Nobody else has written it.
  if first == member then return true end
  if may_be_holders(KEYS[1], first) then
    fence = redis.call('GET', KEYS[3])
    if names_kind(fence) then return true end
  end
  -- A fence may have been evicted. Who holds the lock gets it all the same, and writes it anew.
  return member and redis.call('ZSCORE', KEYS[1], member)
end
if first_holders.err or first and not is_lock() then
  foreign = no_lock()
elseif first and tonumber(ends) <= now then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  first, ends, second = unpack(redis.call('ZRANGE', KEYS[1], 0, 1, 'WITHSCORES'))
end
local holders = second and not foreign and redis.call('ZCARD', KEYS[1]) or first and 1 or 0

-- The last token and whose it is, and what the lock is in use as.
local last, last_owner, used, places
local function read_fence()
  local token, owner, kind, capacity = string.match(fence or redis.call('GET', KEYS[3]) or '', '^(%d+) ?(%S*) ?(%S*) ?(%d*)$')
  last, last_owner, used, places = tonumber(token or 0), owner, kind ~= '' and kind or nil, tonumber(capacity)
end

-- Somebody holds it, or waits for it.
local function in_use() return holders > 0 or redis.call('EXISTS', KEYS[2]) == 1 end

-- Of a plain lock a process may have given out the tokens after the last that is known: see STRIDE in plain.include.lua.
local function next_token() return micros > last and micros or last + (used and 1 or 1000) end

-- Digit by digit, where Lua would round.
local function digits(n) return string.format('%.0f', n) end

-- The lock's key lives as long as its last holder.
local latest_end
local function keep_until_last()
  latest_end = tonumber(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2])
  redis.call('PEXPIREAT', KEYS[1], latest_end)
end

local function hold(member, deadline)
  holders = holders + redis.call('ZADD', KEYS[1], deadline, member)
  if holders > 1 then return keep_until_last() end
  latest_end = deadline
  redis.call('PEXPIREAT', KEYS[1], deadline)
end

-- Keeps the last token, with the lock's kind, so that one name is never two kinds at once. Called after `hold`: it
-- outlives the last holder, who need not be the one that has just entered.
local function write_fence(token, owner, kind, capacity, stay)
  last, last_owner = token, owner
  local fence = digits(token) .. ' ' .. owner .. ' ' .. kind .. ' ' .. digits(capacity)
  redis.call('SET', KEYS[3], fence, 'PXAT', latest_end + stay)
end

local function keep_fence(stay) redis.call('PEXPIREAT', KEYS[3], latest_end + stay) end

-- Owner of the exclusive hold, '' without one. While a script runs, none comes to others, and none goes after this.
local exclusive
local function exclusive_owner()
  if exclusive then return exclusive end
  exclusive = ''
  for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if string.sub(member, 1, 1) == 'x' then exclusive = string.sub(member, 2) end
  end
  return exclusive
end

-- Shared holders enter together, an exclusive one alone. A writer may read beside its own write hold.
local function admits(mode, kind, capacity, beside)
  if holders == 0 then return true end
  if mode == 'x' or holders >= capacity then return false end
  return kind ~= 'read-write' or exclusive_owner() == '' or exclusive_owner() == beside
end

-- When the hold that is in the way of `mode` ends by itself, and whose it is.
local function in_the_way(mode)
  local at = mode == 'x' and -1 or 0
  local member, deadline = unpack(redis.call('ZRANGE', KEYS[1], at, at, 'WITHSCORES'))
  return tonumber(deadline or now), member and string.sub(member, 2)
end

-- Whose clock it is.
local function server() return in_cluster and redis.call('CLUSTER', 'MYID') or '' end

-- Sends a message, and says how many have heard it; false where the user may not send any, and so cannot tell the living
-- from the dead. The living look by themselves, and stand at their old place again.
local function publish(channel, message)
  local heard = redis.pcall('PUBLISH', channel, message)
  return type(heard) == 'number' and heard
end

-- Tells one waiter's process. False when it does not listen. PUBLISH also counts subscribers of patterns, such as a
-- monitoring tool, to which the dead would look alive; its count has to do where the user may not ask for another.
local function tell(owner, message, channel)
  channel = channel .. string.match(owner, '^(.*):')
  if in_cluster then return publish(channel, message) end
  if redis.pcall('PUBSUB', 'NUMSUB', channel)[2] == 0 then return false end
  return (publish(channel, message) or 0) > 0
end

-- What the store grants to a waiter by a message, ms: the whole lease where the waiter has arrived within CLAIM, else a
-- claim of CLAIM, which its process confirms before the caller's code runs. A process that stopped while it waited
-- therefore costs the others a claim, and one that stopped right after its arrival costs a lease, as a holder would. Most
-- hand-overs are quicker than CLAIM, and a confirmation is a command.
-- A message may be lost. The next in line notices the end of a claim, but of a whole lease only the waiter itself does
-- before it ends. So each waiter looks once when CLAIM since its arrival is over, and the lock is idle for CLAIM at most.
-- An arrival in the future tells nothing: the clock has been set back.
local function grant_of(arrival, lease)
  local age = micros - arrival
  return age >= 0 and age < CLAIM * 1000 and lease or math.min(lease, CLAIM)
end

-- How long a waiter sleeps before it looks by itself, ms, when the hold in its way ends in `left` and `rank` waiters are
-- ahead. After a lease the head looks first. All who are ahead may be dead, so the others look after another claim, and not
-- all at once. A claim is not followed by another wait: each dead waiter in a row would cost two claims instead of one.
local function look_after(left, rank)
  if rank == 0 then return left end
  if left <= CLAIM then return left + math.min(rank * SPREAD, WIDEST) end
  return left + CLAIM + rank * SPREAD
end

-- A claim is in the way, and its owner may be dead. The head behind it may be dead too, and nobody would look when the claim
-- is over. Places die with their process, which may have many. So of the processes behind the head's, in the order of their
-- first waiters, the 1st, 2nd, 4th, 8th, ... and the last are told when to look. Where the first living one is the p-th, and
-- those behind it live, one is told among the first 2p, or it is the last. A look grants the next claim and tells anew, so d
-- dead waiters in a row cost d claims.
local function tell_further(left, head, channel)
  local process = '^(.*):'
  local seen, first_waiters = { [string.match(head, process)] = true }, {}
  -- Those further back look by themselves.
  for rank, entry in ipairs(redis.call('ZRANGE', KEYS[2], 1, 256)) do
    local owner = string.match(entry, '^%S (%S+)')
    local whose = string.match(owner, process)
    if not seen[whose] then
      seen[whose] = true
      table.insert(first_waiters, { owner, rank })
    end
  end
  local at, last = 1, #first_waiters
  while at <= last do
    local owner, rank = unpack(first_waiters[at])
    tell(owner, 'next ' .. owner .. ' ' .. digits(look_after(left, rank)), channel)
    at = at == last and last + 1 or math.min(2 * at, last)
  end
end

-- Lets in those at the head of the queue who may enter now, and tells the new head until when to wait. Whose process
-- does not listen is gone, and does not hold up the others.
local function advance(kind, capacity, channel, stay)
  repeat
    local heads = redis.call('ZRANGE', KEYS[2], 0, 1, 'WITHSCORES')
    if heads[1] and not last then read_fence() end
    -- What it is in use as counts, not what the caller takes it for.
    kind, capacity = used or kind, places or capacity
    for i = 1, #heads, 2 do
      local entry = heads[i]
      local mode, owner, lease = string.match(entry, '^(%S) (%S+) ?(%d*)$')
      if admits(mode, kind, capacity) then
        redis.call('ZREM', KEYS[2], entry)
        local token, span = next_token(), grant_of(heads[i + 1], tonumber(lease) or CLAIM)
        local grant = { 'granted', owner, digits(token), digits(now), digits(span), server() }
        if tell(owner, table.concat(grant, ' '), channel) then
          hold(mode .. owner, now + span)
          write_fence(token, owner, kind, capacity, stay)
        end
      else
        local left = in_the_way(mode) - now
        if tell(owner, 'next ' .. owner .. ' ' .. digits(left), channel) then
          if left <= CLAIM then tell_further(left, owner, channel) end
          return
        end
        redis.call('ZREM', KEYS[2], entry)
      end
    end
  until #heads < 4
end
