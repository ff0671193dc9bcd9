"""The same service as a Celery task, which answers into a list in Redis."""

import array
import os

import billiard.pool
import celery
import redis
import service

# Results that the master no longer reads hold up a reload for 30 seconds otherwise.
billiard.pool.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_LIMIT = 10

URL = os.environ["PREFORK_REDIS"]

app = celery.Celery(broker=f"redis+socket://{URL}")
app.conf.task_ignore_result = True
app.conf.worker_prefetch_multiplier = 1


@app.task(name="batch")
def batch(count):
    body = array.array("Q", [os.getpid()]) + service.batch(count)
    with redis.Redis(unix_socket_path=URL) as answers:
        answers.rpush("answers", body.tobytes())
