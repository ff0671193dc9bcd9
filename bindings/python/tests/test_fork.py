"""Generators in forked children, and in other processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from array import array
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Callable, List

import pytest
import ringflake

if not hasattr(os, "fork"):
    pytest.skip("no fork", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

Script = Callable[..., "subprocess.CompletedProcess[str]"]


def in_child(work: Callable[[], List[int]]) -> Callable[[], List[int]]:
    """Forks; the child sends what `work` returns. Returns a function that waits for it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with open(writer, "wb") as file:
                file.write(array("Q", work()).tobytes())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(writer)

    def wait() -> List[int]:
        with open(reader, "rb") as file:
            taken = array("Q", file.read())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        return taken.tolist()

    return wait


def test_children_and_parent_share_no_id(ids: ringflake.Generator) -> None:
    taken = ids.take_many(100_000)

    def one_by_one() -> List[int]:
        return [ids.take() for _ in range(100_000)]

    def grandchild() -> List[int]:
        mine = ids.take_many(100_000)
        return mine + in_child(one_by_one)()

    waits = [
        in_child(one_by_one),
        in_child(lambda: ids.take_many(100_000)),
        in_child(lambda: [ringflake.parse(ids.take_text()) for _ in range(100_000)]),
        in_child(grandchild),
        # Forked before the child has used it.
        in_child(lambda: in_child(one_by_one)()),
    ]
    taken += ids.take_many(100_000)
    for wait in waits:
        taken += wait()
    taken += ids.take_many(200_000)
    assert len(set(taken)) == len(taken) == 1_000_000


@pytest.mark.parametrize(
    "use",
    [
        "take",
        "take_text",
        "stats",
        "wait_ready",
        "invalidate",
        "__next__",
    ],
)
def test_first_use_in_a_child_opens(ids: ringflake.Generator, use: str) -> None:
    before = set(ids.take_many(1000))

    def work() -> List[int]:
        getattr(ids, use)()
        ids.wait_ready(60)
        return ids.take_many(1000)

    assert not before & set(in_child(work)())


def test_ready_in_a_child_opens(ids: ringflake.Generator) -> None:
    assert in_child(lambda: [ids.ready, ids.ready])() == [1, 1]


def test_inspect_in_a_child_needs_no_lease(ids: ringflake.Generator, data_dir: str) -> None:
    an_id = ids.take()
    os.rename(data_dir, data_dir + ".away")
    try:
        assert in_child(lambda: [ids.inspect(an_id).node])() == [ids.inspect(an_id).node]
    finally:
        os.rename(data_dir + ".away", data_dir)


