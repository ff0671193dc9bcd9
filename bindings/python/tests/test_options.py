"""Each keyword argument has an effect, and its wrong values are rejected in its own words."""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import ringflake


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """Opens namespaces of a store in a file."""
    secret = tmp_path / "secret.key"
    secret.write_text("0123456789abcdef0123456789abcdef")
    secret.chmod(0o600)
    opened = []

    def make(namespace: str = "orders", **options: Any) -> ringflake.Generator:
        options.setdefault("best_effort", True)
        options.setdefault("init_if_new", "new")
        if not options.get("plain"):
            options.setdefault("secret_file", secret)
        url = f"sqlite:{tmp_path / 'store.db'}"
        opened.append(ringflake.open(url, namespace=namespace, **options))
        return opened[-1]

    yield make
    for ids in opened:
        ids.shutdown(60)


def highest(ids: ringflake.Generator) -> int:
    return max(ids.take_many(10_000))


def test_width_limits_the_ids(local: Any) -> None:
    assert 2**63 < highest(local("full", width="full")) < 2**64
    assert 2**62 < highest(local("positive", width="positive")) < 2**63
    assert 2**52 < highest(local("js", width="js_safe")) < 2**53


def test_layout_divides_the_ids(local: Any) -> None:
    ids = local(plain=True, layout="40/10/4@2024-10-27T03:33:20Z/1s")
    an_id = ids.take()
    parts = ids.inspect(an_id)
    assert (an_id >> 4) % 2**10 == parts.node and an_id % 2**4 == parts.sequence
    with pytest.raises(ringflake.ConfigError, match="the layout has 64 bits, and `width=\"positive\"` needs"):
        local("other", layout="randflake", width="positive")


def test_plain_ids_show_their_time(local: Any) -> None:
    ids = local(plain=True)
    an_id = ids.take()
    parts = ids.inspect(an_id)
    assert an_id >> 34 == int(parts.time.timestamp()) - 1_730_000_000
    assert (an_id >> 17) % 2**17 == parts.node and an_id % 2**17 == parts.sequence


def test_capacity_and_threshold_are_those_of_the_rings(local: Any) -> None:
    stats = local(capacity=8192, threshold=25).stats()
    assert (stats.capacity, stats.threshold) == (8192, 2048)


def test_borrow_limit_ends_a_burst(local: Any) -> None:
    ids = local(plain=True, layout="40/10/4@2024-10-27T03:33:20Z/1s", borrow_limit=1.0)
    assert ids.stats().borrow_limit == 1.0
    with pytest.raises(ringflake.BorrowLimitError, match="`borrow_limit`") as caught:
        ids.take_many(1_000_000)
    assert caught.value.retry_after is not None and 0 < caught.value.retry_after < 10


def test_blocks_are_leased_at_once(one_block: Any) -> None:
    two_blocks = {"layout": "29/6/29@2024-10-27T03:33:20Z/1s", "wait": 60}
    with one_block(blocks=1, **two_blocks), one_block(blocks=1, **two_blocks):
        pass
    with one_block(blocks=2, **two_blocks):
        with pytest.raises(ringflake.NoLeaseError, match="all 2 are held") as caught:
            one_block(blocks=1, **{**two_blocks, "wait": 0.2})
        assert caught.value.retry_after is not None and caught.value.retry_after > 1


def test_lease_duration_is_how_far_leases_reach(local: Any) -> None:
    def reach(**options: Any) -> float:
        end = local(**options).stats().lease_end
        return (end - datetime.now(timezone.utc)).total_seconds()

    assert reach(lease_duration=30.0) <= 31 < 60 < reach()


def test_on_empty_error_fails_in_place_of_making_ids(local: Any) -> None:
    local(capacity=1, threshold=1).take_many(1_000_000)
    with pytest.raises(ringflake.EmptyError, match="raise `capacity`"):
        local("other", on_empty="error", capacity=1, threshold=1).take_many(1_000_000)


def test_data_dir_holds_leases_and_secret(local: Any, tmp_path: Path, data_dir: str) -> None:
    for directory in (tmp_path / "path", str(tmp_path / "text")):
        local(data_dir=directory).take()
        assert (Path(directory) / "leases.db").exists()
    assert not os.path.exists(data_dir)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no memory file system")
def test_best_effort_accepts_a_directory_in_memory(local: Any) -> None:
    import tempfile

    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        with pytest.raises(ringflake.StoreError, match="best_effort=True"):
            local(data_dir=directory, best_effort=False)
        local(data_dir=directory, best_effort=True).take()


def test_open_needs_an_initialised_namespace_or_init_if_new(store: Any) -> None:
    advice = 'orders.*else, once the clock is right, to "unknown"'
    with pytest.raises(ringflake.StoreError, match=advice):
        store(init_if_new=None, wait=0.1)
    store(init_if_new="new").take()
    store(init_if_new=None).take()


def test_generators_on_one_store_share_no_id(store: Any) -> None:
    one, other = store(), store()
    taken = one.take_many(100_000) + other.take_many(100_000)
    assert len(set(taken)) == 200_000
    with pytest.raises(ringflake.SecretError):
        store("invoices")


