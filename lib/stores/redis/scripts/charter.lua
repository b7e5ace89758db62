-- Reads the charter of a node, which is its memory of the quorum that it belongs to, or writes it; see docs/design/redlock.md.
--
-- Fields of the charter: id, size (number of nodes), longest and allowed (ms), run (the run with a vote), quarantined (a run that
-- must not vote yet), claim ('<run> <longest lease>', by the first founder in that run), 'nodes <names>' for each list of names
-- under which services know the nodes, 'seen <run>' (when this node first heard of that run of any node).
--
-- KEYS[1]  the charter
-- ARGV[1]  id of the quorum; '' only reads
-- ARGV[2]  number of nodes
-- ARGV[3]  longest lease, ms, which only grows
-- ARGV[4]  names of the nodes; '' if the charter must exist already
-- ARGV[5]… field and value of further fields
--
-- Returns { the server's time in ms, field, value, field, value… }.

local charter = {}
local flat = redis.call('HGETALL', KEYS[1])
for n = 1, #flat, 2 do charter[flat[n]] = flat[n + 1] end
local clock = redis.call('TIME')
local time = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function set(field, value)
  if charter[field] == value then return end
  charter[field] = value
  redis.call('HSET', KEYS[1], field, value)
end

local id, size, longest, names = unpack(ARGV)
if id ~= '' and not charter.id and names ~= '' then
  set('id', id)
  set('size', size)
end
if id ~= '' and charter.id == id then
  if tonumber(longest) > tonumber(charter.longest or 0) then set('longest', longest) end
  if names ~= '' then set('nodes ' .. names, '1') end
  local noted = {}
  for n = 5, #ARGV, 2 do
    local field, value = ARGV[n], ARGV[n + 1]
    if string.sub(field, 1, 5) == 'seen ' then
      value = charter[field] or string.format('%.0f', time)
      noted[field] = true
    elseif field == 'claim' and charter.claim then
      -- The first claim in a run stays.
      local run = string.match(value, '^%S+ ')
      if string.sub(charter.claim, 1, #run) == run then value = charter.claim end
    end
    -- A raise brings no run. Of two at once, the greater one stays.
    if field == 'allowed' and ARGV[5] == field then value = math.max(value, charter.allowed or 0) .. '' end
    set(field, value)
  end
  -- Runs that got their vote long ago, or whose nodes have restarted again.
  for field, value in pairs(charter) do
    if next(noted) and not noted[field] and string.sub(field, 1, 5) == 'seen ' and time - value > 10 * charter.longest then
      charter[field] = nil
      redis.call('HDEL', KEYS[1], field)
    end
  end
end
local reply = { string.format('%.0f', time) }
for field, value in pairs(charter) do
  table.insert(reply, field)
  table.insert(reply, value)
end
return reply
