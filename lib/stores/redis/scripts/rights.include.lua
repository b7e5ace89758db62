-- Finds out whether a user has a right before a script writes anything: a hold that can be taken and not given up would stay
-- until its lease ends, and the command that takes back a refused acquisition would be refused as well.

-- Whether the server refuses the command. The script then sends it for an empty member, which no key has, and the server's
-- error names the line. Redis before 7.0 does not tell.
local function lacks(command, key)
  if not redis.acl_check_cmd then return false end
  local known, allowed = pcall(redis.acl_check_cmd, command, key, '')
  return not (known and allowed)
end
