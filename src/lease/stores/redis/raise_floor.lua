-- Raises the floor: 'raised'; 'skew'; 'invalid' for a tick that the layout lacks; or
-- 'far' for one above all that a lost grant can reach: StoreRecord::raise_floor.
--
-- Arguments: 'lost' for above all that a lost grant can reach, 'tick' for the tick
-- that follows, or 'any' for that one whatever the clocks show; and the caller's time.

local kind, tick = ARGV[FIRST], tonumber(ARGV[FIRST + 1])
local client_ms = tonumber(ARGV[FIRST + 2])

return run(function()
  local record = open_record_to_write()
  local over = floor_over_lost_grants(record, tick_at_now())
  if kind ~= 'any' and math.abs(now_ms - client_ms) > record.skew_ms then
    answer('skew')
  end
  local floor = over
  if kind ~= 'lost' then
    floor = tick
    if floor >= TICKS then
      answer('invalid')
    end
  end
  if kind == 'tick' and floor > math.max(over, record.floor) then
    answer('far')
  end
  record.floor = math.max(record.floor, floor)
  write_record(record)
  answer('raised')
end)
