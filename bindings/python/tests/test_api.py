"""The methods of a generator."""

from __future__ import annotations

import copy
import pickle
import time
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any

import pytest
import ringflake


def test_take_returns_distinct_integers(ids: ringflake.Generator) -> None:
    taken = [ids.take() for _ in range(200_000)]
    assert all(type(an_id) is int and 0 <= an_id < 2**64 for an_id in taken)
    assert len(set(taken)) == 200_000


def test_a_million_ids_of_every_way_to_take_are_distinct(ids: ringflake.Generator) -> None:
    taken = ids.take_many(700_000)
    assert type(taken) is list and len(taken) == 700_000
    taken += [ids.take() for _ in range(100_000)]
    taken += islice(ids, 100_000)
    taken += [ringflake.parse(ids.take_text()) for _ in range(100_000)]
    assert len(set(taken)) == len(taken) == 1_000_000


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 65_536, 65_537, 131_073])
def test_take_many_returns_as_many_as_asked_for(ids: ringflake.Generator, count: int) -> None:
    taken = ids.take_many(count)
    assert len(taken) == len(set(taken)) == count
    assert 0 not in taken


def test_take_many_rejects_a_negative_or_impossible_count(ids: ringflake.Generator) -> None:
    with pytest.raises(ValueError, match="`count` is negative"):
        ids.take_many(-1)
    with pytest.raises(MemoryError):
        ids.take_many(2**62)
    with pytest.raises(TypeError):
        ids.take_many("7")  # type: ignore[arg-type]


def test_text_reads_back_with_the_same_prefix(ids: ringflake.Generator) -> None:
    assert ringflake.to_text(12_037_510_499_902_272_547) == "ae3ek0mnbbd13"
    assert ringflake.parse("ae3ek0mnbbd13") == 12_037_510_499_902_272_547
    assert ringflake.to_text(12_037_510_499_902_272_547, "line_item") == "line_item_ae3ek0mnbbd13"
    text = ids.take_text("order")
    assert text.startswith("order_")
    an_id = ringflake.parse(text, "order")
    assert ringflake.to_text(an_id, "order") == text
    assert ids.inspect(an_id).time.year >= 2024


@pytest.mark.parametrize(
    ("text", "prefix", "message"),
    [
        ("", None, "^."),
        ("user_1", None, "position"),
        ("1", "user", 'must start with "user_"'),
        ("order_1", "user", 'the prefix is "order", but "user" is expected'),
        ("user_", "user", "^."),
        ("user_W", "user", "^."),
    ],
)
def test_parse_rejects_other_texts(text: str, prefix: Any, message: str) -> None:
    with pytest.raises(ringflake.ParseError, match=message) as caught:
        ringflake.parse(text, prefix)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("prefix", ["", "User", "2nd", "a_", "_a", "a-b", "é", "a" * 64])
def test_a_prefix_that_is_no_prefix_is_rejected(ids: ringflake.Generator, prefix: str) -> None:
    for call in (lambda: ids.take_text(prefix), lambda: ringflake.parse("a_1", prefix)):
        with pytest.raises(ringflake.ConfigError, match="`prefix` is wrong"):
            call()


def test_inspect_returns_time_node_and_sequence(ids: ringflake.Generator) -> None:
    parts = ids.inspect(ids.take())
    assert parts.time.tzinfo is timezone.utc
    assert abs(parts.time - datetime.now(timezone.utc)) < timedelta(seconds=1000)
    assert 0 <= parts.node < 2**17 and 0 <= parts.sequence < 2**17
    assert parts == (parts.time, parts.node, parts.sequence)
    assert repr(parts).startswith("Parts(time=datetime.datetime(")


@pytest.mark.parametrize("number", [-1, 2**64])
def test_inspect_rejects_what_has_no_64_bits(ids: ringflake.Generator, number: int) -> None:
    with pytest.raises(ringflake.ForeignIdError, match="below 2\\*\\*64"):
        ids.inspect(number)
    with pytest.raises(TypeError):
        ids.inspect("1")  # type: ignore[arg-type]


def test_inspect_rejects_an_id_of_another_width(local: Any) -> None:
    with pytest.raises(ringflake.ForeignIdError):
        local("positive", width="positive").inspect(2**64 - 1)


def test_ready_after_opening_and_not_after_closing(ids: ringflake.Generator) -> None:
    ids.wait_ready(0)
    ids.wait_ready(timeout=None)
    assert ids.ready
    ids.shutdown(60)
    assert not ids.ready


def test_stats_count_takes(ids: ringflake.Generator) -> None:
    ids.take_many(5_000)
    stats = ids.stats()
    assert stats.issued >= 5_000
    assert stats.capacity == 65_536 and stats.threshold == 32_768
    assert stats.failed == 0
    assert stats.lease_end is not None and stats.lease_end > datetime.now(timezone.utc)
    assert stats.borrow_limit == 1000.0 >= stats.borrowed >= 0.0


def test_invalidate_gives_up_leases_and_gets_others(ids: ringflake.Generator) -> None:
    before = {ids.inspect(an_id).node for an_id in ids.take_many(1000)}
    ids.invalidate()
    assert ids.stats().retired > 0
    ids.wait_ready(timeout=60)
    deadline = time.monotonic() + 60
    while True:
        try:
            after = {ids.inspect(an_id).node for an_id in ids.take_many(1000)}
            break
        except ringflake.NoLeaseError:
            assert time.monotonic() < deadline
    assert not before & after


def test_shutdown_releases_leases_and_every_later_call_fails(ids: ringflake.Generator) -> None:
    assert ids.shutdown(timeout=60) is True
    assert ids.shutdown() is True
    for call in (
        ids.take,
        ids.take_text,
        lambda: ids.take_many(1),
        lambda: ids.take_into(bytearray(8)),
        lambda: next(ids),
        lambda: ids.inspect(1),
        ids.stats,
        ids.wait_ready,
        ids.invalidate,
        lambda: pickle.dumps(ids),
    ):
        with pytest.raises((ringflake.ClosedError, TypeError)) as caught:
            call()
        if not isinstance(caught.value, TypeError):
            assert str(caught.value) == "the generator was shut down: make another one"
    assert repr(ids) == '<ringflake.Generator "orders", closed>'


def test_with_closes_the_generator(local: Any) -> None:
    with local() as ids:
        ids.take()
    with pytest.raises(ringflake.ClosedError):
        ids.take()
    with pytest.raises(KeyError), local("other") as ids:
        raise KeyError
    with pytest.raises(ringflake.ClosedError):
        ids.take()


def test_a_pickled_generator_opens_with_leases_of_its_own(ids: ringflake.Generator) -> None:
    nodes = {ids.inspect(an_id).node for an_id in ids.take_many(10_000)}
    for copied in (pickle.loads(pickle.dumps(ids)), copy.deepcopy(ids)):
        with copied:
            assert {copied.inspect(an_id).node for an_id in copied.take_many(10_000)} - nodes
            taken = set(ids.take_many(50_000)) | set(copied.take_many(50_000))
            assert len(taken) == 100_000


def test_repr_and_class_name(ids: ringflake.Generator) -> None:
    assert repr(ids) == '<ringflake.Generator "orders">'
    assert repr(type(ids)) == "<class 'ringflake.Generator'>"
    with pytest.raises(TypeError):
        ringflake.Generator()


def test_everything_public_is_documented() -> None:
    for name in ringflake.__all__:
        assert name.startswith("__") or getattr(ringflake, name).__doc__, name
    for name in dir(ringflake.Generator):
        assert name.startswith("__") or getattr(ringflake.Generator, name).__doc__, name
