-- How many blocks were granted, and how many of them are held: 'checked'.

return run(function()
  open_record()
  local after = '(' .. text(tick_at_now())
  local held = redis.call('ZCOUNT', HWM_END, after, '+inf')
    - redis.call('ZCOUNT', RELEASED, after, '+inf')
  answer('checked', text(redis.call('ZCARD', HWM_END)), text(held))
end)
