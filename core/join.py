"""Making one batch of several neighbours: many small produces then read back like one large one."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from dragoman.core.batch import RecordBatch
from dragoman.core.column import VarColumn

if TYPE_CHECKING:
    from collections.abc import Sequence


def can_join(first: RecordBatch, second: RecordBatch) -> bool:
    """Whether `join_batches` can make one batch of two neighbours without losing a distinction."""
    return (
        first.origin == second.origin
        and first.log_epoch == second.log_epoch
        and first.next_offset == second.base_offset
        and first.offset_deltas is None
        and second.offset_deltas is None
        and bool(first.producers) == bool(second.producers)
        and (first.ids is None) == (second.ids is None)
        and (first.producer_timestamps is None) == (second.producer_timestamps is None)
        and (first.epoch_at(0) is None) == (second.epoch_at(0) is None)
        and (first.sequence_at(0) is None) == (second.sequence_at(0) is None)
    )


def join_batches(batches: Sequence[RecordBatch]) -> RecordBatch:
    """Returns one batch with the records of several placed neighbours, each of which `can_join` the
    next.

    Many small produces to a partition in one flush become one batch, so that reading them back
    costs what reading a large batch costs.
    """
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    counts = [batch.count for batch in batches]
    values = VarColumn.joined([batch.values for batch in batches], counts)
    assert values is not None
    joined = RecordBatch(
        sum(counts),
        values,
        origin=first.origin,
        keys=VarColumn.joined([batch.keys for batch in batches], counts),
        headers=VarColumn.joined([batch.headers for batch in batches], counts),
    )
    joined.place(
        base_offset=first.base_offset,
        timestamp_us=first.base_timestamp_us,
        log_epoch=first.log_epoch,
    )
    joined.max_timestamp_us = batches[-1].max_timestamp_us
    if joined.max_timestamp_us != joined.base_timestamp_us:
        joined.timestamps = array("q", [b.timestamp_at(i) for b in batches for i in range(b.count)])
    if first.ids is not None:
        joined.ids = b"".join([batch.ids for batch in batches if batch.ids is not None])
    if first.producer_timestamps is not None:
        joined.producer_timestamps = array("q")
        for batch in batches:
            joined.producer_timestamps.extend(batch.producer_timestamps or ())
    if first.producers:
        _join_producers(joined, batches)
    return joined


def _join_producers(joined: RecordBatch, batches: Sequence[RecordBatch]) -> None:
    names: dict[bytes, int] = {}
    index: array[int] = array("I")
    for batch in batches:
        for i in range(batch.count):
            index.append(names.setdefault(batch.producer_at(i) or b"", len(names)))
    joined.producers = tuple(names)
    joined.producer_index = None if len(names) == 1 else index
    rows = [(b, i) for b in batches for i in range(b.count)]
    epochs = [b.epoch_at(i) for b, i in rows]
    if epochs[0] is not None:
        if epochs.count(epochs[0]) == len(epochs):
            joined.producer_epoch = epochs[0]
        else:
            joined.epochs = array("q", [epoch or 0 for epoch in epochs])
    sequences = [b.sequence_at(i) for b, i in rows]
    base = sequences[0]
    if base is not None:
        if sequences == list(range(base, base + len(rows))):
            joined.base_sequence = base
        else:
            joined.sequences = array("Q", [sequence or 0 for sequence in sequences])
