"""Types: of the package, of a program that uses it, and of the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
HERE = Path(__file__).parent


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=300,
    )


def test_the_stubs_are_those_of_the_extension() -> None:
    ended = run("mypy.stubtest", "ringflake._ringflake")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_program_is_checked_strictly(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text((HERE / "typed.py").read_text())
    ended = run("mypy", "--strict", "--no-incremental", str(program))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    program.write_text(program.read_text() + "\nids.take_text(7)\nringflake.local('a', width='wide')\n")
    ended = run("mypy", "--strict", "--no-incremental", str(program))
    assert ended.stdout.count(": error:") == 2, ended.stdout
