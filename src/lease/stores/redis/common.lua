-- What all scripts share: the keys, the record, and the rules of StoreRecord.
--
-- A script runs whole and alone, so it is the atomic step. It ends in
-- `return run(function() ... end)` and answers with an array: a tag, the
-- server's time in milliseconds, its incarnation, how many replicas are online,
-- the fields of the record, and what the tag says. The caller computes every
-- refusal anew from these, with the same rules.
--
-- Numbers are doubles, exact up to 2^53. All that are computed with lie within
-- that: `init` refuses a layout that ends after 2^52, which leaves room for the
-- sums, and numbers of the caller that may be larger are compared as texts. A
-- number is made a text by `text` alone, since `tostring` keeps 14 digits.

local RECORD, HWM_END, RELEASED, EPOCH = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local GRANTED, HOST, INSTANCE = KEYS[5], KEYS[6], KEYS[7]
-- Of all namespaces: which of them has a fingerprint. Only where a secret is claimed.
local SECRETS = KEYS[8]
local PLAIN = string.rep('0', 32)

-- What the record must agree with.
local NAMESPACE = { format = ARGV[1], name = ARGV[2], layout = ARGV[3], block_bits = ARGV[4],
  fingerprint = ARGV[5] }
local TICK_MS, EPOCH_UNIX_MS = tonumber(ARGV[6]), tonumber(ARGV[7])
local TICKS, BLOCKS = tonumber(ARGV[8]), tonumber(ARGV[9])
-- How many replicas must be online for a write.
local REPLICAS = tonumber(ARGV[10])
-- The arguments of the one script begin here.
local FIRST = 11

local FIELDS = { 'format', 'name', 'layout', 'block_bits', 'fingerprint', 'horizon_ms',
  'failover_ms', 'skew_ms', 'floor', 'incarnation' }
local MAX = 9007199254740992

-- What every answer carries.
local now_ms, incarnation, online, fields = 0, '', 0, {}

-- Ends the script with this tag.
local function answer(tag, ...)
  error({ answer = { tag, ... } }, 0)
end

local function text(number)
  return string.format('%.0f', number)
end

-- The number that a stored text stands for, if it does for one.
local function parse(stored)
  local value = stored and tonumber(stored)
  if value and value >= 0 and value <= MAX and text(value) == stored then
    return value
  end
end

-- The number that a field of the record stands for.
local function number(what, stored)
  local value = parse(stored)
  if not value then
    answer('corrupt', what .. ' is ' .. tostring(stored))
  end
  return value
end

-- Blocks with the same mark are taken in order, so their names are as long.
local function name_of(block)
  return string.format('%016.0f', block)
end

local function is_block(name)
  local block = tonumber(name)
  return block and block >= 0 and block < BLOCKS and name_of(block) == name
end

-- What the keys say of these blocks, each with its name, mark, epoch and the mark at
-- which it was released; `fresh` if that is nothing at all, and `sound` if it can be
-- true: the rule of quarantine.rs. A block that is neither is quarantined.
local function look_at(names)
  if #names == 0 then
    return {}
  end
  local marks = redis.call('ZMSCORE', HWM_END, unpack(names))
  local epochs = redis.call('HMGET', EPOCH, unpack(names))
  local released = redis.call('ZMSCORE', RELEASED, unpack(names))
  local blocks = {}
  for i, name in ipairs(names) do
    local block = { name = name, mark = parse(marks[i]), epoch = parse(epochs[i]),
      released = released[i] }
    -- What stands there, for an answer.
    block.texts = { name, marks[i] or '', epochs[i] or '', released[i] or '' }
    block.fresh = not (marks[i] or epochs[i] or released[i])
    block.sound = is_block(name) and block.mark and block.epoch and block.epoch >= 1
      and block.epoch <= block.mark and block.mark <= TICKS
      and (not released[i] or released[i] == marks[i])
    blocks[i] = block
  end
  return blocks
end

-- The one block that a script is about.
local function look_at_one(name)
  return look_at({ name })[1]
end

-- Ends in 'quarantined' with what stands there, if the block is.
local function refuse_quarantined(block)
  if not (block.fresh or block.sound) then
    answer('quarantined', block.texts)
  end
end

