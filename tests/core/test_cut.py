"""Cutting stored batches agrees with counting records one by one."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.cut import cut, first_at_time

Row = tuple[int, int, bytes, bytes | None, bytes | None]


def stored(base: int, rows: list[tuple[bytes, bytes | None, bytes | None, int]]) -> RecordBatch:
    """A placed batch; each row's number is the gap of offsets before it."""
    keys = [row[1] for row in rows]
    headers = [row[2] for row in rows]
    batch = RecordBatch(
        len(rows),
        VarColumn.of([row[0] for row in rows]),
        origin=Origin.CURSUS,
        keys=VarColumn.of(keys) if any(key is not None for key in keys) else None,
        headers=VarColumn.of(headers) if any(item is not None for item in headers) else None,
    )
    batch.place(base_offset=base, timestamp_us=1, log_epoch=0)
    deltas = []
    at = -1
    for index, row in enumerate(rows):
        at += 1 + (row[3] if index else 0)
        deltas.append(at)
    if deltas != list(range(len(rows))):
        batch.offset_deltas = array("I", deltas)
        batch.last_offset_delta = deltas[-1]
    return batch


optional = st.none() | st.binary(max_size=5)
row = st.tuples(st.binary(max_size=9), optional, optional, st.integers(0, 1))
logs = st.lists(st.lists(row, min_size=1, max_size=8), max_size=5)


@settings(max_examples=400, deadline=None)
@given(
    logs,
    st.integers(0, 45),
    st.integers(0, 45),
    st.integers(1, 30),
    st.integers(0, 120),
    st.integers(0, 5),
    st.booleans(),
    st.booleans(),
)
def test_a_cut_takes_exactly_what_counting_takes(
    log: list[list[tuple[bytes, bytes | None, bytes | None, int]]],
    offset: int,
    high_watermark: int,
    records_max: int,
    bytes_max: int,
    overhead: int,
    count_all: bool,
    is_first: bool,
) -> None:
    batches: list[RecordBatch] = []
    for rows in log:
        batches.append(stored(batches[-1].next_offset if batches else 0, rows))
    expected = []
    left, room = records_max, bytes_max
    for one in batches:
        for record in one.records():
            if record.offset < offset or record.offset >= high_watermark:
                continue
            size = overhead + len(record.value or b"")
            if count_all:
                size += len(record.key or b"") + len(record.headers or b"")
            if not left or (size > room and not (is_first and not expected)):
                left = 0
                break
            expected.append(record.offset)
            left -= 1
            room -= size
        if not left:
            break
    result = cut(
        [one for one in batches if one.next_offset > offset],
        offset=offset,
        high_watermark=high_watermark,
        records_max=records_max,
        bytes_max=bytes_max,
        record_overhead=overhead,
        count_all=count_all,
        is_first=is_first,
    )
    taken = [
        piece.batch.offset_at(index)
        for piece in result.slices
        for index in range(piece.first, piece.last)
    ]
    assert taken == expected
    assert all(piece.record_count > 0 for piece in result.slices)
    assert result.next_offset >= (taken[-1] + 1 if taken else offset)
    assert result.next_offset <= max(high_watermark, offset)


@settings(max_examples=100, deadline=None)
@given(logs.filter(bool), st.integers(1, 5), st.integers(1, 30))
def test_reading_on_from_each_cut_gives_every_record_once(
    log: list[list[tuple[bytes, bytes | None, bytes | None, int]]],
    records_max: int,
    bytes_max: int,
) -> None:
    batches: list[RecordBatch] = []
    for rows in log:
        batches.append(stored(batches[-1].next_offset if batches else 0, rows))
    end = batches[-1].next_offset
    offset = 0
    seen: list[int] = []
    while offset < end:
        result = cut(
            [one for one in batches if one.next_offset > offset],
            offset=offset,
            high_watermark=end,
            records_max=records_max,
            bytes_max=bytes_max,
        )
        assert result.next_offset > offset
        offset = result.next_offset
        for piece in result.slices:
            seen += [piece.batch.offset_at(index) for index in range(piece.first, piece.last)]
    assert seen == [record.offset for one in batches for record in one.records()]


def test_a_record_larger_than_the_limit_comes_alone() -> None:
    one = stored(0, [(b"x" * 50, None, None, 0), (b"y", None, None, 0)])
    result = cut([one], offset=0, high_watermark=2, records_max=9, bytes_max=10)
    assert result.slices == [(one, 0, 1)]
    assert result.next_offset == 1
    assert result.is_full


@pytest.mark.parametrize(
    ("time", "offset"), [(0, 5), (10, 5), (11, 6), (20, 6), (21, 7), (30, 7), (31, 8)]
)
def test_the_first_record_at_a_time_is_found_inside_a_batch(time: int, offset: int) -> None:
    one = stored(5, [(b"", None, None, 0)] * 3)
    one.timestamps = array("q", (10, 20, 30))
    assert first_at_time(one, time) == offset


@pytest.mark.parametrize(("time", "offset"), [(0, 5), (1, 5), (2, 8)])
def test_a_batch_of_one_time_is_taken_whole_or_passed_over(time: int, offset: int) -> None:
    assert first_at_time(stored(5, [(b"", None, None, 0)] * 3), time) == offset
