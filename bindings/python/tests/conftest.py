"""What all tests share: a data directory for each test, and generators in it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any, Callable, Iterator

import pytest
import ringflake


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The data directory of the test, for its children as well."""
    path = str(tmp_path / "data")
    monkeypatch.setenv("RINGFLAKE_DATA_DIR", path)
    return path


@pytest.fixture
def local() -> Iterator[Callable[..., ringflake.Generator]]:
    """``ringflake.local`` on any file system; closes the generators after the test."""
    opened = []

    def make(name: str = "orders", **options: Any) -> ringflake.Generator:
        options.setdefault("best_effort", True)
        options.setdefault("borrow_limit", 1000.0)
        opened.append(ringflake.local(name, **options))
        return opened[-1]

    yield make
    for ids in opened:
        ids.shutdown(60)


@pytest.fixture
def ids(local: Callable[..., ringflake.Generator]) -> ringflake.Generator:
    return local()


STORE_OPTIONS = {
    "namespace": "orders",
    "plain": True,
    # One block.
    "layout": "30/5/29@2024-10-27T03:33:20Z/1s",
    "block_bits": 5,
    "borrow_limit": 100_000.0,
    "init_if_new": "new",
    "best_effort": True,
}


@pytest.fixture
def one_block(tmp_path: Any) -> Callable[..., ringflake.Generator]:
    """Opens a store with one block, which one generator at a time can have."""

    def make(**options: Any) -> ringflake.Generator:
        return ringflake.open(f"sqlite:{tmp_path / 'one.db'}", **{**STORE_OPTIONS, **options})

    return make


@pytest.fixture
def locked(tmp_path: Any) -> Iterator[Callable[[str], "subprocess.Popen[str]"]]:
    """Locks a file of SQLite by another process, until that is killed."""
    running = []

    def lock(path: str) -> "subprocess.Popen[str]":
        code = (
            "import sqlite3, sys, time; file = sqlite3.connect(sys.argv[1], isolation_level=None);"
            "file.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); time.sleep(1000)"
        )
        command = [sys.executable, "-c", code, path]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert running[-1].stdout and running[-1].stdout.readline() == "locked\n"
        return running[-1]

    yield lock
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def script(tmp_path: Any) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program in an interpreter of its own."""

    def run(text: str, *options: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text))
        return subprocess.run(
            [sys.executable, *options, str(path)],
            capture_output=True, text=True, timeout=120, env=dict(os.environ), **settings,
        )

    return run
