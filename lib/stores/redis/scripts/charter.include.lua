-- The memory of a node about the quorum that it belongs to; see docs/design/redlock.md.
--
-- Fields of the charter: id, size (number of nodes), longest and allowed (ms), run (the run with a vote), quarantined (a run
-- that must not vote yet), 'nodes <names>' for each list of names under which services know the nodes, proposed and proposed_at
-- (the id and the longest lease that a founder proposes, and when), 'seen <run>' (when this node first heard of that run).
local charter = {}
local flat = redis.call('HGETALL', KEYS[1])
for n = 1, #flat, 2 do charter[flat[n]] = flat[n + 1] end
local clock = redis.call('TIME')
local time = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- ms for which a proposal keeps other founders away.
local PROPOSAL_LIFE = 5000
local function is_proposed_otherwise(text)
  if not charter.proposed or string.sub(charter.proposed, 1, #text) == text then return false end
  return math.abs(time - charter.proposed_at) < PROPOSAL_LIFE
end

local function set(field, value)
  charter[field] = tostring(value)
  redis.call('HSET', KEYS[1], field, value)
end
