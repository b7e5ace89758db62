-- Makes holds last longer, never shorter: a batch, each hold for itself.
--
-- KEYS[i]      the lock
-- ARGV[2i-1]   its owner
-- ARGV[2i]     lease, ms
--
-- Returns per lock, in order: 1 held, 0 nobody holds it, -1 somebody else does.
-- pcall, so that a key which has become something else costs its own hold only.

local held = {}
for i, key in ipairs(KEYS) do
  held[i] = -redis.call('EXISTS', key)
  if redis.pcall('HEXISTS', key, ARGV[2 * i - 1]) == 1 then
    held[i] = 1
    if redis.call('PTTL', key) < tonumber(ARGV[2 * i]) then redis.call('PEXPIRE', key, ARGV[2 * i]) end
  end
end
return held
