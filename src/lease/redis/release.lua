-- Notes that a grant's holder is done: 'released', or 'fenced' with the block's
-- epoch and mark, if it has any.

local name, epoch = ARGV[FIRST], ARGV[FIRST + 1]

return run(function()
  open_record_to_write()
  local mark = redis.call('ZSCORE', HWM_END, name) or ''
  local known = redis.call('HGET', EPOCH, name) or ''
  if mark == '' or known ~= epoch then
    answer('fenced', known, mark)
  end
  redis.call('ZADD', RELEASED, text(number('hwm_end', mark)), name)
  answer('released')
end)
