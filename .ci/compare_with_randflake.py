"""Compares what `ringflake` says of its own IDs with what the Python package
`randflake` says: node and second, for IDs in a row.

    compare_with_randflake.py RINGFLAKE DIRECTORY COUNT
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from randflake import v2 as randflake

ringflake, directory, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
secret = directory / "secret"
data = ["--data-dir", str(directory / "data")]
# The directory for temporary files may lie in memory.
environment = os.environ | {"RINGFLAKE_BEST_EFFORT": "1"}


def run(*arguments, stdin=None):
    done = subprocess.run(
        [ringflake, *arguments, *data],
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return done.stdout


run("keygen", "--out", str(secret))
with_secret = ["--secret-file", str(secret)]
ids = run("generate", "-n", str(count), "--format", "i64", *with_secret)
inspected = run("inspect", "--input", "i64", "--format", "json", *with_secret, stdin=ids)

generator = randflake.Generator(
    randflake.Config(
        lease=randflake.Lease(node_id=1, start=1_800_000_000, end_exclusive=1_800_000_600),
        secret=bytes.fromhex(secret.read_text().strip()),
    )
)
lines = inspected.splitlines()
distinct = set()
for text, line in zip(ids.splitlines(), lines, strict=True):
    number = int(text)
    ours = json.loads(line)
    theirs = generator.inspect(number)
    assert ours["timestamp_unix_ms"] == theirs.timestamp * 1000, (text, ours, theirs)
    assert ours["node"] == theirs.node_id, (text, ours, theirs)
    assert ours["sequence"] == theirs.sequence, (text, ours, theirs)
    assert ours["id"] == randflake.encode_string(number), (text, ours)
    distinct.add(number)
assert len(distinct) == count, f"{count - len(distinct)} duplicates"
print(f"randflake {count} IDs agree on second, node, sequence and text, all distinct")
