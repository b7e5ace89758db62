-- Tries what locks of all kinds need, in one step that leaves nothing behind. A server that would refuse to acquire, renew
-- or release a lock refuses this script.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence
-- KEYS[3]  the queue
-- ARGV[1]  owner
-- ARGV[2]  lease, ms
-- ARGV[3]  PUBLISH, or SPUBLISH
-- ARGV[4]  channel of the lock
-- ARGV[5]  1 to send the writes to replicas, for a WAIT that follows
-- ARGV[6]  channel of a waiting process
-- ARGV[7]  'cluster' on a cluster
--
-- Returns the commands that are refused and that most locks do not need, each followed by its error.

-- @include plain
-- @include in-the-way

-- All that the script writes is gone when it ends, so replicas and the append-only file do not need it.
if ARGV[5] ~= '1' and redis.set_repl then pcall(redis.set_repl, redis.REPL_NONE) end

-- Each command is sent for a key that does not exist, and does nothing there. A user that may not send the command is still
-- refused. A command that needs room comes first: after a first write, a server that is out of memory refuses nothing more.
local lock, fence, queue, owner = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
redis.call('ZADD', queue, 'XX', 1, owner)
redis.call('PEXPIREAT', queue, 1)
redis.call('PEXPIRE', queue, 1)
redis.call('ZRANGE', queue, 0, 0)
redis.call('ZRANK', queue, owner)
redis.call('ZSCORE', queue, owner)
redis.call('ZCARD', queue)
redis.call('ZREM', queue, owner)
redis.call('ZREMRANGEBYSCORE', queue, '-inf', 0)
redis.call('EXISTS', queue)
redis.call('TYPE', lock)
redis.call('PTTL', lock)
redis.call('HEXISTS', lock, owner)
redis.call('HGETALL', lock)
redis.call('HDEL', lock, owner)
redis.call('GET', fence)
if ARGV[7] == 'cluster' then redis.call('CLUSTER', 'MYID') end

local lacks = {}
local function note(command, reply)
  if type(reply) == 'table' and reply.err then
    table.insert(lacks, command)
    table.insert(lacks, reply.err)
  end
end
if not in_the_way(lock, owner) then
  enter(lock, fence, owner, ARGV[2], 0, ARGV[2])
  redis.call('HDEL', lock, owner)
  redis.call('PEXPIRE', fence, 0)
end
note(ARGV[3], redis.pcall(ARGV[3], ARGV[4], ''))
note('PUBLISH', redis.pcall('PUBLISH', ARGV[6], ''))
note('PUBSUB', redis.pcall('PUBSUB', 'NUMSUB', ARGV[6]))
note('MGET', redis.pcall('MGET', fence))
return lacks
