-- Writes entries if all conditions hold: 'done' with the number of replicas online. Returns a
-- snapshot if one does not; 'few' with that number if fewer replicas are online than needed.
--
-- Arguments: the earliest and the latest time; the incarnation, or '' for any; how many
-- replicas are needed; the fields to compare, and their values as '=VALUE', or '' if absent;
-- the entries to write, each as hash, field, value, ranks (0 for none) and rank ('' to try the
-- permissions that writing one takes).

local not_before, not_after, required = number(), number(), word()
local replicas = number()
local holds = now_ms >= not_before and now_ms <= not_after
  and (required == '' or required == incarnation)

for _, value in ipairs(read_fields()) do
  local shown = value and '=' .. value or ''
  if word() ~= shown then
    holds = false
  end
end

local puts = {}
for i = 1, number() do
  local hash, field, value = KEYS[number()], word(), word()
  puts[i] = { hash = hash, field = field, value = value, ranks = KEYS[number()], rank = word() }
end

if not holds then
  return snapshot()
end

-- A lag of -1 is seen at times, where two of the server's clocks disagree. A replica shows how
-- far it is once a second. One that was silent for more than 10 seconds, the default of
-- min-replicas-max-lag, may be gone.
local online = 0
for lag in string.gmatch(replication, 'slave%d+:[^\r\n]*state=online[^\r\n]*lag=(%-?%d+)') do
  if tonumber(lag) <= 10 then
    online = online + 1
  end
end
if online < replicas then
  return { 'few', online }
end

-- Keys of another type end the script here, before the first write.
for _, put in ipairs(puts) do
  redis.call('HMGET', put.hash, put.field)
  if put.ranks then
    redis.call('ZRANGE', put.ranks, 0, 0)
  end
end
-- Ranks first: if the user lacks a permission, no value is written.
for _, put in ipairs(puts) do
  if put.ranks and put.rank == '' then
    -- Changes a rank that is there, and there is none.
    redis.call('ZADD', put.ranks, 'XX', 0, put.field)
  elseif put.ranks then
    redis.call('ZADD', put.ranks, put.rank, put.field)
  end
end
for _, put in ipairs(puts) do
  redis.call('HSET', put.hash, put.field, put.value)
end
return { 'done', online }
