/** What a script finds besides the language itself: as in the server, as far as scripts of locks can see it. */
export const PRELUDE = `
local call, pcall_, decode = ...
local getinfo = debug.getinfo
for _, name in ipairs({ 'debug', 'io', 'package', 'require', 'module', 'dofile', 'loadfile', 'print' }) do _G[name] = nil end
os = { clock = os.clock }

-- An error of a command reaches a script as its text.
local protected = pcall
local function untold(done, reason, ...)
  if not done and type(reason) == 'table' and type(reason.err) == 'string' then return done, reason.err end
  return done, reason, ...
end
function pcall(...) return untold(protected(...)) end

redis = { call = call, pcall = pcall_, REPL_ALL = 3, REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2 }

function redis.error_reply(text)
  text = string.gsub(text, '^%-', '')
  return { err = string.find(text, ' ', 1, true) and text or 'ERR ' .. text }
end
function redis.status_reply(text) return { ok = text } end
function redis.acl_check_cmd() return true end
function redis.set_repl() end
function redis.log() end

cjson = { decode = decode }
KEYS, ARGV = {}, {}

setmetatable(_G, {
  __newindex = function() error('Attempt to modify a readonly table', 2) end,
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
})

-- Where a script has failed.
return function(reason)
  local level, at = 2, getinfo(2, 'Sl')
  while at and (at.what == 'C' or at.source == '@prelude') do
    level = level + 1
    at = getinfo(level, 'Sl')
  end
  if type(reason) ~= 'table' then reason = { err = 'ERR ' .. tostring(reason) } end
  if at then reason.source, reason.line = at.source, at.currentline end
  return reason
end`;
