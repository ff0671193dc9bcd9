-- Writes the record in the present format: 'upgraded', 'current', 'in_use', or
-- 'changed' where it is not as the caller has read it.
--
-- Arguments: the format and the fingerprint that were read.

return run(function()
  local format, former = ARGV[FIRST], ARGV[FIRST + 1]
  if online < REPLICAS then
    answer('replicas')
  end
  fields = redis.call('HMGET', RECORD, unpack(FIELDS))
  local record = {}
  for i, field in ipairs(FIELDS) do
    record[field] = fields[i]
  end
  for _, field in ipairs({ 'name', 'layout', 'block_bits' }) do
    if record[field] ~= NAMESPACE[field] then
      answer('changed')
    end
  end
  if record.format == NAMESPACE.format and record.fingerprint == NAMESPACE.fingerprint then
    answer('current')
  end
  if record.format ~= format or record.fingerprint ~= former then
    answer('changed')
  end
  refuse_second_use(NAMESPACE.fingerprint)
  redis.call('HSET', RECORD, 'format', NAMESPACE.format, 'fingerprint', NAMESPACE.fingerprint)
  note_secret()
  answer('upgraded')
end)
