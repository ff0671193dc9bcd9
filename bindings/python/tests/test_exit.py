"""The end of the interpreter, and what else happens to modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from conftest import STORE_OPTIONS

Script = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    "work",
    [
        "ids.take()",
        "ids.take_many(10_000)",
        "ids.take_into(memoryview(bytearray(8 * 10_000)).cast('Q'))",
        "ids.take_text('order')",
        "ids.wait_ready()",
        "next(ids)",
        "ringflake.local('other', best_effort=True).shutdown()",
    ],
)
@pytest.mark.parametrize("end", ["", "ids.shutdown()", "del ids", "sys.exit(0)"])
def test_daemon_threads_may_take_until_the_end(script: Script, work: str, end: str) -> None:
    ended = script(
        f"""
        import sys, threading, ringflake
        ids = ringflake.local("orders", best_effort=True, borrow_limit=1000.0)
        started = threading.Barrier(5)
        def forever(ids):
            {work}
            started.wait()
            try:
                while True:
                    {work}
            except ringflake.ClosedError:
                pass
        for _ in range(4):
            threading.Thread(target=forever, args=[ids], daemon=True).start()
        started.wait()
        {end}
        """
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_leases_are_released_at_the_end(script: Script, tmp_path: Path) -> None:
    """Fails with NoLeaseError if the program before it still holds the only block."""
    program = f"""
        import ringflake
        ids = ringflake.open("sqlite:{tmp_path}/one.db", wait=60, **{STORE_OPTIONS!r})
        print(ids.take() > 0)
        """
    for _ in range(3):
        ended = script(program)
        assert (ended.stdout, ended.stderr) == ("True\n", "")


def test_atexit_functions_may_take(script: Script) -> None:
    ended = script(
        """
        import atexit, ringflake
        ids = ringflake.local("orders", best_effort=True)
        atexit.register(lambda: print(ids.take() > 0))
        """
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


def test_the_module_can_be_imported_again(script: Script) -> None:
    ended = script(
        """
        import importlib, os, sys, ringflake
        first = ringflake.local("orders", best_effort=True)
        importlib.reload(ringflake)
        for name in [name for name in sys.modules if name.startswith("ringflake")]:
            del sys.modules[name]
        import ringflake
        second = ringflake.local("orders", best_effort=True)
        taken = first.take_many(1000) + second.take_many(1000)
        print(len(set(taken)), type(first) is type(second))
        try:
            ringflake.parse("?")
        except ringflake.Error:
            print("caught")
        """
    )
    assert (ended.stdout, ended.stderr) == ("2000 True\ncaught\n", "")


def test_a_subinterpreter_is_refused_in_words(script: Script) -> None:
    ended = script(
        """
        import ringflake
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        code = "try: import ringflake" "\\n" "except ImportError as error: print(error, flush=True)"
        number = interpreters.create()
        interpreters.run_string(number, code)
        print(ringflake.local("orders", best_effort=True).take() > 0)
        """
    )
    # From Python 3.12 on, Python itself refuses.
    ours = "ringflake can't be used in a subinterpreter"
    theirs = "ringflake._ringflake does not support loading in subinterpreters"
    assert ours in ended.stdout or theirs in ended.stdout, ended
    assert ended.stdout.endswith("True\n") and not ended.stderr, ended


@pytest.mark.skipif(sys.platform == "win32", reason="no /proc")
def test_a_subprocess_starts_with_a_fresh_import(script: Script) -> None:
    ended = script(
        """
        import subprocess, sys, ringflake
        ids = ringflake.local("orders", best_effort=True)
        code = "import ringflake; print(ringflake.local('orders', best_effort=True).take())"
        other = int(subprocess.check_output([sys.executable, "-c", code]))
        print(other != ids.take())
        """
    )
    assert (ended.stdout, ended.stderr) == ("True\n", "")
