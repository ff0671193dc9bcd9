"""Results and exceptions. The extension module makes them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import NamedTuple, Optional, Tuple, Type

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Parts(NamedTuple):
    """The parts of an ID."""

    time: datetime
    """Start of the tick, in UTC. The ID may have been taken some seconds before or after."""
    node: int
    sequence: int
    """The number within tick and node."""


class Stats(NamedTuple):
    """Figures of a generator in this process. Counts are since it was opened."""

    level: int
    """IDs that are ready in the rings."""
    capacity: int
    """Slots in the rings."""
    threshold: int
    """Level below which the rings are filled."""
    issued: int
    """IDs handed out."""
    empties: int
    """Takes that found all rings empty."""
    failed: int
    """Takes that gave no ID."""
    retired: int
    """IDs dropped unissued, such as those given up by ``invalidate``."""
    borrowed: float
    """How far the last ID that was made lies ahead of the clock, in seconds."""
    borrow_limit: float
    """How far ahead IDs may lie, in seconds."""
    lease_end: Optional[datetime]
    """When the leases end; ``None`` without a lease."""


class Error(Exception):
    """Any failure of this package.

    ``retry_after`` is about how many seconds to wait before the call may succeed; ``None`` if
    waiting does not help, or if the time is unknown.
    """

    retry_after: Optional[float]

    def __init__(self, message: str, retry_after: Optional[float] = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> Tuple[Type[Error], Tuple[str, Optional[float]]]:
        return type(self), (str(self), self.retry_after)


class ConfigError(Error, ValueError):
    """An option is wrong, or does not fit the namespace. Nothing was created."""


class SecretError(Error):
    """A secret can't be read, is malformed, or is not the namespace's."""


class StoreError(Error):
    """The store or the data directory refuses, and waiting does not help."""


class NoLeaseError(Error):
    """No lease is in force. An open generator keeps asking for one: take again later."""


class BorrowLimitError(Error):
    """IDs were taken faster than the leases allow. Wait for ``retry_after``."""


class EmptyError(Error):
    """All rings are empty, and ``on_empty="error"``. Try again."""


class WaitTimeoutError(Error, TimeoutError):
    """The time to wait is over."""


class ClosedError(Error):
    """The generator was shut down."""


class ParseError(Error, ValueError):
    """The text is no ID, or has another prefix."""


class ForeignIdError(Error, ValueError):
    """The ID was not made with this layout and secret."""


class ResourceError(Error):
    """The operating system refused memory or a thread."""


for _class in (Parts, Stats, *Error.__subclasses__(), Error):
    _class.__module__ = "ringflake"
del _class


def make_parts(unix_ms: int, node: int, sequence: int) -> Parts:
    try:
        time = _EPOCH + timedelta(milliseconds=unix_ms)
    except OverflowError:
        raise ForeignIdError("the time of the ID lies after the year 9999") from None
    return Parts(time, node, sequence)


def make_stats(
    level: int,
    capacity: int,
    threshold: int,
    issued: int,
    empties: int,
    failed: int,
    retired: int,
    borrowed: float,
    borrow_limit: float,
    lease_end_unix_ms: int,
) -> Stats:
    lease_end = None
    if lease_end_unix_ms:
        lease_end = _EPOCH + timedelta(milliseconds=lease_end_unix_ms)
    return Stats(
        level, capacity, threshold, issued, empties, failed, retired, borrowed, borrow_limit, lease_end
    )
