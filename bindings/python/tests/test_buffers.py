"""IDs in buffers of other objects."""

from __future__ import annotations

import ctypes
import mmap
from array import array
from typing import Any

import pytest
import ringflake


def test_array_and_memoryview_are_filled(ids: ringflake.Generator) -> None:
    buffer = array("Q", bytes(8 * 200_000))
    ids.take_into(buffer)
    assert len(set(buffer)) == 200_000 and 0 not in buffer
    before = buffer.tolist()
    ids.take_into(memoryview(buffer)[10:20])
    after = buffer.tolist()
    assert before[:10] == after[:10] and before[20:] == after[20:]
    assert not set(before[10:20]) & set(after[10:20])


def test_ids_in_a_buffer_are_those_of_the_generator(ids: ringflake.Generator) -> None:
    buffer = array("Q", bytes(8 * 1000))
    ids.take_into(buffer)
    times = [ids.inspect(an_id).time for an_id in buffer]
    assert max(times).year == min(times).year


def test_numpy_arrays_are_filled(ids: ringflake.Generator) -> None:
    numpy = pytest.importorskip("numpy")
    buffer = numpy.zeros((1000, 1000), dtype=numpy.uint64)
    ids.take_into(buffer)
    assert len(numpy.unique(buffer)) == 1_000_000
    ids.take_into(numpy.zeros(4, dtype="<u8"))
    for wrong in (numpy.zeros(4, dtype=">u8"), numpy.zeros(4), numpy.zeros(4, dtype="u4")):
        with pytest.raises(TypeError, match="64-bit integers"):
            ids.take_into(wrong)
    with pytest.raises(ValueError, match="not contiguous"):
        ids.take_into(buffer[:, ::2])
    # Any address is allowed.
    unaligned = numpy.frombuffer(bytearray(8 * 9), dtype="u1")[1:65].view("<u8")
    ids.take_into(unaligned)
    assert len(set(unaligned.tolist())) == 8


def test_ctypes_arrays_are_filled(ids: ringflake.Generator) -> None:
    buffer = (ctypes.c_uint64 * 100)()
    ids.take_into(buffer)
    assert len(set(buffer)) == 100


def test_shared_memory_is_filled(ids: ringflake.Generator) -> None:
    with mmap.mmap(-1, 8 * 100) as memory:
        view = memoryview(memory).cast("Q")
        ids.take_into(view)
        assert len(set(view)) == 100
        view.release()


def test_an_empty_buffer_takes_nothing(ids: ringflake.Generator) -> None:
    ids.take_into(array("Q"))
    ids.take_into(memoryview(array("Q", [1]))[:0])


@pytest.mark.parametrize(
    ("options", "is_allowed"),
    [
        ({}, False),
        ({"plain": True}, False),
        ({"width": "positive"}, True),
        ({"width": "js_safe"}, True),
        ({"plain": True, "layout": "positive"}, True),
    ],
)
def test_signed_buffers_need_ids_below_2_to_the_63(local: Any, options: Any, is_allowed: bool) -> None:
    ids, buffer = local(**options), array("q", bytes(8 * 1000))
    if is_allowed:
        ids.take_into(buffer)
        assert min(buffer) > 0 and len(set(buffer)) == 1000
    else:
        with pytest.raises(ringflake.ConfigError, match='width="positive"'):
            ids.take_into(buffer)
        assert set(buffer) == {0}


@pytest.mark.parametrize("buffer", [b"12345678", memoryview(array("Q", [1])).toreadonly()])
def test_a_read_only_buffer_is_rejected(ids: ringflake.Generator, buffer: Any) -> None:
    with pytest.raises(TypeError, match="read-only|64-bit integers"):
        ids.take_into(buffer)


@pytest.mark.parametrize("buffer", [bytearray(8), array("d", [1]), array("I", [1, 2]), [1, 2], None])
def test_other_objects_are_rejected(ids: ringflake.Generator, buffer: Any) -> None:
    with pytest.raises(TypeError):
        ids.take_into(buffer)


def test_the_buffer_is_released(ids: ringflake.Generator) -> None:
    buffer = array("Q", bytes(80))
    ids.take_into(buffer)
    # Fails with BufferError while an export is left.
    buffer.append(1)
