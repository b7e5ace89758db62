-- Finds out whether a user has a right before a script writes anything: a hold that can be taken and not given up would stay
-- until its lease ends, and the command that takes back a refused acquisition would be refused as well.

-- Raises an error in the words of Redis 7.2, which name the command, if the server would refuse it. Redis before 7.0 does not
-- tell beforehand.
local function need(command, key)
  if not redis.acl_check_cmd then return end
  local known, allowed = pcall(redis.acl_check_cmd, command, key, '')
  if not (known and allowed) then
    error({ err = "NOPERM ACL failure in script: User has no permissions to run the '" .. command .. "' command" })
  end
end
