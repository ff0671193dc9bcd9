"""redis-py's cluster and Sentinel clients against a server that announces its address."""

import sys

import redis
from redis.cluster import RedisCluster
from redis.sentinel import Sentinel

HOST, PORT = sys.argv[1].rsplit(":", 1)


def main():
    ids = set()
    for protocol in (2, 3):
        cluster = RedisCluster(host=HOST, port=int(PORT), protocol=protocol)
        ids.update(cluster.incr("app:cluster") for _ in range(1_000))
        ids.update(int(text) for text in cluster.lpop("app:cluster", 1_000))
        pipeline = cluster.pipeline()
        for _ in range(100):
            pipeline.incr("app:cluster")
        ids.update(pipeline.execute())

    sentinel = Sentinel([(HOST, int(PORT))])
    assert sentinel.discover_master("mymaster") == (HOST, int(PORT))
    primary = sentinel.master_for("mymaster", redis.Redis)
    ids.update(primary.incr("app:cluster") for _ in range(1_000))
    assert len(ids) == 5_200, len(ids)
    print("redis-py: cluster and Sentinel, 5,200 IDs, no two alike")


main()