def test_shutdown_in_a_child_leaves_the_parent_alone(ids: ringflake.Generator) -> None:
    def work() -> List[int]:
        assert ids.shutdown(60) is True
        with pytest.raises(ringflake.ClosedError):
            ids.take()
        return []

    in_child(work)()
    node = ids.inspect(ids.take()).node // 32
    assert {ids.inspect(an_id).node // 32 for an_id in ids.take_many(100_000)} == {node}


def test_a_child_of_a_closed_generator_is_closed(ids: ringflake.Generator) -> None:
    ids.shutdown(60)

    def work() -> List[int]:
        with pytest.raises(ringflake.ClosedError):
            ids.take()
        return [7]

    assert in_child(work)() == [7]


def test_dropping_in_a_child_leaves_the_parent_alone(local: Any) -> None:
    ids = [local()]

    def work() -> List[int]:
        ids.clear()
        return [7]

    assert in_child(work)() == [7]
    assert len(set(ids[0].take_many(200_000))) == 200_000


def test_threads_of_a_child_open_once(ids: ringflake.Generator) -> None:
    ids.take()

    def work() -> List[int]:
        taken: List[List[int]] = [[] for _ in range(8)]
        start = threading.Barrier(8)

        def take(number: int) -> None:
            start.wait()
            taken[number] = ids.take_many(20_000)

        threads = [threading.Thread(target=take, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        every = [an_id for part in taken for an_id in part]
        assert len(set(every)) == len(every) == 160_000
        # One block: one generator.
        return [len({ids.inspect(an_id).node // 32 for an_id in every})]

    assert in_child(work)() == [1]


def test_forks_while_other_threads_take_and_open(local: Any) -> None:
    ids, done = local(), threading.Event()
    failed: List[BaseException] = []

    def take() -> None:
        while not done.is_set():
            ids.take_many(5000)

    def reopen() -> None:
        # In SQLite for most of the time.
        try:
            while not done.is_set():
                local("other").shutdown(60)
        except BaseException as error:
            failed.append(error)

    def work() -> List[int]:
        try:
            return ids.take_many(1000)
        except ringflake.Error as error:
            assert "forked while another thread used SQLite" in str(error)
            return []

    threads = [threading.Thread(target=use) for use in (take, take, reopen)]
    for thread in threads:
        thread.start()
    try:
        taken: List[int] = []
        for _ in range(40):
            start = time.monotonic()
            wait = in_child(work)
            # A fork waits two seconds for an operation of SQLite to end.
            has_waited = time.monotonic() - start >= 2
            part = wait()
            assert part or has_waited, "a child was refused whose fork did not wait"
            taken += part
            if len(taken) == 20_000:
                break
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert len(set(taken)) == len(taken) == 20_000
    assert not failed


def test_a_fork_in_a_signal_handler_repeats_no_id(script: Script) -> None:
    """The handler runs in the middle of `take_many`, and both sides return from it."""
    ended = script(
        """
        import os, signal, sys, warnings, ringflake
        warnings.simplefilter("ignore")
        ids = ringflake.local("orders", best_effort=True, borrow_limit=1000.0)
        child, taking = None, False
        def fork(*_):
            global child
            if not taking:
                # On a busy machine it can come before the first take.
                signal.setitimer(signal.ITIMER_REAL, 0.001)
            elif child is None:
                child = os.fork()
        signal.signal(signal.SIGALRM, fork)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while child is None:
            # Only the list that the handler interrupts counts: those before it are the parent's.
            taking = True
            taken = ids.take_many(400_000)
            taking = False
        if child == 0:
            with open("child", "w") as file:
                file.write("\\n".join(map(str, taken)))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with open("child") as file:
            theirs = {int(line) for line in file}
        assert len(theirs) == len(set(taken)) == 400_000
        print("repeated:", len(theirs & set(taken)))
        """,
        cwd=os.path.dirname(os.environ["RINGFLAKE_DATA_DIR"]),
    )
    assert (ended.stdout, ended.stderr) == ("repeated: 0\n", "")


def test_a_child_that_ends_as_a_program_does_says_nothing(script: Script) -> None:
    ended = script(
        """
        import os, sys, warnings, ringflake
        warnings.simplefilter("ignore")
        ids = ringflake.local("orders", best_effort=True)
        ids.take()
        for used in (True, False):
            if os.fork() == 0:
                if used:
                    ids.take()
                sys.exit(0)
            assert os.wait()[1] == 0
        ids.take()
        """
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


# --- multiprocessing ------------------------------------------------------------------

shared: Any = None


def take_shared(count: int) -> List[int]:
    ids: List[int] = shared.take_many(count)
    return ids


def take_given(ids: ringflake.Generator) -> List[int]:
    return ids.take_many(50_000)


def share(ids: ringflake.Generator) -> None:
    global shared
    shared = ids


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_pool_takes_distinct_ids(ids: ringflake.Generator, method: str) -> None:
    taken = ids.take_many(50_000)
    context = multiprocessing.get_context(method)
    with context.Pool(3, initializer=share, initargs=(ids,)) as pool:
        for part in pool.map(take_shared, [50_000] * 9, chunksize=1):
            taken += part
        # As an argument: pickled for each call.
        for part in pool.map(take_given, [ids] * 2, chunksize=1):
            taken += part
    taken += ids.take_many(400_000)
    assert len(set(taken)) == len(taken) == 1_000_000


def test_a_pool_inherits_a_generator_made_before(ids: ringflake.Generator) -> None:
    share(ids)
    taken = ids.take_many(10_000)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        for part in pool.map(take_shared, [10_000] * 8):
            taken += part
    assert len(set(taken)) == len(taken) == 90_000


def test_a_program_with_every_method_says_nothing(script: Script) -> None:
    ended = script(
        """
        import multiprocessing, ringflake
        ids = ringflake.local("orders", best_effort=True)
        def work(queue):
            queue.put(ids.take())
        if __name__ == "__main__":
            taken = [ids.take()]
            for method in ("fork", "forkserver", "spawn"):
                context = multiprocessing.get_context(method)
                queue = context.SimpleQueue()
                process = context.Process(target=work, args=[queue])
                process.start()
                taken.append(queue.get())
                process.join()
                assert process.exitcode == 0
            print(len(set(taken)))
        """,
    )
    assert (ended.stdout, ended.stderr) == ("4\n", "")
