"""Reading single records of a partition by their offsets: the events of a stream, a snapshot.

The events of a stream lie scattered among those of others. Where they are a small part of a stored
batch they are copied out of it, so that neither the reply nor a rendering of it holds the rest;
what was copied out of several is one batch again, and much is copied in a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import BatchSlice
from dragoman.core.error import EngineError
from dragoman.core.events.load import check_there
from dragoman.core.interface import WorkLane
from dragoman.core.join import are_alike, join_scattered
from dragoman.core.reader import damaged
from dragoman.core.select import DELTA_MAX, select
from dragoman.core.store import StoreDamage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.batch import RecordBatch
    from dragoman.core.events.job import Steps
    from dragoman.core.partition import Partition
    from dragoman.core.store import Store

    Chosen = list[tuple[RecordBatch, list[int]]]
    """Stored batches, and the indices of the wanted records of each."""

READ_BYTES = 1 << 16
"""About what is read at a time: the next events may lie near."""
RECORD_BYTES = 64
"""What a record counts beside its value, key, headers and producer."""
BATCHES_AT_ONCE = 64
"""Of about so many stored batches the events are taken at a time, so that not all are held until
the end."""
COPIES_HERE_MAX = 8
"""Of so many they are copied out on the loop; of more in a thread."""


class TakeWork:
    """Taking records out of batches, in a thread."""

    lane = WorkLane.READ

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen
        self.batches: list[RecordBatch] = []
        self.error: StoreDamage | None = None
        self.slices: list[BatchSlice] = []

    def run(self) -> None:
        """Takes them."""
        self.slices = taken(self._chosen)


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
    chosen: Chosen = []
    at = 0
    while at < len(offsets) and bytes_max > 0:
        offset = offsets[at]
        if offset < partition.state.log_start_offset:
            at += 1
            continue
        try:
            batches = yield from read_at(store, partition, offset, READ_BYTES)
        except EngineError:
            if (slices or chosen) and not partition.dropped:
                break
            raise
        begun = at
        for batch in batches:
            is_first = not (slices or chosen)
            indices, at, bytes_max = _wanted(batch, offsets, at, bytes_max, is_first=is_first)
            if indices:
                chosen.append((batch, indices))
            if bytes_max <= 0:
                break
        if at == begun and bytes_max > 0:
            at += 1
        if len(chosen) >= BATCHES_AT_ONCE:
            slices += yield from _take(chosen)
            chosen = []
    slices += yield from _take(chosen)
    return slices


def _take(chosen: Chosen) -> Steps[list[BatchSlice]]:
    copies = sum([_is_copied(batch, indices) for batch, indices in chosen])
    if copies <= COPIES_HERE_MAX:
        return taken(chosen)
    work = TakeWork(chosen)
    yield work
    return work.slices


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


def taken(chosen: Chosen) -> list[BatchSlice]:
    """The chosen records alone: copied where they are a small part of their batch, and what is
    copied of neighbours is one batch."""
    slices: list[BatchSlice] = []
    copies: list[RecordBatch] = []
    for batch, indices in chosen:
        if _is_copied(batch, indices):
            copy = select(batch, indices, batch.offset_at(indices[-1]) + 1)
            if copies and not _may_join(copies, copy):
                slices.append(_joined(copies))
                copies = []
            copies.append(copy)
            continue
        if copies:
            slices.append(_joined(copies))
            copies = []
        slices += _runs(batch, indices)
    if copies:
        slices.append(_joined(copies))
    return slices


def _is_copied(batch: RecordBatch, indices: list[int]) -> bool:
    return 2 * len(indices) < batch.count


def _may_join(copies: list[RecordBatch], copy: RecordBatch) -> bool:
    span = copy.next_offset - copies[0].base_offset
    return span <= DELTA_MAX and are_alike(copies[-1], copy)


def _joined(copies: list[RecordBatch]) -> BatchSlice:
    batch = join_scattered(copies)
    return BatchSlice(batch, 0, batch.count)


def _runs(batch: RecordBatch, indices: list[int]) -> list[BatchSlice]:
    """These records as slices of their batch; neighbours are one."""
    slices: list[BatchSlice] = []
    first = last = indices[0]
    for index in indices:
        if index != last:
            slices.append(BatchSlice(batch, first, last))
            first = index
        last = index + 1
    slices.append(BatchSlice(batch, first, last))
    return slices
