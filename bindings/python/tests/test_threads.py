"""Many threads, signals, and the garbage collector."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, List

import pytest
import ringflake
from conftest import STORE_OPTIONS

Script = Callable[..., "subprocess.CompletedProcess[str]"]


def test_threads_take_distinct_ids(ids: ringflake.Generator) -> None:
    def work(number: int) -> List[int]:
        if number % 2:
            return ids.take_many(125_000)
        return [ids.take() for _ in range(125_000)]

    with ThreadPoolExecutor(8) as pool:
        taken = [an_id for part in pool.map(work, range(8)) for an_id in part]
    assert len(set(taken)) == len(taken) == 1_000_000


def test_shutdown_waits_for_calls_in_other_threads(local: Any) -> None:
    for _ in range(5):
        ids, started = local(), threading.Barrier(5)
        unexpected: List[BaseException] = []

        def work() -> None:
            started.wait()
            try:
                while True:
                    ids.take_many(3000)
            except ringflake.ClosedError:
                pass
            except BaseException as error:
                unexpected.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        started.wait()
        assert ids.shutdown(60) is True
        for thread in threads:
            thread.join()
        assert not unexpected


def test_wait_ready_releases_the_gil_and_ends_when_closed(local: Any, tmp_path: Any) -> None:
    ids = local(wait=0)
    ids.wait_ready(60)
    ended = threading.Event()

    def work() -> None:
        with pytest.raises(ringflake.ClosedError):
            while True:
                ids.wait_ready()
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    ids.shutdown(60)
    thread.join()
    assert ended.is_set()


def test_dropping_a_generator_releases_its_leases(one_block: Any) -> None:
    ids = one_block()
    with pytest.raises(ringflake.NoLeaseError):
        one_block(wait=0.1)
    gone = weakref.ref(ids)
    del ids
    assert gone() is None
    one_block(wait=60).shutdown(60)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(
    "call",
    ["ids.wait_ready()", "ids.wait_ready(timeout=1000)", "ringflake.open(url, wait=1000, **options)"],
)
def test_ctrl_c_interrupts_what_waits(script: Script, one_block: Any, tmp_path: Any, call: str) -> None:
    one_block().shutdown(60)
    with one_block():
        ended = script(
            f"""
            import os, signal, threading, ringflake
            url, options = "sqlite:{tmp_path}/one.db", {STORE_OPTIONS!r}
            ids = ringflake.open(url, wait=0, **options)
            # Ignored in a background job.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
                {call}
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            """
        )
    assert (ended.stdout, ended.stderr) == ("interrupted\n", "")


def test_a_signal_handler_may_take(local: Any) -> None:
    ids, taken = local(), []
    previous = signal.signal(signal.SIGALRM, lambda *_: taken.append(ids.take()))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        while len(taken) < 20:
            taken += ids.take_many(200_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert len(set(taken)) == len(taken)
