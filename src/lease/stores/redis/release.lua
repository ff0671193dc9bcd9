-- Notes that a grant's holder is done: 'released', 'quarantined', or 'fenced' with
-- the block's epoch and mark, if it has any.

local name, epoch = ARGV[FIRST], ARGV[FIRST + 1]

return run(function()
  open_record_to_write()
  local block = look_at_one(name)
  refuse_quarantined(block)
  local mark, known = block.texts[2], block.texts[3]
  if block.fresh or known ~= epoch then
    answer('fenced', known, mark)
  end
  redis.call('ZADD', RELEASED, mark, name)
  answer('released')
end)
