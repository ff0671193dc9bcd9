-- Grants blocks: 'granted' with block, epoch, start and end of each; 'skew';
-- 'forgotten' with a block, its epoch and its mark, if it has any; or
-- 'refused' with the lowest mark of those that are held and of those released.

local wanted, length = tonumber(ARGV[FIRST]), tonumber(ARGV[FIRST + 1])
local client_ms = tonumber(ARGV[FIRST + 2])
local has_holder = ARGV[FIRST + 3] == '1'
local host, instance = ARGV[FIRST + 4], ARGV[FIRST + 5]
-- Then block, epoch and end of each grant that was confirmed to the caller.
local EVIDENCE = FIRST + 6

-- Pairs of name and mark out of a reply WITHSCORES.
local function pairs_of(reply)
  local blocks = {}
  for i = 1, #reply, 2 do
    blocks[#blocks + 1] = { name = reply[i], mark = number('hwm_end', reply[i + 1]), fresh = false }
  end
  return blocks
end

-- The blocks to grant, in this order: those never granted, by index; those whose
-- mark lies at `from` or before, and then those released whose mark lies before
-- `horizon`, by mark and index.
local function candidates(from, horizon)
  local found = {}
  local granted = redis.call('ZCARD', HWM_END)
  for block = granted, math.min(granted + wanted, BLOCKS) - 1 do
    found[#found + 1] = { name = name_of(block), mark = 0, fresh = true }
  end
  local function add(key, low, high)
    if #found < wanted then
      local reply = redis.call('ZRANGE', key, low, high, 'BYSCORE',
        'LIMIT', 0, wanted - #found, 'WITHSCORES')
      for _, block in ipairs(pairs_of(reply)) do
        found[#found + 1] = block
      end
    end
  end
  add(HWM_END, '-inf', text(from))
  add(RELEASED, '(' .. text(from), '(' .. text(horizon))
  return found
end

-- Compares what the keys say of the candidates, before anything is written.
local function check(found)
  local names = {}
  for i, block in ipairs(found) do
    names[i] = block.name
  end
  local marks = redis.call('ZMSCORE', HWM_END, unpack(names))
  local epochs = redis.call('HMGET', EPOCH, unpack(names))
  for i, block in ipairs(found) do
    local fresh = not marks[i]
    if fresh ~= block.fresh or not fresh and marks[i] ~= text(block.mark) then
      answer('corrupt', 'hwm_end and released disagree on block ' .. block.name)
    end
    if not epochs[i] and not block.fresh then
      answer('corrupt', 'there is no epoch for block ' .. block.name)
    end
    block.epoch = number('epoch', epochs[i] or '0') + 1
  end
  return names
end

-- The lowest mark of a block that is held.
local function lowest_held()
  local page, first = 100, 0
  while true do
    local blocks = pairs_of(redis.call('ZRANGE', HWM_END, first, first + page - 1, 'WITHSCORES'))
    for _, block in ipairs(blocks) do
      if not redis.call('ZSCORE', RELEASED, block.name) then
        return text(block.mark)
      end
    end
    if #blocks < page then
      return ''
    end
    first = first + page
  end
end

-- Compares what is kept with what was confirmed: StoreRecord::check_history.
local function check_history(record, now)
  local over = floor_over_lost_grants(record, now)
  for i = EVIDENCE, #ARGV, 3 do
    local name, last = ARGV[i], tonumber(ARGV[i + 2])
    if last > record.floor and last <= over then
      local mark = redis.call('ZSCORE', HWM_END, name) or ''
      local epoch = redis.call('HGET', EPOCH, name) or ''
      if mark == '' or epoch == '' or number('epoch', epoch) < tonumber(ARGV[i + 1])
          or number('hwm_end', mark) < last then
        record.floor = math.max(record.floor, over)
        write_record(record)
        answer('forgotten', name, epoch, mark)
      end
    end
  end
end

return run(function()
  local record = open_record_to_write()
  local now = tick_at_now()
  if math.abs(now_ms - client_ms) > record.skew_ms then
    answer('skew')
  end
  if record.incarnation ~= incarnation then
    record.floor = math.max(record.floor, floor_over_lost_grants(record, now))
    record.incarnation = incarnation
    write_record(record)
  end

  check_history(record, now)
  local from, horizon = math.max(now, record.floor), horizon_end(record, now)
  if from >= horizon then
    answer('refused', '', '')
  end
  local found = candidates(from, horizon)
  if #found == 0 then
    local released = redis.call('ZRANGE', RELEASED, 0, 0, 'WITHSCORES')
    answer('refused', lowest_held(), released[2] or '')
  end

  local names = check(found)
  local marks, epochs, times, hosts, instances, grants = {}, {}, {}, {}, {}, {}
  local function push(list, a, b)
    list[#list + 1] = a
    list[#list + 1] = b
  end
  for _, block in ipairs(found) do
    local first = math.max(from, block.mark)
    local last = math.min(first + length, horizon)
    push(marks, text(last), block.name)
    push(epochs, block.name, text(block.epoch))
    push(times, block.name, text(now_ms))
    push(hosts, block.name, host)
    push(instances, block.name, instance)
    push(grants, block.name, text(block.epoch))
    push(grants, text(first), text(last))
  end
  -- The marks first: whatever ends the script here, nothing is given twice.
  redis.call('ZADD', HWM_END, unpack(marks))
  redis.call('HSET', EPOCH, unpack(epochs))
  redis.call('ZREM', RELEASED, unpack(names))
  redis.call('HSET', GRANTED, unpack(times))
  if has_holder then
    redis.call('HSET', HOST, unpack(hosts))
    redis.call('HSET', INSTANCE, unpack(instances))
  else
    redis.call('HDEL', HOST, unpack(names))
    redis.call('HDEL', INSTANCE, unpack(names))
  end
  answer('granted', unpack(grants))
end)
