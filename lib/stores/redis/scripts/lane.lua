-- Runs scripts one after another, each as if it had been sent by itself. If a script fails, its answer is the error, and the
-- other scripts go on.
--
-- KEYS     the keys of the first script, then the keys of the second, ...
-- ARGV[1]  a list in JSON: for each script its name, its number of keys, and its arguments. An argument of a command costs
--          client and server more than its text does.
--
-- Returns the answer of each script.

-- Functions that need nothing of the script are made once, and not by each of the scripts again.
-- @include plain
-- @include in-the-way
-- @include master
-- @include rights
-- @include error-of

local scripts = {
  -- @script acquire
  -- @script acquire-all
  -- @script queue-acquire
  -- @script queue-release
  -- @script release
  -- @script renew
}

local replies, before = {}, 0
for i, call in ipairs(cjson.decode(ARGV[1])) do
  local name, count, arguments = unpack(call)
  local keys = { unpack(KEYS, before + 1, before + count) }
  before = before + count
  local done, reply = pcall(scripts[name], keys, arguments)
  if not done then reply = error_of(reply, 'lane.lua') end
  -- A list ends at the first nil.
  replies[i] = reply or false
end
return replies
