-- The queue of a lock of any kind: waiters in the order of their arrival, who are let in and told so. Expects KEYS, and
-- from the script that includes it:
--   in_line(mode)       whether it is a mode of this kind: one name is one kind
--   admits(mode)        whether one who wants the lock in this mode may enter now
--   blocked_until(mode) when the hold that is in the way ends by itself, ms, and whose it is
--   next_token()        the token that the next holder gets
--   let_in(mode, owner, token, span)  makes it a holder for so many ms
--   put_out(mode, owner)  undoes that
-- the server's time in `micros` and, as ms, in `now`, in `asker` the owner whose answer is the script's own and no message
-- (nil for none), and in `outsiders` whether some wait who do not stand in the queue.
-- A hand-over is as long as its script, so what is known already is not asked for again.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence
-- KEYS[3]  the queue: a sorted set of waiters, "<mode> <owner> <lease in ms>", by arrival in microseconds
-- ARGV[#ARGV]  'cluster' on a cluster, where a message goes to nodes that PUBLISH does not count

local in_cluster = ARGV[#ARGV] == 'cluster'
local CLAIM = 1000
local SPREAD = 10
local WIDEST = 250
-- Followed by the client's id: each process hears of all its places and holds over one subscription.
local CHANNEL = 'lock_queue__channel:'
local PROCESS = '^(.*):'

-- Digit by digit, where Lua would round.
local function digits(n) return string.format('%.0f', n) end

-- Whose clock it is.
local function server() return in_cluster and redis.call('CLUSTER', 'MYID') or '' end

-- Sends a message, and says how many have heard it; false where the user may not send any, and so cannot tell the living
-- from the dead. The living look by themselves, and stand at their old place again.
local function publish(channel, message)
  local heard = redis.pcall('PUBLISH', channel, message)
  return type(heard) == 'number' and heard
end

-- Whether a waiter's process listens, as far as that is known. PUBLISH also counts subscribers of patterns, such as a
-- monitoring tool, to which the dead would look alive; its count has to do where the user may not ask for another.
local function hears(owner)
  return in_cluster or redis.pcall('PUBSUB', 'NUMSUB', CHANNEL .. string.match(owner, PROCESS))[2] ~= 0
end

-- False when nobody has heard it.
local function send(owner, ...)
  local heard = publish(CHANNEL .. string.match(owner, PROCESS), table.concat({ ... }, ' '))
  return heard and (in_cluster or heard > 0)
end

-- Tells one waiter's process. False when it does not listen.
local function tell(owner, ...) return hears(owner) and send(owner, ...) end

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
local function tell_further(left, head)
  local seen, first_waiters = { [string.match(head, PROCESS)] = true }, {}
  -- Those further back look by themselves.
  for rank, entry in ipairs(redis.call('ZRANGE', KEYS[3], 1, 256)) do
    local owner = string.match(entry, '^%S (%S+)')
    local whose = string.match(owner, PROCESS)
    if not seen[whose] then
      seen[whose] = true
      table.insert(first_waiters, { owner, rank })
    end
  end
  local at, last = 1, #first_waiters
  while at <= last do
    local owner, rank = unpack(first_waiters[at])
    tell(owner, 'next', owner, digits(look_after(left, rank)))
    at = at == last and last + 1 or math.min(2 * at, last)
  end
end

-- What `asker` has been granted, if its turn has come, and who else waits.
local asker_token, asker_rivals

-- Lets in those at the head of the queue who may enter now, and tells the new head until when to wait. Whose process
-- does not listen is gone, and does not hold up the others.
-- @param sparing  leaves the head untold where it looks by itself in time: it does so after its own lease at the latest
local function advance(sparing)
  repeat
    local heads = redis.call('ZRANGE', KEYS[3], 0, 1, 'WITHSCORES')
    for i = 1, #heads, 2 do
      local entry = heads[i]
      local mode, owner, lease = string.match(entry, '^(%S) (%S+) ?(%d*)$')
      if not in_line(mode) then
        -- It learns of the other kind when it asks.
        redis.call('ZREM', KEYS[3], entry)
        tell(owner, 'next', owner, 0)
      elseif admits(mode) then
        redis.call('ZREM', KEYS[3], entry)
        local token, span = next_token(), grant_of(tonumber(heads[i + 1]), tonumber(lease) or CLAIM)
        -- Who else waits: 2 also outside of the queue, 1 behind in it, 0 nobody.
        local rivals = outsiders and 2 or heads[i + 2] and 1 or 0
        if owner == asker then
          asker_token, asker_rivals = token, rivals
          let_in(mode, owner, token, span)
        elseif hears(owner) then
          -- Before it is told, which cannot be undone: a slot that is on the move takes no new key, and a user may lose rights.
          let_in(mode, owner, token, span)
          if not send(owner, 'granted', owner, digits(token), digits(now), digits(span), server(), rivals) then
            put_out(mode, owner)
          end
        end
      else
        local left = blocked_until(mode) - now
        if sparing and left >= tonumber(lease) then return end
        if tell(owner, 'next', owner, digits(left)) then
          if left <= CLAIM then tell_further(left, owner) end
          return
        end
        redis.call('ZREM', KEYS[3], entry)
      end
    end
  until #heads < 4
end

-- Stands in the queue: where it stands, at the arrival that it was told before, or (0) at the end. Returns the arrival.
-- The queue outlives whom it waits for.
local function stand(entry, arrival, life)
  local stands = redis.call('ZSCORE', KEYS[3], entry)
  arrival = tonumber(stands or arrival)
  if arrival == 0 then
    local latest = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
    arrival = math.max(micros, latest and latest + 1 or 0)
  end
  -- One that stands there needs no room, and is not refused for lack of it.
  if not stands then redis.call('ZADD', KEYS[3], digits(arrival), entry) end
  redis.call('PEXPIRE', KEYS[3], digits(life))
  return arrival
end

-- Leaves its place. Without the lease that it has asked for (0) the queue is searched.
local function leave_queue(mode, owner, lease)
  local place = mode .. ' ' .. owner .. ' '
  if lease ~= '0' then return redis.call('ZREM', KEYS[3], place .. lease) end
  for _, entry in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    if string.sub(entry, 1, #place) == place then redis.call('ZREM', KEYS[3], entry) end
  end
end
