-- Moves the end of a grant: 'renewed' with the end, 'quarantined', or 'fenced' with
-- the block's epoch and mark, if it has any.

local name, epoch, known_end = ARGV[FIRST], ARGV[FIRST + 1], ARGV[FIRST + 2]
local new_end = tonumber(ARGV[FIRST + 3])

return run(function()
  local record = open_record_to_write()
  local now = tick_at_now()
  local block = look_at_one(name)
  refuse_quarantined(block)
  local mark, known = block.texts[2], block.texts[3]
  if record.incarnation ~= incarnation or block.fresh or known ~= epoch
      or mark ~= known_end or block.mark < record.floor then
    answer('fenced', known, mark)
  end
  local last = math.max(math.min(new_end, horizon_end(record, now)), block.mark)
  redis.call('ZADD', HWM_END, text(last), name)
  redis.call('ZREM', RELEASED, name)
  answer('renewed', text(last))
end)
