-- How many blocks were granted, how many of them are held, and what stands in the keys
-- of those that are quarantined: 'checked'.

return run(function()
  open_record()
  local now = tick_at_now()
  local granted, held, met = 0, 0, {}
  local seen = {}
  local function count(block)
    if block.sound then
      granted = granted + 1
      if block.mark > now and not block.released then
        held = held + 1
      end
    elseif not block.fresh then
      for _, stored in ipairs(block.texts) do
        met[#met + 1] = stored
      end
    end
    seen[block.name] = true
  end
  each_of(HWM_END, '-inf', '+inf', 100, count)

  -- What is kept of blocks that have lost their mark.
  local function count_lost(name)
    if not seen[name] then
      count(look_at_one(name))
    end
  end
  local epochs = redis.call('HGETALL', EPOCH)
  for i = 1, #epochs, 2 do
    count_lost(epochs[i])
  end
  for _, name in ipairs(redis.call('ZRANGE', RELEASED, 0, -1)) do
    count_lost(name)
  end
  answer('checked', text(granted), text(held), met)
end)
