"""Splitting a batch loses nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.batch import RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.split import slice_batch, split_batch
from support.batches import batches


@settings(max_examples=300, deadline=None)
@given(batches(8), st.integers(1, 200))
def test_the_pieces_hold_the_same_records_in_order(batch: RecordBatch, bytes_max: int) -> None:
    batch.place(base_offset=0, timestamp_us=1, log_epoch=0)
    offset = 0
    rows = []
    for piece in split_batch(batch, bytes_max):
        piece.place(base_offset=offset, timestamp_us=1, log_epoch=0)
        offset = piece.next_offset
        rows += list(piece.records())
    assert rows == list(batch.records())


def test_a_piece_is_as_large_as_the_limit_allows() -> None:
    batch = RecordBatch(10, VarColumn.uniform(bytes(1000), 100, 10), origin=1)
    assert [piece.count for piece in split_batch(batch, 450)] == [3, 3, 3, 1]
    assert [piece.count for piece in split_batch(batch, 50)] == [1] * 10
    assert [piece.count for piece in split_batch(batch, 1 << 20)] == [10]


def test_a_slice_keeps_the_stride() -> None:
    batch = RecordBatch(3, VarColumn.uniform(b"aabbcc", 2, 3), origin=1)
    piece = slice_batch(batch, 1, 3)
    assert (list(piece.values), piece.values.stride) == ([b"bb", b"cc"], 2)