-- Looks at the names in a range of a set, the lowest mark first, a page at a time. Ends
-- with the range, or when `visit` answers true.
local function each_of(key, low, high, page, visit)
  local first = 0
  while true do
    local names = redis.call('ZRANGE', key, low, high, 'BYSCORE', 'LIMIT', first, page)
    for _, block in ipairs(look_at(names)) do
      if visit(block) then
        return
      end
    end
    if #names < page then
      return
    end
    first, page = first + page, 100
  end
end

-- Looks at the server: who it is, what time it has, who follows it.
local function observe_server()
  local time = redis.call('TIME')
  now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local replication = redis.call('INFO', 'replication')
  local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  local replid = string.match(replication, 'master_replid:(%x+)')
  if not (run_id and replid) then
    answer('corrupt', 'INFO tells no run_id or no master_replid')
  end
  incarnation = run_id .. '/' .. replid
  -- A lag of -1 is seen at times, where two of the server's clocks disagree.
  for lag in string.gmatch(replication, 'slave%d+:[^\r\n]*state=online[^\r\n]*lag=(%-?%d+)') do
    -- It tells how far it is once a second. One that was silent for longer than
    -- this, the default of min-replicas-max-lag, may be gone.
    if tonumber(lag) <= 10 then
      online = online + 1
    end
  end
  if not string.find(replication, 'role:master', 1, true) then
    answer('replica')
  end
end

-- The record, compared with the namespace that the caller names.
local function open_record()
  fields = redis.call('HMGET', RECORD, unpack(FIELDS))
  local record, missing = {}, 0
  for i, field in ipairs(FIELDS) do
    record[field] = fields[i]
    if not fields[i] then
      missing = missing + 1
    end
  end
  if missing == #FIELDS then
    answer('missing')
  end
  if missing > 0 then
    answer('corrupt', 'the record lacks ' .. missing .. ' fields')
  end
  for field, offered in pairs(NAMESPACE) do
    if record[field] ~= offered then
      answer('other')
    end
  end
  for _, field in ipairs({ 'horizon_ms', 'failover_ms', 'skew_ms', 'floor' }) do
    record[field] = number(field, record[field])
  end
  return record
end

-- Ends in 'in_use' with the name of a namespace that has the secret, and by which
-- fingerprint: Namespace::check_secret.
local function refuse_second_use(fingerprint)
  local owner = redis.call('HGET', SECRETS, fingerprint)
  local is_own = fingerprint == NAMESPACE.fingerprint and owner == NAMESPACE.name
  if NAMESPACE.fingerprint ~= PLAIN and owner and not is_own then
    answer('in_use', owner, fingerprint)
  end
end

-- Once the record is written.
local function note_secret()
  if NAMESPACE.fingerprint ~= PLAIN then
    redis.call('HSET', SECRETS, NAMESPACE.fingerprint, NAMESPACE.name)
  end
end

-- As `open_record`, for a script that will write.
local function open_record_to_write()
  local record = open_record()
  if online < REPLICAS then
    answer('replicas')
  end
  return record
end

-- `a / b` rounded down. A rounded quotient could be one too many; a remainder is
-- exact.
local function quotient(a, b)
  return (a - math.fmod(a, b)) / b
end

local function tick_at_now()
  if now_ms < EPOCH_UNIX_MS then
    answer('before')
  end
  return quotient(now_ms - EPOCH_UNIX_MS, TICK_MS)
end

local function horizon_ticks(record)
  return quotient(record.horizon_ms, TICK_MS)
end

local function horizon_end(record, now)
  return math.min(now + horizon_ticks(record), TICKS)
end

local function floor_over_lost_grants(record, now)
  return now + horizon_ticks(record) + quotient(record.failover_ms + TICK_MS - 1, TICK_MS) + 1
end

local function write_record(record)
  redis.call('HSET', RECORD, 'floor', text(record.floor), 'incarnation', record.incarnation)
  for i, field in ipairs(FIELDS) do
    if field == 'floor' then
      fields[i] = text(record.floor)
    elseif field == 'incarnation' then
      fields[i] = record.incarnation
    end
  end
end

local function run(main)
  local done, result = pcall(function()
    observe_server()
    main()
  end)
  if not done and type(result) == 'table' and result.answer then
    local tag = table.remove(result.answer, 1)
    return { tag, text(now_ms), incarnation, text(online), fields, unpack(result.answer) }
  end
  -- An error of Redis itself.
  if type(result) == 'table' then
    return result
  end
  return redis.error_reply(tostring(result))
end
