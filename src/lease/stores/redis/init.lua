-- Makes the record: 'made', 'exists', 'in_use', 'skew', or 'traces' where a program's
-- claim of no history is refuted by what is left of the namespace, 'secret' or 'blocks'.
--
-- Arguments: the history; '1' if traces refute it; the caller's time; the fields in the
-- order of FIELDS, of which the floor and the incarnation are decided here; and the
-- fingerprints that no other namespace may have.

local history, is_doubtful = ARGV[FIRST], ARGV[FIRST + 1] == '1'
local client_ms = tonumber(ARGV[FIRST + 2])
-- The place before the first field.
local BEFORE = FIRST + 2

-- Ends in 'traces' where something is left of a lost record.
local function refuse_traces()
  if NAMESPACE.fingerprint ~= PLAIN
      and redis.call('HGET', SECRETS, NAMESPACE.fingerprint) then
    answer('traces', 'secret')
  end
  for _, key in ipairs({ HWM_END, RELEASED, EPOCH, GRANTED, HOST, INSTANCE }) do
    if redis.call('EXISTS', key) == 1 then
      answer('traces', 'blocks')
    end
  end
end

return run(function()
  if redis.call('EXISTS', RECORD) == 1 then
    answer('exists')
  end
  if online < REPLICAS then
    answer('replicas')
  end
  for i = BEFORE + #FIELDS + 1, #ARGV do
    refuse_second_use(ARGV[i])
  end
  if is_doubtful then
    refuse_traces()
  end
  local record = {}
  for i, field in ipairs(FIELDS) do
    record[field] = ARGV[BEFORE + i]
    fields[i] = ARGV[BEFORE + i]
  end
  record.horizon_ms = number('horizon_ms', record.horizon_ms)
  record.failover_ms = number('failover_ms', record.failover_ms)
  record.skew_ms = number('skew_ms', record.skew_ms)

  local now = tick_at_now()
  if math.abs(now_ms - client_ms) > record.skew_ms then
    answer('skew')
  end
  if history == 'unused' then
    record.floor = 0
  elseif history == 'new' then
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
