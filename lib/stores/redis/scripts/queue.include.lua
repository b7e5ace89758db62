-- The queue of a lock of any kind: waiters in the order of their arrival. The script lets a waiter in and tells its process
-- so. Expects KEYS, and from the script that includes it:
--   is_of_kind(mode)    whether it is a mode of this kind: one name is one kind
--   admits(mode)        whether a waiter for the lock in this mode may enter now
--   blocked_until(mode) when the hold that is in the way ends by itself, ms, and its owner
--   hands_over()        whether the release of the hold that is in the way hands the lock over
--   next_token()        the token that the next holder gets
--   let_in(mode, owner, token, span)  makes the owner a holder for so many ms
--   put_out(mode, owner)  undoes that
-- Expects the server's time in `micros` and, as ms, in `now`, in `asker` the owner that gets the answer of the script itself
-- and no message (nil for none), and in `outsiders` whether there are waiters outside of the queue.
-- A hand-over takes as long as its script, so the script asks for nothing twice.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence
-- KEYS[3]  the queue: a sorted set of waiters, "<mode> <owner> <lease in ms>", by arrival in microseconds
-- ARGV[#ARGV]  'cluster' on a cluster: a message also goes to nodes that PUBLISH does not count

local in_cluster = ARGV[#ARGV] == 'cluster'
local CLAIM = 1000
local SPREAD = 10
local WIDEST = 250
-- How many waiters are read at once, and at most: most queues have a living waiter soon, and a read of 256 takes 180 µs more.
local PIECE_OF_QUEUE = 16
local FURTHEST = 256
-- Followed by the client's id: each process gets the messages for all its entries and holds over one subscription.
local CHANNEL = 'lock_queue__channel:'
local PROCESS = '^(.*):'

-- Writes all digits of a number that Lua would round.
local function digits(n) return string.format('%.0f', n) end

-- The server that the clock belongs to.
local function server() return in_cluster and redis.call('CLUSTER', 'MYID') or '' end

-- Sends a message, and returns how many subscribers have received it. Returns false if the user may not send any: then the
-- script cannot tell the living waiters from the dead ones. A living waiter polls, and takes its old position in the queue
-- again.
local function publish(channel, message)
  local receivers = redis.pcall('PUBLISH', channel, message)
  return type(receivers) == 'number' and receivers
end

-- Whether a waiter's process is subscribed, as far as that is known, and whether it is known. PUBLISH also counts subscribers
-- of patterns, such as a monitoring tool, and with these a dead process would look alive. The count of PUBLISH must be enough
-- if the user may not send PUBSUB.
local function is_subscribed(owner)
  if in_cluster then return true, true end
  local count = redis.pcall('PUBSUB', 'NUMSUB', CHANNEL .. string.match(owner, PROCESS))[2]
  return count ~= 0, count ~= nil
end

-- Returns false if no process has received the message.
local function send(owner, ...)
  local receivers = publish(CHANNEL .. string.match(owner, PROCESS), table.concat({ ... }, ' '))
  return receivers and (in_cluster or receivers > 0)
end

-- Sends a message to the process of one waiter. Returns false if that process is not subscribed.
local function tell(owner, ...) return is_subscribed(owner) and send(owner, ...) end

-- The time that the store grants to a waiter by a message, ms. It is the whole lease if the waiter has arrived within CLAIM.
-- Else it is a claim of CLAIM, which the process confirms before the caller's code runs. A process that stopped while it
-- waited therefore costs the other waiters a claim. A process that stopped right after its arrival costs a lease, as a
-- holder would. Most hand-overs are quicker than CLAIM, and a confirmation is a command.
-- A message may be lost. The next waiter notices the end of a claim. Before a whole lease ends, only the waiter itself
-- notices the lost message. So each waiter polls once when CLAIM since its arrival is over, and the lock is idle for CLAIM
-- at most.
-- An arrival in the future tells nothing: the clock has been set back.
local function grant_of(arrival, lease)
  local age = micros - arrival
  return age >= 0 and age < CLAIM * 1000 and lease or math.min(lease, CLAIM)
end

-- How long a waiter sleeps before it polls, ms, when the hold in its way ends in `left` and `rank` waiters are ahead. After
-- a lease the head polls first. All waiters ahead may be dead, so the others poll after another claim, and not all at once.
-- After a claim there is no such second wait: each dead waiter in a row would cost two claims instead of one.
local function look_after(left, rank)
  if rank == 0 then return left end
  if left <= CLAIM then return left + math.min(rank * SPREAD, WIDEST) end
  return left + CLAIM + rank * SPREAD
end

-- A claim is in the way, and its owner may be dead. The head behind it may be dead too, and no waiter would poll when the
-- claim is over. The entries of a process die with it, and a process may have many. So the script considers the processes
-- behind the head's in the order of their first waiters. It tells the 1st, 2nd, 4th, 8th, ... and the last one when to poll,
-- and reads no further than the piece of the queue with a living one. On a cluster it cannot tell which one lives.
-- If the first living process is the p-th, and the processes behind it live, a living process among the first 2p gets the
-- message, or the last one does. A poll grants the next claim and sends these messages again, so d dead waiters in a row
-- cost d claims.
local function tell_further(left, head)
  local seen, found, turn = { [string.match(head, PROCESS)] = true }, 0, 1
  local lives, last
  local function tell_when(owner, rank)
    lives = tell(owner, 'next', owner, digits(look_after(left, rank))) and not in_cluster or lives
  end
  -- The waiters behind these poll without a message.
  for from = 1, FURTHEST, PIECE_OF_QUEUE do
    local entries = redis.call('ZRANGE', KEYS[3], from, from + PIECE_OF_QUEUE - 1)
    for at, entry in ipairs(entries) do
      local owner = string.match(entry, '^%S (%S+)')
      local whose = string.match(owner, PROCESS)
      if not seen[whose] then
        seen[whose], found, last = true, found + 1, { owner, from + at - 1 }
        if found == turn then
          tell_when(unpack(last))
          turn, last = 2 * turn, nil
        end
      end
    end
    if lives or #entries < PIECE_OF_QUEUE then break end
  end
  if last then tell_when(unpack(last)) end
end

-- What `asker` has been granted, if its turn has come, and its rivals.
local asker_token, asker_rivals

-- Lets in the waiters at the head of the queue that may enter now, and tells the new head until when to wait. A waiter is
-- gone if its process is not subscribed, and does not delay the others.
-- @param sparing  leaves the head untold if it looks by itself in time: it does so after its own lease at the latest. If a
--                 claim is in the way, the waiters further back have to be told too.
local function advance(sparing)
  repeat
    local heads = redis.call('ZRANGE', KEYS[3], 0, 1, 'WITHSCORES')
    local behind = true
    for i = 1, #heads, 2 do
      local entry = heads[i]
      local function remove()
        redis.call('ZREM', KEYS[3], entry)
        -- If the slot is being moved, the server refuses a queue that is gone.
        behind = heads[i + 2] or i > 1 and redis.pcall('EXISTS', KEYS[3]) == 1
      end
      local mode, owner, lease = string.match(entry, '^(%S) (%S+) ?(%d*)$')
      if not is_of_kind(mode) then
        -- The waiter learns of the other kind when it asks.
        remove()
        tell(owner, 'next', owner, 0)
      elseif admits(mode) then
        remove()
        local token, span = next_token(), grant_of(tonumber(heads[i + 1]), tonumber(lease) or CLAIM)
        -- The answer of the script is no message, and needs no confirmation.
        if owner == asker then span = tonumber(lease) end
        -- The rivals: 2 also outside of the queue, 1 behind in it, 0 none. Of the second head it is not known yet.
        local rivals = outsiders and 2 or behind and 1 or 0
        if owner == asker then
          asker_token, asker_rivals = token, rivals
          let_in(mode, owner, token, span)
        else
          local lives, counted = is_subscribed(owner)
          -- A replica passes the message on, also to a process that PUBLISH does not count and that is put out. So a process
          -- that was not counted before has to confirm.
          if not counted then span = math.min(span, CLAIM) - 1 end
          -- The write comes before the message, which cannot be undone: a slot that is being moved takes no new key, and a
          -- user may lose rights.
          if lives then
            let_in(mode, owner, token, span)
            if not send(owner, 'granted', owner, digits(token), digits(now), digits(span), server(), rivals) then
              put_out(mode, owner)
            end
          end
        end
      else
        local left = blocked_until(mode) - now
        -- The first milliseconds of a hold that this script has begun may be over.
        if sparing and left > CLAIM and left + SPREAD >= tonumber(lease) then return end
        -- The head asks at once if no message tells it of the release, and learns that it has to subscribe to releases.
        if owner == asker or tell(owner, 'next', owner, digits(hands_over() and left or 0)) then
          if left <= CLAIM then tell_further(left, owner) end
          return
        end
        remove()
      end
    end
  until #heads < 4 or not behind
end

-- Takes an entry in the queue: the one that exists, one at the arrival that the owner was told before, or (0) one at the
-- end. Returns the arrival. The queue outlives the hold that it waits for, and those of the waiters ahead: its life is never
-- shortened.
local function take_entry(entry, arrival, life)
  local stands = redis.call('ZSCORE', KEYS[3], entry)
  arrival = tonumber(stands or arrival)
  if arrival == 0 then
    local latest = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
    arrival = math.max(micros, latest and latest + 1 or 0)
  end
  -- An entry that exists needs no room, and is not refused for lack of it.
  if not stands then redis.call('ZADD', KEYS[3], digits(arrival), entry) end
  life = math.max(redis.call('PTTL', KEYS[3]), life)
  if type(redis.pcall('PEXPIRE', KEYS[3], digits(life))) == 'table' then
    -- A queue without an end would stay if this process dies.
    redis.call('ZREM', KEYS[3], entry)
    redis.call('PEXPIRE', KEYS[3], digits(life))
  end
  return arrival
end

-- Gives up the entry. Without the lease that the owner has asked for (0), the script searches the queue.
local function leave_queue(mode, owner, lease)
  local prefix = mode .. ' ' .. owner .. ' '
  if lease ~= '0' then return redis.call('ZREM', KEYS[3], prefix .. lease) end
  for _, entry in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    if string.sub(entry, 1, #prefix) == prefix then redis.call('ZREM', KEYS[3], entry) end
  end
end
