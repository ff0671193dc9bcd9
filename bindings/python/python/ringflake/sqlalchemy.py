"""SQLAlchemy 2: types for columns of IDs.

    ids = ringflake.local("shop")

    class Order(Base):
        __tablename__ = "orders"
        id: Mapped[int] = mapped_column(Id, primary_key=True, default=ids.take)

    class Customer(Base):
        __tablename__ = "customers"
        id: Mapped[str] = mapped_column(
            IdText("customer"), primary_key=True, default=lambda: ids.take_text("customer")
        )

The column is a BIGINT, which is signed: an ID of 2**63 or more is stored as the negative number
with the same 64 bits, and comes back as it was. With `width="positive"` both are the same number,
so that SQL written by hand orders and compares as Python does.
"""

from __future__ import annotations

from typing import Any, Optional, Union

from sqlalchemy import BigInteger
from sqlalchemy.types import TypeDecorator

from ringflake import _values, to_text

__all__ = ["Id", "IdText"]


class Id(TypeDecorator[int]):
    """An ID that is an int in Python, from 0 to 2**64 - 1. Binds a text, too."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: Optional[Union[int, str]], dialect: Any) -> Optional[int]:
        return None if value is None else _values.to_signed(_values.to_number(value))

    def process_result_value(self, value: Optional[int], dialect: Any) -> Optional[int]:
        return None if value is None else _values.from_signed(value)


class IdText(TypeDecorator[str]):
    """An ID that is a text in Python, like `order_3ip9iuvinajdb`. Binds a number, too.

    A text with another prefix raises ValueError.
    """

    impl = BigInteger
    cache_ok = True

    def __init__(self, prefix: Optional[str] = None) -> None:
        super().__init__()
        to_text(0, prefix)  # Raises if no ID can have this prefix.
        self.prefix = prefix

    def process_bind_param(self, value: Optional[Union[int, str]], dialect: Any) -> Optional[int]:
        if value is None:
            return None
        return _values.to_signed(_values.to_number(value, self.prefix))

    def process_result_value(self, value: Optional[int], dialect: Any) -> Optional[str]:
        return None if value is None else to_text(_values.from_signed(value), self.prefix)
