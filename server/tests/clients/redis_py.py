"""redis-py against a server of IDs: what it answers, and that no ID comes twice."""

import sys
import threading

import redis
from redis.cache import CacheConfig

ADDRESS, SOCKET = sys.argv[1:]
HOST, PORT = ADDRESS.rsplit(":", 1)


def connections():
    """A client for each way to connect and each version of the protocol."""
    for protocol in (2, 3):
        yield redis.Redis(host=HOST, port=int(PORT), protocol=protocol, client_name="tests")
        yield redis.Redis(unix_socket_path=SOCKET, protocol=protocol, decode_responses=True)
    # The cache of the client is refused by servers that it does not know.
    yield redis.Redis(host=HOST, port=int(PORT), protocol=3, cache_config=CacheConfig())


def refused(kind, call):
    try:
        answer = call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no error, but {answer!r}")


def parts(client, number):
    """Of an ID: a map, or a list of its keys and values."""
    answer = client.execute_command("RINGFLAKE.INSPECT", "redis-py", number)
    if isinstance(answer, list):
        answer = dict(zip(answer[::2], answer[1::2]))
    name = lambda key: key.decode() if isinstance(key, bytes) else key
    return {name(key): value for key, value in answer.items()}


def ids_sent(client):
    return client.info("stats")["ids_sent"]


def take_all(client, ids):
    ids.append(client.incr("redis-py"))
    ids.append(int(client.lpop("redis-py")))
    ids.extend(int(text) for text in client.lpop("redis-py", 1_000))
    pipeline = client.pipeline(transaction=False)
    for _ in range(1_000):
        pipeline.incr("redis-py")
    ids.extend(pipeline.execute())
    texts = client.execute_command("RINGFLAKE.TAKE", "redis-py", 10, "FORMAT", "unsigned")
    # The same 64 bits, as a number that may be negative.
    ids.extend((int(text) + 2**63) % 2**64 - 2**63 for text in texts)


def main():
    ids, threads = [], []
    for client in connections():
        assert client.ping() is True
        assert client.echo("x") in (b"x", "x")
        assert client.info()["server_name"] == "ringflake"
        assert "no such" not in refused(redis.ResponseError, lambda: client.get("x"))
        assert "LPOP name count" in refused(redis.ResponseError, lambda: client.incr("redis-py", 5))
        # The default pipeline is a transaction.
        before = ids_sent(client)
        transaction = client.pipeline()
        transaction.incr("redis-py").lpop("redis-py", 5)
        first, rest = transaction.execute()
        assert isinstance(first, int) and len(rest) == 5
        assert ids_sent(client) == before + 6
        # One that is refused takes nothing, and the connection works as before.
        transaction = client.pipeline()
        transaction.incr("redis-py").execute_command("GET", "x")
        assert "unknown command" in refused(redis.ResponseError, transaction.execute)
        assert ids_sent(client) == before + 6
        assert isinstance(client.incr("redis-py"), int)
        # What clients ask on their own is no error.
        client.execute_command("SELECT", 1)
        client.execute_command("SELECT", 0)
        for _ in range(2):
            own = []
            ids.append(own)
            threads.append(threading.Thread(target=take_all, args=(client, own)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(own) == 2_012 for own in ids), [len(own) for own in ids]
    ids = [number for own in ids for number in own]
    assert len(set(ids)) == len(ids), "an ID came twice"
    client = next(connections())
    raws = set()
    for number in ids[::8]:
        of = parts(client, number)
        assert set(of) == {"tick", "unix_ms", "node", "sequence"}, of
        raws.add((of["tick"], of["node"], of["sequence"]))
    assert len(raws) == len(ids[::8])
    print(f"redis-py {redis.__version__}: {len(ids)} IDs, no two alike")


main()