def test_a_store_needs_a_secret_or_plain(store: Any, tmp_path: Path) -> None:
    with pytest.raises(ringflake.ConfigError, match="needs `secret_file`"):
        store(secret_file=None)
    with pytest.raises(ringflake.ConfigError, match="leave out `plain` or `secret_file`"):
        store(plain=True, secret_file=tmp_path / "secret.key")
    with pytest.raises(ringflake.SecretError, match="missing.key"):
        store(secret_file=tmp_path / "missing.key")
    store("plain", plain=True).take()


def test_block_bits_are_the_nodes_of_a_block(store: Any) -> None:
    ids = store(plain=True, block_bits=0, capacity=1024, borrow_limit=1000.0)
    assert len({ids.inspect(an_id).node for an_id in ids.take_many(500_000)}) == 1


def test_wait_and_timeout_limit_opening(store: Any, locked: Any, tmp_path: Path) -> None:
    store().shutdown(60)
    process = locked(str(tmp_path / "store.db"))
    start = time.monotonic()
    with pytest.raises(ringflake.NoLeaseError, match="no lease was granted within .*`wait`") as caught:
        store(wait=0.2, timeout=0.1, init_if_new=None)
    assert time.monotonic() - start < 10
    assert caught.value.retry_after == 1.0
    ids = store(wait=0, timeout=0.1, init_if_new=None)
    assert not ids.ready
    with pytest.raises(ringflake.NoLeaseError):
        ids.take()
    with pytest.raises(ringflake.WaitTimeoutError, match="no lease was granted within 0.1 s") as timed_out:
        ids.wait_ready(timeout=0.1)
    assert isinstance(timed_out.value, TimeoutError)
    process.kill()
    process.wait()
    ids.wait_ready(timeout=60)
    ids.take()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": "wide"}, '`width="wide"` is wrong: give one of "full", "positive", "js_safe"'),
        ({"on_empty": "wait"}, 'give one of "generate", "error"'),
        ({"layout": "nonsense"}, "`layout=nonsense` is wrong"),
        ({"capacity": 0}, "`capacity=0` is wrong: give 1 to"),
        ({"capacity": 2**70}, "`capacity` is wrong: the number is out of range"),
        ({"capacity": 1000}, "power of two"),
        ({"threshold": 101}, "`threshold=101` is wrong: give 1 to 100"),
        ({"blocks": 257}, "`blocks=257` is wrong: give 1 to 256"),
        ({"wait": -1.0}, "`wait=-1` is wrong: give seconds, 0 or more"),
        ({"borrow_limit": float("nan")}, "`borrow_limit=NaN` is wrong"),
        ({"lease_duration": 1.0}, "lease"),
    ],
)
def test_a_wrong_value_is_rejected_and_named(local: Any, data_dir: str, options: Any, message: str) -> None:
    with pytest.raises(ringflake.ConfigError) as caught:
        local(**options)
    assert message in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert not os.path.exists(os.path.join(data_dir, "leases.db"))


@pytest.mark.parametrize(
    "options", [{"capacity": "many"}, {"wait": "long"}, {"plain": 3}, {"data_dir": 3}, {"width": 1}]
)
def test_a_wrong_type_is_rejected_and_named(local: Any, options: Any) -> None:
    with pytest.raises(TypeError, match=f"`{next(iter(options))}` is wrong"):
        local(**options)


def test_unknown_options_are_rejected(local: Any) -> None:
    with pytest.raises(TypeError, match="secret_file"):
        local(secret_file="x")
    with pytest.raises(TypeError, match="namespace"):
        ringflake.open("sqlite:x")  # type: ignore[call-arg]


@pytest.mark.parametrize("url", ["", "orders", "ftp://user:hunter2@host", "postgres://u:hunter2@h/d?x=y"])
def test_a_wrong_url_is_rejected_without_its_password(store: Any, url: str) -> None:
    with pytest.raises(ringflake.ConfigError) as caught:
        ringflake.open(url, namespace="orders", plain=True)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgres", "mysql", "redis", "etcd"])
def test_a_server_that_is_away_is_no_lease_yet(scheme: str) -> None:
    url = f"{scheme}://ids:hunter2@localhost:1" + ("/1" if scheme != "etcd" else "")
    try:
        ringflake.open(url, namespace="orders", plain=True, wait=0.2)
    except ringflake.NoLeaseError as error:
        # It says how long it has waited, which on a busy machine is longer.
        assert "no lease was granted within " in str(error) and error.retry_after is not None
        assert "hunter2" not in str(error)
    except ringflake.ConfigError as error:
        assert f"built without the {scheme} store" in str(error)
    else:
        pytest.fail("there is a server")


def test_another_width_of_a_namespace_is_rejected_in_words_of_python(local: Any) -> None:
    local(width="full")
    with pytest.raises(ringflake.ConfigError, match='was made with `width="full"`'):
        local(width="js_safe")
