-- Runs scripts one after another, each as if it had been sent by itself. One that fails has its error as the answer, and
-- the others go on.
--
-- KEYS     those of the first, then those of the second, ...
-- ARGV[1]  a list in JSON: of each its name, how many keys it has, and its arguments. An argument of a command costs client and
--          server more than the text of it.
--
-- Returns the answer of each.

local scripts = {
  -- @script acquire
  -- @script acquire-all
  -- @script queue-acquire
  -- @script queue-release
  -- @script release
  -- @script renew
}

-- As a script that is sent by itself says it. Before Redis 7 the text of an error may begin with its line, and what is put
-- before that is looked for by reply-texts.ts.
local function error_of(reason)
  local text = type(reason) == 'table' and reason.err or tostring(reason)
  return { err = string.find(text, '^%u+ ') and text or 'ERR Error running script (in lane.lua): ' .. text }
end

local replies, before = {}, 0
for i, call in ipairs(cjson.decode(ARGV[1])) do
  local name, count, arguments = unpack(call)
  local keys = { unpack(KEYS, before + 1, before + count) }
  before = before + count
  local done, reply = pcall(scripts[name], keys, arguments)
  if not done then reply = error_of(reply) end
  -- A list ends where something is nil.
  replies[i] = reply or false
end
return replies
