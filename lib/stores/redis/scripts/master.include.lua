-- A connection may lead to a replica: to a demoted master, or to one that has no data yet. Its keys tell nothing about the locks,
-- and it refuses only writes. So an answer that is only read, and that decides something for the caller, comes after a write
-- that changes nothing. A replica refuses that, and the connection looks for the master.

-- Raises the error of a replica. `member` must not be in the key, whose other members stay. No other error counts: a server
-- that takes no writes for now, and a user with fewer rights, still get their answer. Which key it is makes no difference.
local function ensure_master(command, key, member)
  local reply = redis.pcall(command, key, member)
  -- The second call raises the error and ends the script, and the error names this line.
  if type(reply) == 'table' and string.find(reply.err, 'READONLY ', 1, true) then redis.call(command, key, member) end
end
