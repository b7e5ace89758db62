-- Reads the charter of a node, or adds to it. Numbers only grow, and an id is never replaced.
--
-- KEYS[1]  the charter
-- ARGV[1]  id of the quorum; '' only reads
-- ARGV[2]  number of nodes
-- ARGV[3]  longest lease, ms
-- ARGV[4]  longest lease that all nodes have acknowledged, ms
-- ARGV[5]  names of the nodes; '' if the charter must exist already
-- ARGV[6]  'run' or 'quarantined', the field that names the run; '' for none
-- ARGV[7]  the run
-- ARGV[8]  the proposal of a founder: nothing is added if the node has another proposal since; '' from any other process
--
-- Returns { the server's time in ms, field, value, field, value… }.

-- @include charter

local id, size, longest, allowed, names, field, run, proposal = unpack(ARGV)
local is_current = proposal == '' or charter.proposed == proposal
local is_mine = charter.id == id and is_current
if id ~= '' and not charter.id and names ~= '' and is_current and not is_proposed_otherwise(id .. ' ') then
  set('id', id)
  set('size', size)
  is_mine = true
end
if is_mine then
  if tonumber(longest) > tonumber(charter.longest or 0) then set('longest', longest) end
  if tonumber(allowed) > tonumber(charter.allowed or 0) then set('allowed', allowed) end
  if names ~= '' and not charter['nodes ' .. names] then set('nodes ' .. names, 1) end
  if field ~= '' and charter[field] ~= run then set(field, run) end
end
local reply = { string.format('%.0f', time) }
for name, value in pairs(charter) do
  table.insert(reply, name)
  table.insert(reply, value)
end
return reply
