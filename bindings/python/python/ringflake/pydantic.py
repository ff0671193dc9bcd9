"""Pydantic 2: IDs that are ints in Python, and strings in JSON.

    class Order(BaseModel):
        id: Id = Field(default_factory=ids.take)
        customer: Annotated[int, IdText("customer")]

JSON numbers above 2**53 lose digits in JavaScript, so an ID is never a number in JSON: a number
is refused there, and written as its text. In Python an int is accepted, and a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Optional

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

from ringflake import _values, parse, to_text

__all__ = ["Id", "IdText"]


@dataclass(frozen=True)
class IdText:
    """Annotates an int as an ID whose JSON is its text, with this prefix if there is one."""

    prefix: Optional[str] = None

    def __post_init__(self) -> None:
        to_text(0, self.prefix)  # Raises if no ID can have this prefix.

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        start = "" if self.prefix is None else f"{self.prefix}_"
        text = core_schema.no_info_after_validator_function(
            self._from_text,
            core_schema.str_schema(strict=True, pattern=f"^{start}{_values.PATTERN}$"),
        )
        number = core_schema.int_schema(strict=True, ge=0, lt=1 << 64)
        return core_schema.json_or_python_schema(
            json_schema=text,
            python_schema=core_schema.union_schema([number, text]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                self._to_text, when_used="json", return_schema=core_schema.str_schema()
            ),
        )

    def _from_text(self, text: str) -> int:
        return parse(text, self.prefix)

    def _to_text(self, number: int) -> str:
        return to_text(number, self.prefix)


Id = Annotated[int, IdText()]
