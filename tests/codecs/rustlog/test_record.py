"""Rendered batches say exactly what the batch holds."""

from __future__ import annotations

import random
from array import array

import orjson
import pytest
from construct import GreedyRange

from dragoman.codecs.rendering import RenderingCache
from dragoman.codecs.rustlog.record import (
    BINARY,
    JSON,
    json_bytes,
    render_binary,
    render_json,
    rendered,
)
from dragoman.codecs.rustlog.wire import BLOB
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import BatchSlice
from dragoman.core.column import VarColumn

DICE = random.Random(7)
VALUES = {
    "equal": [DICE.randbytes(100) for _ in range(30)],
    "mixed": [DICE.randbytes(DICE.randrange(300)) for _ in range(30)],
    "equal sum": [b"ab", b"a", b"abc", b"ab"],
    "empty": [b"", b"", b""],
    "one": [bytes(range(256))],
    "one empty": [b""],
}


def batch_of(values: list[bytes | None], base_offset: int = 1000) -> RecordBatch:
    batch = RecordBatch(len(values), VarColumn.of(values), origin=Origin.NONE)
    batch.place(base_offset=base_offset, timestamp_us=0, log_epoch=0)
    return batch


def ranges(count: int) -> list[tuple[int, int]]:
    return [(0, count), (0, 1), (count - 1, count), (count // 3, max(count // 2, count // 3 + 1))]


@pytest.mark.parametrize("name", VALUES)
def test_every_slice_of_the_binary_form_is_what_the_declaration_reads(name: str) -> None:
    values = VALUES[name]
    rendering = render_binary(batch_of(list(values)), 0, len(values))
    for first, last in ranges(len(values)):
        data = bytes(rendering.slice(first, last, len(values)))
        assert list(GreedyRange(BLOB).parse(data)) == values[first:last]
        alone = render_binary(batch_of(list(values)), first, last)
        assert bytes(alone.data) == data


@pytest.mark.parametrize("name", VALUES)
def test_every_slice_of_the_json_form_is_compact_json(name: str) -> None:
    values = VALUES[name]
    rendering = render_json(batch_of(list(values)), 0, len(values))
    for first, last in ranges(len(values)):
        data = bytes(rendering.slice(first, last, len(values)))
        expected = [
            {"offset": 1000 + index, "payload": list(values[index])} for index in range(first, last)
        ]
        assert b"[" + data[:-1] + b"]" == orjson.dumps(expected)
        assert bytes(render_json(batch_of(list(values)), first, last).data) == data


def test_the_length_of_numbers_is_known_without_writing_them() -> None:
    for values in VALUES.values():
        for value in values:
            assert json_bytes(value) == sum(len(str(byte)) + 1 for byte in value)


def test_absent_values_are_empty_and_counted() -> None:
    batch = batch_of([b"a", None, b"", None])
    assert render_binary(batch, 0, 4).inexact == 2
    assert render_json(batch, 0, 4).inexact == 2
    assert list(GreedyRange(BLOB).parse(bytes(render_binary(batch, 0, 4).data))) == [
        b"a",
        b"",
        b"",
        b"",
    ]


def test_json_names_the_real_offsets_of_a_batch_with_gaps() -> None:
    batch = batch_of([b"a", b"b", b"c"])
    batch.offset_deltas = array("I", (0, 4, 9))
    text = b"[" + bytes(render_json(batch, 0, 3).data)[:-1] + b"]"
    assert [item["offset"] for item in orjson.loads(text)] == [1000, 1004, 1009]


@pytest.mark.parametrize("form", [BINARY, JSON])
def test_a_batch_is_rendered_once_and_sliced_from_what_is_kept(form: str) -> None:
    cache = RenderingCache()
    batch = batch_of([b"aa", b"b", b"cc"])
    first = rendered(cache, BatchSlice(batch, 0, 3), form)
    assert rendered(cache, BatchSlice(batch, 0, 3), form) is first
    kept = cache.get(batch, form)
    assert kept is not None
    assert bytes(rendered(cache, BatchSlice(batch, 1, 2), form)) == bytes(kept.slice(1, 2, 3))


def test_a_huge_batch_is_not_rendered_for_the_sake_of_one_record() -> None:
    cache = RenderingCache()
    batch = batch_of([bytes(3 << 20), bytes(3 << 20), b"x"])
    assert bytes(rendered(cache, BatchSlice(batch, 2, 3), BINARY)) == b"\0\0\0\1x"
    assert cache.bytes_held == 0
