"""IDs in the types of other packages: as numbers, texts and signed columns."""

from __future__ import annotations

from typing import Optional, Union

from ringflake import parse

# Matches a text without its prefix. `parse` also checks that the number has 64 bits.
PATTERN = "(0|[1-9a-v][0-9a-v]{0,12})"

_SIGN = 1 << 63
_END = 1 << 64


def to_number(value: Union[int, str], prefix: Optional[str] = None) -> int:
    """The number of an ID that is a number or a text with this prefix."""
    if isinstance(value, str):
        return parse(value, prefix)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"an ID must be an int or a str, got {type(value).__name__}")
    if not 0 <= value < _END:
        raise ValueError("an ID must be 0 to 2**64 - 1")
    return value


def to_signed(number: int) -> int:
    """The number with the same 64 bits in a signed column."""
    return number - ((number & _SIGN) << 1)


def from_signed(number: int) -> int:
    """The ID whose 64 bits a signed column holds."""
    return number & (_END - 1)
