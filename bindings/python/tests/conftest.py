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
