"""The family of exceptions."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
import ringflake

CLASSES = [
    value
    for value in vars(ringflake).values()
    if isinstance(value, type) and issubclass(value, ringflake.Error)
]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_exception_has_retry_after_and_can_be_pickled(kind: type) -> None:
    assert kind.__name__ in ringflake.__all__ and kind.__module__ == "ringflake"
    error = pickle.loads(pickle.dumps(kind("no way", 1.5)))
    assert (type(error), str(error), error.retry_after) == (kind, "no way", 1.5)
    assert kind("no way").retry_after is None


def test_the_extension_raises_only_exceptions_that_exist() -> None:
    source = Path(__file__).parent.parent / "src" / "error.rs"
    names = set(re.findall(r'=> "(\w*Error)"', source.read_text()))
    assert names == {kind.__name__ for kind in CLASSES}


def test_messages_name_no_rust_items(data_dir: str) -> None:
    Path(data_dir).mkdir(mode=0o755)
    (Path(data_dir) / "orders.secret").write_text("0" * 32)
    (Path(data_dir) / "orders.secret").chmod(0o600)
    with pytest.raises(ringflake.SecretError) as caught:
        ringflake.local("orders", best_effort=True)
    assert "::" not in str(caught.value), caught.value
    assert "initialise a namespace here once" in str(caught.value)
