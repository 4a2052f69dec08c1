"""Making one batch of several neighbours: many small produces then read back like one large one."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from dragoman.core.batch import RecordBatch
from dragoman.core.column import VarColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.column import Int64s


GATHERED_BATCHES_MIN = 8
"""Fewer small neighbours are not worth joining for a reader."""
GATHERED_RECORDS_MAX = 1024
GATHERED_BYTES_MAX = 1024 * 1024
SMALL_RECORDS_MAX = 64
SMALL_BYTES_MAX = 16 * 1024
"""A batch with more records or bytes is read as it is."""


def can_join(first: RecordBatch, second: RecordBatch) -> bool:
    """Whether `join_batches` can make one batch of two neighbours without losing a distinction."""
    return (
        first.next_offset == second.base_offset
        and first.offset_deltas is None
        and second.offset_deltas is None
        and are_alike(first, second)
    )


def are_alike(first: RecordBatch, second: RecordBatch) -> bool:
    """Whether one batch can say of the records of both what it says of all."""
    return (
        first.origin == second.origin
        and first.log_epoch == second.log_epoch
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
        joined.timestamps = _int64s(
            "q", [(b.timestamps, b.base_timestamp_us, b.count) for b in batches]
        )
    if first.ids is not None:
        joined.ids = b"".join([batch.ids for batch in batches if batch.ids is not None])
    if first.producer_timestamps is not None:
        joined.producer_timestamps = _int64s(
            "q", [(b.producer_timestamps, 0, b.count) for b in batches]
        )
    if first.producers:
        _join_producers(joined, batches)
    if first.epoch_at(0) is not None:
        _join_epochs(joined, batches)
    if first.sequence_at(0) is not None:
        _join_sequences(joined, batches)
    return joined


def join_scattered(batches: Sequence[RecordBatch]) -> RecordBatch:
    """Returns one batch with the records of several, each of which is `are_alike` to the next and
    lies before it; between them may be gaps, of `DELTA_MAX` offsets together."""
    joined = join_batches(batches)
    if len(batches) > 1:
        base = joined.base_offset
        joined.last_offset_delta = batches[-1].next_offset - 1 - base
        joined.offset_deltas = array(
            "I", [batch.offset_at(at) - base for batch in batches for at in range(batch.count)]
        )
    return joined


def gather(batches: list[RecordBatch]) -> list[RecordBatch]:
    """Joins the runs of small neighbours in a list of batches in offset order.

    A log that was written one record at a time would otherwise be rendered one record at a time.
    What was joined soon is no longer small, so a record is joined a few times at most.
    """
    if len(batches) < GATHERED_BATCHES_MIN:
        return batches
    found: list[RecordBatch] = []
    run: list[RecordBatch] = []
    records = size = 0
    for batch in batches:
        nbytes = batch.nbytes
        if (
            run
            and records + batch.count <= GATHERED_RECORDS_MAX
            and size + nbytes <= GATHERED_BYTES_MAX
            and batch.count <= SMALL_RECORDS_MAX
            and nbytes <= SMALL_BYTES_MAX
            and can_join(run[-1], batch)
        ):
            run.append(batch)
            records += batch.count
            size += nbytes
            continue
        found += run if len(run) < GATHERED_BATCHES_MIN else [join_batches(run)]
        run = [batch]
        small = batch.count <= SMALL_RECORDS_MAX and nbytes <= SMALL_BYTES_MAX
        records, size = (batch.count, nbytes) if small else (GATHERED_RECORDS_MAX, 0)
    found += run if len(run) < GATHERED_BATCHES_MIN else [join_batches(run)]
    return found


def _int64s(code: str, parts: Sequence[tuple[Int64s | None, int, int]]) -> array[int]:
    """One array of several parts: their own values, or a constant `count` times."""
    out = array(code)
    for values, constant, count in parts:
        out += array(code, (constant,)) * count if values is None else array(code, values)
    return out


def _join_producers(joined: RecordBatch, batches: Sequence[RecordBatch]) -> None:
    names: dict[bytes, int] = {}
    index = array("I")
    for batch in batches:
        numbers = [names.setdefault(name, len(names)) for name in batch.producers]
        if batch.producer_index is None:
            index += array("I", numbers[:1]) * batch.count
        else:
            index.extend([numbers[at] for at in batch.producer_index])
    joined.producers = tuple(names)
    joined.producer_index = None if len(names) == 1 else index


def _join_epochs(joined: RecordBatch, batches: Sequence[RecordBatch]) -> None:
    first = batches[0].producer_epoch
    if first is not None and all(batch.producer_epoch == first for batch in batches):
        joined.producer_epoch = first
    else:
        joined.epochs = _int64s("q", [(b.epochs, b.producer_epoch or 0, b.count) for b in batches])


def _join_sequences(joined: RecordBatch, batches: Sequence[RecordBatch]) -> None:
    following = base = batches[0].base_sequence
    for batch in batches:
        if following is None or batch.base_sequence != following:
            break
        following += batch.count
    else:
        joined.base_sequence = base
        return
    joined.sequences = array("Q")
    for batch in batches:
        start = batch.base_sequence
        if batch.sequences is not None:
            joined.sequences += array("Q", batch.sequences)
        elif start is not None:
            joined.sequences.extend(range(start, start + batch.count))
