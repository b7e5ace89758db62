-- The error of one of several steps as a script that is sent by itself gives it. Before Redis 7 the text of an error may
-- begin with its line, and reply-texts.ts looks for the text that is put before that.
local function error_of(reason, file)
  local text = type(reason) == 'table' and reason.err or tostring(reason)
  return { err = string.find(text, '^%u+ ') and text or 'ERR Error running script (in ' .. file .. '): ' .. text }
end
