-- A founder asks a node whether it may write its charter there.
--
-- KEYS[1]  the charter
-- ARGV[1]  id of the quorum
-- ARGV[2]  the present run of the node
-- ARGV[3]  the proposal: the id and the longest lease
--
-- Returns 1, or 0 if the node has been chartered in this run, belongs to another quorum, or has another proposal.

-- @include charter

local id, run, proposal = unpack(ARGV)
if charter.id and charter.id ~= id then return 0 end
if charter.run == run or charter.quarantined == run then return 0 end
if is_proposed_otherwise(proposal) then return 0 end
-- A founder that asks again does not keep the others away for longer.
if charter.proposed ~= proposal then
  set('proposed', proposal)
  set('proposed_at', string.format('%.0f', time))
end
return 1
