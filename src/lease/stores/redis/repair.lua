-- Brings back a block that is quarantined: 'repaired' with its mark, which is its
-- epoch, too: StoreRecord::repaired. 'sound' where it is none; 'skew'.
--
-- Arguments: the block, and the caller's time.

local name, client_ms = ARGV[FIRST], tonumber(ARGV[FIRST + 1])

return run(function()
  local record = open_record_to_write()
  local over = floor_over_lost_grants(record, tick_at_now())
  if math.abs(now_ms - client_ms) > record.skew_ms then
    answer('skew')
  end
  local block = look_at_one(name)
  if block.fresh or block.sound or not is_block(name) then
    answer('sound')
  end
  local mark = block.mark and block.mark <= TICKS and block.mark or 0
  local last = text(math.min(math.max(over, record.floor, mark), TICKS))
  redis.call('ZADD', HWM_END, last, name)
  redis.call('HSET', EPOCH, name, last)
  redis.call('ZADD', RELEASED, last, name)
  redis.call('HDEL', GRANTED, name)
  redis.call('HDEL', HOST, name)
  redis.call('HDEL', INSTANCE, name)
  answer('repaired', last)
end)
