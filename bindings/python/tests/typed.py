"""A program that uses every part of the interface; mypy checks its types."""

from array import array
from datetime import datetime
from pathlib import Path
from typing import Iterator, List, Optional

import ringflake

ids: ringflake.Generator = ringflake.local(
    "orders", data_dir=Path("data"), width="positive", capacity=8192, threshold=50, wait=1.5
)
other = ringflake.open(
    "sqlite:store.db", namespace="orders", secret_file="a.key", init_if_new="new", timeout=5
)
one: int = ids.take()
many: List[int] = ids.take_many(10)
ids.take_into(array("q", [0] * 10))
ids.take_into(memoryview(bytearray(80)).cast("Q"))
text: str = ids.take_text("order")
read: int = ringflake.parse(text, "order")
again: str = ringflake.to_text(read)
parts: ringflake.Parts = ids.inspect(read)
moment: datetime = parts.time
total: int = parts.node + parts.sequence
iterator: Iterator[int] = iter(ids)
is_ready: bool = ids.ready
released: bool = ids.shutdown(timeout=1)
end: Optional[datetime] = other.stats().lease_end
with other as inside:
    inside.wait_ready(timeout=0.5)
    inside.invalidate()
try:
    next(ids)
except ringflake.BorrowLimitError as error:
    wait: Optional[float] = error.retry_after
