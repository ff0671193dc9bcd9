-- Moves the end of a grant: 'renewed' with the end, or 'fenced' with the block's
-- epoch and mark, if it has any.

local name, epoch, known_end = ARGV[FIRST], ARGV[FIRST + 1], ARGV[FIRST + 2]
local new_end = tonumber(ARGV[FIRST + 3])

return run(function()
  local record = open_record_to_write()
  local now = tick_at_now()
  local mark = redis.call('ZSCORE', HWM_END, name) or ''
  local known = redis.call('HGET', EPOCH, name) or ''
  if record.incarnation ~= incarnation or mark == '' or known ~= epoch
      or mark ~= known_end or number('hwm_end', mark) < record.floor then
    answer('fenced', known, mark)
  end
  local last = math.max(math.min(new_end, horizon_end(record, now)), number('hwm_end', mark))
  redis.call('ZADD', HWM_END, text(last), name)
  redis.call('ZREM', RELEASED, name)
  answer('renewed', text(last))
end)
