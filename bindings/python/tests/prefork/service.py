"""A service whose generator is made at import, before a server forks its workers."""

import array
import os

import ringflake

ids = ringflake.local("prefork", data_dir=os.environ["PREFORK_DATA_DIR"], best_effort=True)


def batch(count):
    """This many IDs as 64-bit integers, from each way to take them."""
    single = count // 4
    numbers = array.array("Q", (ids.take() for _ in range(single)))
    numbers.extend(ids.take_many(single))
    rest = array.array("Q", bytes(8 * (count - len(numbers))))
    ids.take_into(rest)
    return numbers + rest


def take_in_master():
    """Records IDs that the master takes from the same generator as its workers."""
    with open(os.environ["PREFORK_MASTER_IDS"], "ab") as file:
        file.write(batch(1_000).tobytes())


take_in_master()


def application(environ, start_response):
    """Answers with the worker's process ID and the IDs that the query asks for."""
    body = array.array("Q", [os.getpid()]) + batch(int(environ["QUERY_STRING"]))
    start_response("200 OK", [("Content-Length", str(len(body) * body.itemsize))])
    return [body.tobytes()]
