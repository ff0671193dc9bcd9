"""Unique 64-bit IDs from lock-free ring buffers.

    ids = ringflake.local("orders")
    ids.take()

Up to 4,096 processes, with any number of threads, may do this at once, be killed and start
again: no ID comes twice. In a forked child a generator opens another one for itself at its
first use.
"""

from __future__ import annotations

import os
from typing import Literal, Optional, Union

from ._ringflake import Generator, __version__, open_now, parse, to_text
from ._types import (
    BorrowLimitError,
    ClosedError,
    ConfigError,
    EmptyError,
    Error,
    ForeignIdError,
    NoLeaseError,
    ParseError,
    Parts,
    ResourceError,
    SecretError,
    Stats,
    StoreError,
    WaitTimeoutError,
)

__all__ = [
    "BorrowLimitError",
    "ClosedError",
    "ConfigError",
    "EmptyError",
    "Error",
    "ForeignIdError",
    "Generator",
    "NoLeaseError",
    "ParseError",
    "Parts",
    "ResourceError",
    "SecretError",
    "Stats",
    "StoreError",
    "WaitTimeoutError",
    "__version__",
    "local",
    "open",
    "parse",
    "to_text",
]

_Path = Union[str, "os.PathLike[str]"]


def local(
    name: str,
    /,
    *,
    data_dir: Optional[_Path] = None,
    width: Literal["full", "positive", "js_safe"] = "full",
    layout: Optional[str] = None,
    plain: bool = False,
    capacity: Optional[int] = None,
    threshold: Optional[int] = None,
    borrow_limit: Optional[float] = None,
    on_empty: Literal["generate", "error"] = "generate",
    blocks: Optional[int] = None,
    lease_duration: Optional[float] = None,
    wait: Optional[float] = None,
    best_effort: bool = False,
) -> Generator:
    """Open a generator on the ID space ``name`` of this user on this machine.

    The first call makes its directory, leases and secret. Blocks until there is a lease, for
    ``wait`` seconds at most. The table of options is in the package's README.
    """
    return open_now(locals())


def open(
    url: str,
    /,
    *,
    namespace: str,
    secret_file: Optional[_Path] = None,
    block_bits: Optional[int] = None,
    init_if_new: Optional[Literal["new", "unknown"]] = None,
    timeout: Optional[float] = None,
    width: Literal["full", "positive", "js_safe"] = "full",
    layout: Optional[str] = None,
    plain: bool = False,
    capacity: Optional[int] = None,
    threshold: Optional[int] = None,
    borrow_limit: Optional[float] = None,
    on_empty: Literal["generate", "error"] = "generate",
    blocks: Optional[int] = None,
    lease_duration: Optional[float] = None,
    wait: Optional[float] = None,
    best_effort: bool = False,
) -> Generator:
    """Open a generator on a namespace of a store that several machines share.

    All programs of a namespace need the same layout, width and secret. Blocks until there is a
    lease, for ``wait`` seconds at most. The table of options is in the package's README.
    """
    return open_now(locals())
