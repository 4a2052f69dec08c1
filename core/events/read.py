"""Reading single records of a partition by their offsets: the events of a stream, a snapshot.

The events of a stream lie scattered among those of others. Where they are a small part of a stored
batch they are copied out of it, so that neither the reply nor a rendering of it holds the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import BatchSlice
from dragoman.core.error import EngineError
from dragoman.core.events.load import check_there
from dragoman.core.reader import damaged
from dragoman.core.select import select
from dragoman.core.store import StoreDamage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.batch import RecordBatch
    from dragoman.core.events.job import Steps
    from dragoman.core.partition import Partition
    from dragoman.core.store import Store

READ_BYTES = 1 << 16
"""About what is read at a time: the next events may lie near."""
RECORD_BYTES = 64
"""What a record counts beside its value, key, headers and producer."""


def read_at(
    store: Store, partition: Partition, offset: int, nbytes: int
) -> Steps[list[RecordBatch]]:
    """Batches from the one that holds the offset on, wherever they are.

    Raises:
        EngineError: DAMAGED, STORAGE_FAILED, UNKNOWN_TOPIC, UNKNOWN_PARTITION.
    """
    try:
        found = store.read(partition.topic_id, partition.number, offset, nbytes)
    except StoreDamage as damage:
        raise damaged(damage) from None
    if not isinstance(found, list):
        found = yield found
        check_there(partition)
    return found


def gather(
    store: Store, partition: Partition, offsets: Sequence[int], bytes_max: int
) -> Steps[list[BatchSlice]]:
    """The records at these rising offsets, at least the first of them, to about `bytes_max` bytes.

    What was deleted meanwhile is left out; damaged records end what is returned.

    Raises:
        EngineError: As `read_at`, where there is nothing before that.
    """
    slices: list[BatchSlice] = []
    at = 0
    while at < len(offsets) and bytes_max > 0:
        offset = offsets[at]
        if offset < partition.state.log_start_offset:
            at += 1
            continue
        try:
            batches = yield from read_at(store, partition, offset, READ_BYTES)
        except EngineError:
            if slices and not partition.dropped:
                break
            raise
        begun = at
        for batch in batches:
            indices, at, bytes_max = _wanted(batch, offsets, at, bytes_max, is_first=not slices)
            if indices:
                slices += _pieces(batch, indices)
            if bytes_max <= 0:
                break
        if at == begun and bytes_max > 0:
            at += 1
    return slices


def _wanted(
    batch: RecordBatch, offsets: Sequence[int], at: int, bytes_max: int, *, is_first: bool
) -> tuple[list[int], int, int]:
    """The indices of the wanted records in a batch, the next offset wanted, and the bytes left."""
    indices: list[int] = []
    end = batch.next_offset
    while at < len(offsets) and offsets[at] < end:
        index = batch.index_of(offsets[at])
        if index < batch.count and batch.offset_at(index) == offsets[at]:
            size = _size(batch, index)
            if size > bytes_max and (indices or not is_first):
                return indices, at, 0
            bytes_max -= size
            indices.append(index)
        at += 1
    return indices, at, bytes_max


def _size(batch: RecordBatch, index: int) -> int:
    size = RECORD_BYTES + len(batch.producer_at(index) or b"")
    for column in (batch.values, batch.keys, batch.headers):
        if column is not None:
            size += column.offsets[index + 1] - column.offsets[index]
    return size


def _pieces(batch: RecordBatch, indices: list[int]) -> list[BatchSlice]:
    """These records alone; neighbours are one slice."""
    if 2 * len(indices) < batch.count:
        chosen = select(batch, indices, batch.offset_at(indices[-1]) + 1)
        return [BatchSlice(chosen, 0, chosen.count)]
    slices: list[BatchSlice] = []
    first = last = indices[0]
    for index in indices:
        if index != last:
            slices.append(BatchSlice(batch, first, last))
            first = index
        last = index + 1
    slices.append(BatchSlice(batch, first, last))
    return slices
