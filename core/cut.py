"""Cutting stored batches into what one reader asked for. Pure functions over columns.

Whole batches are taken by comparing sums; only the batch in which a limit falls is bisected, by its
column offsets, so the cost does not grow with the number of records.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.calls import BatchSlice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.batch import RecordBatch


class Cut(NamedTuple):
    """What fits.

    Attributes:
        next_offset: Where to read next: after the last record, or where reading began.
        records_left, bytes_left: What remains of the limits.
        is_full: A limit was met or the high watermark reached; more batches would change nothing.
    """

    slices: list[BatchSlice]
    next_offset: int
    records_left: int
    bytes_left: int
    is_full: bool


def cut(
    batches: Sequence[RecordBatch],
    *,
    offset: int,
    high_watermark: int,
    records_max: int,
    bytes_max: int,
    record_overhead: int = 0,
    count_all: bool = False,
    is_first: bool = True,
) -> Cut:
    """Returns the records from `offset` up to the high watermark that fit both limits.

    Args:
        batches: Neighbours in offset order, the first one holding `offset` or what comes next.
        record_overhead, count_all: As `Fetch` has them.
        is_first: The first record comes whatever its size.
    """
    slices: list[BatchSlice] = []
    for batch in batches:
        if batch.base_offset >= high_watermark:
            return Cut(slices, offset, records_max, bytes_max, True)
        first = batch.index_of(offset) if batch.base_offset < offset else 0
        last = batch.count
        batch_end = batch.base_offset + batch.last_offset_delta + 1
        is_whole = batch_end <= high_watermark
        if not is_whole:
            last = batch.index_of(high_watermark)
        if first >= last:
            offset = max(offset, min(batch_end, high_watermark))
            continue
        if last - first > records_max:
            last = first + records_max
            is_whole = False
        size = size_of(batch, first, last, record_overhead, count_all)
        if size > bytes_max:
            last = _fitting(batch, first, last, bytes_max, record_overhead, count_all)
            if last == first:
                if not is_first:
                    return Cut(slices, offset, records_max, bytes_max, True)
                last = first + 1
            slices.append(BatchSlice(batch, first, last))
            end = batch_end if is_whole and last == batch.count else batch.offset_at(last - 1) + 1
            return Cut(slices, end, records_max - (last - first), 0, True)
        is_first = False
        slices.append(BatchSlice(batch, first, last))
        records_max -= last - first
        bytes_max -= size
        offset = batch_end if is_whole else batch.offset_at(last - 1) + 1
        if not is_whole or not records_max:
            return Cut(slices, offset, records_max, bytes_max, True)
    return Cut(slices, offset, records_max, bytes_max, offset >= high_watermark)


def first_at_time(batch: RecordBatch, timestamp_us: int) -> int:
    """The offset of the batch's first record at or after a time; the batch's end where there is
    none."""
    stamps = batch.timestamps
    if stamps is None:
        is_after = batch.base_timestamp_us >= timestamp_us
        return batch.base_offset if is_after else batch.next_offset
    index = bisect_left(stamps, timestamp_us)
    return batch.offset_at(index) if index < batch.count else batch.next_offset


def size_of(
    batch: RecordBatch, first: int, last: int, record_overhead: int, count_all: bool
) -> int:
    """What records count against a limit of bytes, as `Fetch` has it."""
    offsets = batch.values.offsets
    size = offsets[last] - offsets[first] + record_overhead * (last - first)
    if count_all:
        if batch.keys is not None:
            size += batch.keys.offsets[last] - batch.keys.offsets[first]
        if batch.headers is not None:
            size += batch.headers.offsets[last] - batch.headers.offsets[first]
    return size


def _fitting(
    batch: RecordBatch, first: int, last: int, bytes_max: int, record_overhead: int, count_all: bool
) -> int:
    """The largest end of a run from `first` whose size is within `bytes_max`."""

    def size_until(end: int) -> int:
        return size_of(batch, first, end, record_overhead, count_all)

    return first + bisect_right(range(first + 1, last + 1), bytes_max, key=size_until)
