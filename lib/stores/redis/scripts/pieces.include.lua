-- Commands for many keys. Lua passes no more than 8,000 values to a call, so the keys are divided.

local PIECE = 1000

-- The first and the last position of each piece of KEYS[first..last].
local function pieces(first, last)
  local from = first - PIECE
  return function()
    from = from + PIECE
    if from <= last then return from, math.min(from + PIECE - 1, last) end
  end
end

-- Whether any of KEYS[first..last] exists.
local function exist(first, last)
  for from, to in pieces(first, last) do
    if redis.call('EXISTS', unpack(KEYS, from, to)) > 0 then return true end
  end
  return false
end
