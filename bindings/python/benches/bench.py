"""What an ID costs in Python, beside other generators, and in a traced service.

    python bench.py [--rounds 101] [--seconds 0.002]

Contestants run in turns. "CPU" is the median of the processor time of all threads of the process,
ringflake's producer among them. Where other processes share the cores, the median on the clock
measures them: so "clock" is what the fastest tenth of all slices took at most. The IDs of each
contestant are compared with each other: the run fails if one comes twice.
"""

import argparse
import array
import gc
import hashlib
import itertools
import json
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid

import fastuuid
import numpy
import ringflake
import snowflake
import sonyflake_turbo
import ulid
import uuid_utils

BATCH = 1_000
BUFFER = 1_000_000


def seconds_of(function, calls):
    """Clock and processor time of these calls, with the loop: 5 to 10 ns a turn."""
    turns = itertools.repeat(None, calls)
    clock, processor = time.perf_counter(), time.process_time()
    for _ in turns:
        function()
    return time.perf_counter() - clock, time.process_time() - processor


def fastest_tenth(times):
    """What the fastest tenth took at most."""
    return sorted(times)[len(times) // 10]


def in_turns(functions, rounds, seconds):
    """The seconds on the clock and of the processor that one call of each takes."""
    calls = {name: 1 for name in functions}
    for name, function in functions.items():
        while (took := seconds_of(function, calls[name])[0]) < seconds / 4:
            calls[name] *= 2
        calls[name] = max(1, round(calls[name] * seconds / took))
    samples = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            samples[name].append(seconds_of(function, calls[name]))
    return {
        name: (fastest_tenth(clock) / calls[name], statistics.median(processor) / calls[name])
        for name, (clock, processor) in ((name, zip(*taken)) for name, taken in samples.items())
    }


def check_unique(name, make, count=200_000):
    made = [make() for _ in range(count)]
    # snowflake-id returns None when the sequence of a millisecond is used up.
    made = [an_id for an_id in made if an_id is not None]
    if len(set(made)) != len(made):
        sys.exit(f"{name}: an ID came twice")


def single(ids, rounds, seconds):
    """One ID a call."""
    contestants = {
        "`ringflake` `take()`": ids.take,
        "`ringflake` `take_text()`": ids.take_text,
        "`uuid.uuid4()`": uuid.uuid4,
        "`str(uuid.uuid4())`": lambda: str(uuid.uuid4()),
        "`uuid_utils.uuid4()`": uuid_utils.uuid4,
        "`uuid_utils.uuid7()`": uuid_utils.uuid7,
        "`fastuuid.uuid4()`": fastuuid.uuid4,
        "`python-ulid` `ULID()`": ulid.ULID,
        "`snowflake-id`": snowflake.SnowflakeGenerator(1).__next__,
        # With one machine ID it sleeps above 25,600 IDs a second.
        "`sonyflake-turbo`, 256 machine IDs": sonyflake_turbo.SonyFlake(*range(256)).__next__,
    }
    for name, make in contestants.items():
        check_unique(name, make)
    times = in_turns(contestants, rounds, seconds)
    reference = times["`uuid.uuid4()`"][1]
    print("| one ID a call | CPU, ns | times `uuid4` | clock, ns |\n|---|---:|---:|---:|")
    for name, (clock, processor) in times.items():
        ratio = reference / processor
        print(f"| {name} | {processor * 1e9:,.0f} | {ratio:.1f} | {clock * 1e9:,.0f} |")
    print()


def many(ids, rounds, seconds):
    """Many IDs a call."""
    numbers = numpy.zeros(BUFFER, dtype=numpy.uint64)
    ids.take_into(numbers)
    if len(numpy.unique(numbers)) != BUFFER:
        sys.exit("take_into: an ID came twice")
    small = array.array("Q", bytes(8 * BATCH))
    contestants = {
        f"`ringflake` `take_many({BATCH})`": (lambda: ids.take_many(BATCH), BATCH),
        f"`ringflake` `take_into`, array of {BATCH:,}": (lambda: ids.take_into(small), BATCH),
        f"`ringflake` `take_into`, numpy array of {BUFFER:,}": (lambda: ids.take_into(numbers), BUFFER),
        f"`fastuuid.uuid4_bulk({BATCH})`": (lambda: fastuuid.uuid4_bulk(BATCH), BATCH),
        f"`numpy` random integers, {BUFFER:,}": (
            lambda generator=numpy.random.default_rng(): generator.integers(
                0, 2**64 - 1, BUFFER, dtype=numpy.uint64, endpoint=True
            ),
            BUFFER,
        ),
    }
    times = in_turns({name: call for name, (call, _) in contestants.items()}, rounds, seconds)
    print("| many IDs a call | CPU, ns an ID | M IDs/s, CPU | M IDs/s, clock |\n|---|---:|---:|---:|")
    for name, taken in times.items():
        clock, processor = (took / contestants[name][1] for took in taken)
        speeds = f"{1e-6 / processor:,.0f} | {1e-6 / clock:,.0f}"
        print(f"| {name} | {processor * 1e9:,.2f} | {speeds} |")
    print()


REQUEST = json.dumps(
    {
        "customer": "c-1042",
        "lines": [{"sku": f"sku-{n}", "count": n % 3 + 1, "cents": 100 + n} for n in range(8)],
    }
).encode()


CUSTOMERS = sqlite3.connect(":memory:")
CUSTOMERS.execute("CREATE TABLE customers (name TEXT PRIMARY KEY, discount INTEGER)")
CUSTOMERS.executemany("INSERT INTO customers VALUES (?, ?)", ((f"c-{n}", n % 30) for n in range(2_000)))


def span_work():
    """Decodes an order, reads its customer from SQLite, adds it up, and signs the answer."""
    order = json.loads(REQUEST)
    query = "SELECT discount FROM customers WHERE name = ?"
    (discount,) = CUSTOMERS.execute(query, (order["customer"],)).fetchone()
    cents = sum(line["count"] * line["cents"] for line in order["lines"]) * (100 - discount) // 100
    body = json.dumps({"customer": order["customer"], "cents": cents}, sort_keys=True)
    return body, hashlib.sha256(body.encode()).hexdigest()


def spans(ids, rounds, count=50):
    """Spans with a trace, a segment and a span ID, as SkyWalking's agents record them."""
    makers = {
        "`str(uuid.uuid4())`": lambda: str(uuid.uuid4()),
        "`uuid.uuid4().hex`": lambda: uuid.uuid4().hex,
        "`ringflake` `take_text()`": ids.take_text,
        "`ringflake` `take()`": ids.take,
    }

    def bare():
        start = time.process_time()
        for _ in range(count):
            {"work": span_work()}
        return (time.process_time() - start) / count

    def traced(make):
        start = time.process_time()
        for _ in range(count):
            {"trace": make(), "segment": make(), "span": make(), "work": span_work()}
        return (time.process_time() - start) / count

    samples = {name: [] for name in makers}
    without = []
    for _ in range(rounds):
        without.append(bare())
        for name, make in makers.items():
            samples[name].append(traced(make))
    alone = statistics.median(without)
    print("| three IDs a span | CPU, us a span | share of the IDs |\n|---|---:|---:|")
    print(f"| none, its work alone | {alone * 1e6:.1f} | |")
    for name, values in samples.items():
        took = statistics.median(values)
        print(f"| {name} | {took * 1e6:.1f} | {1 - alone / took:.1%} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--seconds", type=float, default=0.002, help="of each contestant in a round")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        ids = ringflake.local("bench", data_dir=directory, best_effort=True)
        gc.disable()
        single(ids, arguments.rounds, arguments.seconds)
        many(ids, arguments.rounds, arguments.seconds)
        spans(ids, 10 * arguments.rounds)
        ids.shutdown()


if __name__ == "__main__":
    main()
