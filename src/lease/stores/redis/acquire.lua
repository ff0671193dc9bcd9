-- Grants blocks: 'granted' with what stands in the keys of those quarantined that were
-- met, and then block, epoch, start and end of each; 'skew'; 'forgotten' with a block,
-- its epoch and its mark, if it has any; or 'refused' with those quarantined, and the
-- lowest mark of those that are held and of those released.

local wanted, length = tonumber(ARGV[FIRST]), tonumber(ARGV[FIRST + 1])
local client_ms = tonumber(ARGV[FIRST + 2])
local has_holder = ARGV[FIRST + 3] == '1'
local host, instance = ARGV[FIRST + 4], ARGV[FIRST + 5]
-- Start and end of the past that is asked for; nothing otherwise.
local past_first, past_last = tonumber(ARGV[FIRST + 6]), tonumber(ARGV[FIRST + 7])
-- Then block, epoch and end of each grant that was confirmed to the caller.
local EVIDENCE = FIRST + 8
-- In namespaces with no more blocks one that was passed over is looked for before
-- nothing is granted.
local READ_WHOLE = 16384

-- The blocks to grant, in this order: those never granted, by index; those whose
-- mark lies at `from` or before, and then those released whose mark lies before
-- `below`, by mark and index. And what stands in the keys of those quarantined that
-- were met on the way.
local function candidates(from, below)
  local found, met = {}, {}
  local function take(block, wished)
    if wished then
      found[#found + 1] = block
    elseif not (block.fresh or block.sound) then
      for _, stored in ipairs(block.texts) do
        met[#met + 1] = stored
      end
    end
    return #found == wanted
  end
  local function add_fresh(block, last)
    local page = wanted
    while block < last and #found < wanted do
      local names = {}
      for index = block, math.min(block + page, last) - 1 do
        names[#names + 1] = name_of(index)
      end
      for _, fresh in ipairs(look_at(names)) do
        if take(fresh, fresh.fresh) then
          break
        end
      end
      block, page = block + page, 100
    end
  end
  local function add(key, low, high)
    if #found < wanted then
      each_of(key, low, high, wanted - #found, function(known)
        return take(known, known.sound)
      end)
    end
  end
  -- Fresh ones are taken in order, so as many as that were granted; but the set may have
  -- lost some, or hold what is of no block.
  local granted = redis.call('ZCARD', HWM_END)
  add_fresh(granted, BLOCKS)
  add(HWM_END, '-inf', text(from))
  add(RELEASED, '(' .. text(from), '(' .. text(below))
  if #found == 0 and BLOCKS <= READ_WHOLE then
    add_fresh(0, math.min(granted, BLOCKS))
  end
  return found, met
end

-- The lowest mark of a block in this set that is held, or released.
local function lowest(key, is_released)
  local mark = ''
  each_of(key, '-inf', '+inf', 100, function(block)
    if block.sound and (not block.released) ~= is_released then
      mark = text(block.mark)
      return true
    end
  end)
  return mark
end

-- Compares what is kept with what was confirmed: StoreRecord::check_history. Of a block
-- that is quarantined nothing is forgotten: a repair goes above all.
local function check_history(record, now)
  local over = floor_over_lost_grants(record, now)
  for i = EVIDENCE, #ARGV, 3 do
    local last = tonumber(ARGV[i + 2])
    if last > record.floor and last <= over then
      local block = look_at_one(ARGV[i])
      if block.fresh or block.sound and (block.epoch < tonumber(ARGV[i + 1])
          or block.mark < last) then
        record.floor = math.max(record.floor, over)
        write_record(record)
        answer('forgotten', ARGV[i], block.texts[3], block.texts[2])
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
  -- StoreRecord::mark_window.
  local horizon = horizon_end(record, now)
  local from, below = math.max(now, record.floor), horizon
  if past_first then
    from, below = past_first, past_first + 1
    if past_first < record.floor or past_last > math.min(now, TICKS) then
      answer('refused', {}, '', '')
    end
  end
  if from >= below then
    answer('refused', {}, '', '')
  end
  local found, met = candidates(from, below)
  if #found == 0 then
    answer('refused', met, lowest(HWM_END, false), lowest(RELEASED, true))
  end

  local names, marks, epochs, times, hosts, instances, grants = {}, {}, {}, {}, {}, {}, {}
  local function push(list, a, b)
    list[#list + 1] = a
    list[#list + 1] = b
  end
  for _, block in ipairs(found) do
    local first = math.max(from, block.mark or 0)
    local last = past_last or math.min(first + length, horizon)
    local epoch = text((block.epoch or 0) + 1)
    names[#names + 1] = block.name
    push(marks, text(last), block.name)
    push(epochs, block.name, epoch)
    push(times, block.name, text(now_ms))
    push(hosts, block.name, host)
    push(instances, block.name, instance)
    push(grants, block.name, epoch)
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
  answer('granted', met, unpack(grants))
end)
