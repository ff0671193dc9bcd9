-- Raises the floor: 'raised', or 'invalid' for a tick that the layout lacks. The
-- tick is a number, or 'lost' for one above all that a lost grant can reach.

return run(function()
  local record = open_record_to_write()
  local floor = floor_over_lost_grants(record, tick_at_now())
  if ARGV[FIRST] ~= 'lost' then
    floor = tonumber(ARGV[FIRST])
    if floor >= TICKS then
      answer('invalid')
    end
  end
  record.floor = math.max(record.floor, floor)
  write_record(record)
  answer('raised')
end)
