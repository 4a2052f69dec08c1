"""Taking some records out of a batch: the rest keeps its offsets and everything else it had."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from dragoman.core.batch import RecordBatch
from dragoman.core.column import VarColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.column import Int32s, Int64s

Runs = list[tuple[int, int]]
"""Ranges of record indices, the second of each exclusive."""

DELTA_MAX = (1 << 32) - 1
"""The furthest that an offset lies from its batch's first at rest."""


def select(batch: RecordBatch, indices: Sequence[int], next_offset: int) -> RecordBatch:
    """A batch of only these records of a placed batch.

    Args:
        indices: At least one, ascending.
        next_offset: Where the result ends, at or after its last record: what lies between two
            batches belongs to the one before, so that neighbours touch.
    """
    runs = _runs(indices)
    count = len(indices)
    values = _pick(batch.values, runs)
    assert values is not None
    chosen = RecordBatch(
        count,
        values,
        origin=batch.origin,
        keys=_pick_present(batch.keys, runs),
        headers=_pick_present(batch.headers, runs),
        producers=batch.producers,
        producer_epoch=batch.producer_epoch,
    )
    chosen.log_epoch = batch.log_epoch
    if batch.ids is not None:
        ids = memoryview(batch.ids)
        chosen.ids = b"".join([ids[16 * first : 16 * last] for first, last in runs])
    if batch.producer_timestamps is not None:
        chosen.producer_timestamps = _fixed("q", batch.producer_timestamps, runs)
    if batch.epochs is not None:
        chosen.epochs = _fixed("q", batch.epochs, runs)
    if batch.producer_index is not None:
        chosen.producer_index = _fixed("I", batch.producer_index, runs)
    _put_sequences(chosen, batch, runs)
    _put_times(chosen, batch, runs)
    _put_offsets(chosen, batch, indices, next_offset)
    return chosen


def _runs(indices: Sequence[int]) -> Runs:
    runs: Runs = []
    first = last = indices[0]
    for index in indices:
        if index != last:
            runs.append((first, last))
            first = index
        last = index + 1
    runs.append((first, last))
    return runs


def _pick(column: VarColumn | None, runs: Runs) -> VarColumn | None:
    if column is None:
        return None
    offsets, blob = column.offsets, memoryview(column.blob)
    ends = array("i", (0,))
    for first, last in runs:
        shift = ends[-1] - offsets[first]
        ends.extend([end + shift for end in offsets[first + 1 : last + 1]])
    validity = None
    if column.validity is not None:
        bits = bytearray((len(ends) + 6) // 8)
        at = 0
        for first, last in runs:
            for index in range(first, last):
                if column.is_present(index):
                    bits[at >> 3] |= 1 << (at & 7)
                at += 1
        validity = bytes(bits)
    pieces = [blob[offsets[first] : offsets[last]] for first, last in runs]
    return VarColumn(b"".join(pieces), ends, validity, column.stride)


def _pick_present(column: VarColumn | None, runs: Runs) -> VarColumn | None:
    """As `_pick`; None where no record has any."""
    picked = _pick(column, runs)
    if picked is None or (picked.validity is not None and not any(picked.validity)):
        return None
    return picked


def _fixed(code: str, column: Int32s | Int64s, runs: Runs) -> array[int]:
    out = array(code)
    view = memoryview(column).cast("B")
    for first, last in runs:
        out.frombytes(view[out.itemsize * first : out.itemsize * last])
    return out


def _put_sequences(chosen: RecordBatch, batch: RecordBatch, runs: Runs) -> None:
    base = batch.base_sequence
    if batch.sequences is not None:
        chosen.sequences = _fixed("Q", batch.sequences, runs)
    elif base is not None and len(runs) == 1:
        chosen.base_sequence = base + runs[0][0]
    elif base is not None:
        chosen.sequences = array("Q", [base + index for run in runs for index in range(*run)])


def _put_times(chosen: RecordBatch, batch: RecordBatch, runs: Runs) -> None:
    chosen.base_timestamp_us = batch.base_timestamp_us
    chosen.max_timestamp_us = batch.max_timestamp_us
    if batch.timestamps is not None:
        times = _fixed("q", batch.timestamps, runs)
        chosen.base_timestamp_us = times[0]
        chosen.max_timestamp_us = max(times)
        if min(times) < chosen.max_timestamp_us:
            chosen.timestamps = times


def _put_offsets(
    chosen: RecordBatch, batch: RecordBatch, indices: Sequence[int], next_offset: int
) -> None:
    base = chosen.base_offset = batch.offset_at(indices[0])
    chosen.last_offset_delta = next_offset - 1 - base
    if chosen.last_offset_delta != chosen.count - 1:
        chosen.offset_deltas = array("I", [batch.offset_at(index) - base for index in indices])
