"""Splitting a batch that is too large for the log into several that are not."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from dragoman.core.batch import RecordBatch
from dragoman.core.column import VarColumn

if TYPE_CHECKING:
    from dragoman.core.column import Buffer, Int32s, Int64s


def split_batch(batch: RecordBatch, bytes_max: int) -> list[RecordBatch]:
    """Returns batches with the same records in order, each of about `bytes_max` at most; a single
    record that is larger has a batch of its own. The batch has not been placed yet."""
    pieces = []
    first = 0
    size = 0
    columns = [column for column in (batch.values, batch.keys, batch.headers) if column is not None]
    fixed = 4 * len(columns) + 16 * (batch.ids is not None) + 32
    for index in range(batch.count):
        record = fixed
        for column in columns:
            record += column.offsets[index + 1] - column.offsets[index]
        if index > first and size + record > bytes_max:
            pieces.append(slice_batch(batch, first, index))
            first, size = index, 0
        size += record
    pieces.append(slice_batch(batch, first, batch.count))
    return pieces


def slice_batch(batch: RecordBatch, first: int, last: int) -> RecordBatch:
    """Returns records `first` to `last` (exclusive) of a batch that has not been placed."""
    values = _column(batch.values, first, last)
    assert values is not None
    base = batch.base_sequence
    return RecordBatch(
        last - first,
        values,
        origin=batch.origin,
        keys=_column(batch.keys, first, last),
        headers=_column(batch.headers, first, last),
        ids=None if batch.ids is None else _view(batch.ids)[16 * first : 16 * last],
        producers=batch.producers,
        producer_index=_array("I", batch.producer_index, first, last),
        producer_epoch=batch.producer_epoch,
        epochs=_array("q", batch.epochs, first, last),
        base_sequence=None if base is None else base + first,
        sequences=_array("Q", batch.sequences, first, last),
        producer_timestamps=_array("q", batch.producer_timestamps, first, last),
    )


def _view(data: Buffer) -> memoryview:
    return memoryview(data)


def _column(column: VarColumn | None, first: int, last: int) -> VarColumn | None:
    if column is None:
        return None
    offsets = column.offsets
    start = offsets[first]
    validity = None
    if column.validity is not None:
        bits = bytearray((last - first + 7) // 8)
        for index in range(first, last):
            if column.is_present(index):
                bits[(index - first) >> 3] |= 1 << ((index - first) & 7)
        validity = bytes(bits)
    return VarColumn(
        _view(column.blob)[start : offsets[last]],
        array("i", [end - start for end in offsets[first : last + 1]]),
        validity,
        column.stride,
    )


def _array(code: str, values: Int32s | Int64s | None, first: int, last: int) -> array[int] | None:
    return None if values is None else array(code, list(values[first:last]))
