-- Observes the server and reads entries. The script for reads is this and a return; commit.lua
-- follows it in the script for commits.
--
-- All keys are in KEYS, and arguments name them by their place there. Values are compared and
-- returned as they are. Of numbers there are milliseconds, lengths and limits only, all below
-- 2^53, up to which Lua's numbers are exact.
--
-- Arguments: those of commit.lua if it follows, and then the query: the fields, and '' or
-- 'all', a hash or 'lowest', a hash, its ranks, a limit.

-- The place of the last argument that was read.
local at = 0

local function word()
  at = at + 1
  return ARGV[at]
end

local function number()
  return tonumber(word())
end

-- The values of list[first] to list[last], which are fields of a hash; false if absent.
local function get(hash, list, first, last)
  local values = {}
  -- Lua passes up to 8,000 arguments.
  for start = first, last, 1000 do
    local page = redis.call('HMGET', hash, unpack(list, start, math.min(start + 999, last)))
    for _, value in ipairs(page) do
      values[#values + 1] = value
    end
  end
  return values
end

-- The values of the fields that the next arguments name. For each run of fields of one hash:
-- the hash, how many, and their names.
local function read_fields()
  local values = {}
  for _ = 1, number() do
    local hash, count = KEYS[number()], number()
    for _, value in ipairs(get(hash, ARGV, at + 1, at + count)) do
      values[#values + 1] = value
    end
    at = at + count
  end
  return values
end

-- The fields with the lowest ranks and their values in turn, and whether the limit has left
-- others out. If the ranks name fewer fields than the limit, all fields are read instead: some
-- ranks can be lost.
local function read_lowest(hash, ranks, limit)
  local names = redis.call('ZRANGE', ranks, 0, limit)
  local fields = {}
  for i, value in ipairs(get(hash, names, 1, #names)) do
    if value then
      fields[#fields + 1] = names[i]
      fields[#fields + 1] = value
    end
  end
  if #fields <= 2 * limit then
    return redis.call('HGETALL', hash), false
  end
  -- Without the last one, which was beyond the limit.
  fields[#fields] = nil
  fields[#fields] = nil
  return fields, true
end

local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local replication = redis.call('INFO', 'replication')
if not string.find(replication, 'role:master', 1, true) then
  return { 'replica' }
end
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local replid = string.match(replication, 'master_replid:(%x+)')
if not (run_id and replid) then
  return { 'anonymous' }
end
local incarnation = run_id .. '/' .. replid

local function snapshot()
  local values = read_fields()
  local kind, blocks, has_more = word(), {}, false
  if kind == 'all' then
    blocks = redis.call('HGETALL', KEYS[number()])
  elseif kind == 'lowest' then
    local hash, ranks, limit = KEYS[number()], KEYS[number()], number()
    blocks, has_more = read_lowest(hash, ranks, limit)
  end
  return { 'snapshot', now_ms, incarnation, values, blocks, has_more and 1 or 0 }
end
