-- Makes the record: 'made', 'exists' or 'in_use'.
--
-- The fields come in the order of FIELDS; those for the floor and the
-- incarnation are decided here. After them come the fingerprints that no other
-- namespace may have.

return run(function()
  if redis.call('EXISTS', RECORD) == 1 then
    answer('exists')
  end
  if online < REPLICAS then
    answer('replicas')
  end
  for i = FIRST + #FIELDS + 1, #ARGV do
    refuse_second_use(ARGV[i])
  end
  local record = {}
  for i, field in ipairs(FIELDS) do
    record[field] = ARGV[FIRST + i]
    fields[i] = ARGV[FIRST + i]
  end
  record.horizon_ms = number('horizon_ms', record.horizon_ms)
  record.failover_ms = number('failover_ms', record.failover_ms)

  local now = tick_at_now()
  if ARGV[FIRST] == 'unused' then
    record.floor = 0
  elseif ARGV[FIRST] == 'new' then
    record.floor = now
  else
    record.floor = floor_over_lost_grants(record, now)
  end
  record.incarnation = incarnation
  for i, field in ipairs(FIELDS) do
    redis.call('HSET', RECORD, field, fields[i])
  end
  write_record(record)
  note_secret()
  answer('made')
end)
