-- All that is kept: 'listed' with the marks, those released, the epochs, the
-- times of the grants, the hosts and the instances, each as pairs.

return run(function()
  open_record()
  answer('listed',
    redis.call('ZRANGE', HWM_END, 0, -1, 'WITHSCORES'),
    redis.call('ZRANGE', RELEASED, 0, -1, 'WITHSCORES'),
    redis.call('HGETALL', EPOCH),
    redis.call('HGETALL', GRANTED),
    redis.call('HGETALL', HOST),
    redis.call('HGETALL', INSTANCE))
end)
