"""From pending to a group: joined where nothing is lost, in an order that loses nothing."""

from __future__ import annotations

from dragoman.core import change as ch
from dragoman.core.batch import Origin, RecordBatch, decode_batch
from dragoman.core.column import VarColumn
from dragoman.core.storage.flush import (
    JOINED_RECORDS_MAX,
    Appended,
    Group,
    PendingBatch,
    PendingChange,
    build_group,
    due_items,
    weight,
)
from dragoman.core.storage.log import PartitionLog

LOG, OTHER = PartitionLog(1, 0, 1, "d/0"), PartitionLog(1, 1, 1, "d/1")
COMMIT = ch.OffsetPut(1, "group", "g", 0, 1)
TRIM = ch.Trimmed(1, 0, 1)


def pending(log: PartitionLog, base: int, count: int = 1, origin: int = 0) -> PendingBatch:
    batch = RecordBatch(count, VarColumn.of([b"%d" % base] * count), origin=origin or Origin.NONE)
    batch.place(base_offset=base, timestamp_us=base, log_epoch=0)
    return PendingBatch(log, batch, batch.nbytes)


def shape(group: Group) -> list[tuple[int, int, int]]:
    return [(w.log.partition, w.batch.base_offset, w.batch.count) for w in group.writes]


def test_small_neighbours_of_a_partition_become_one_batch() -> None:
    group = build_group([pending(LOG, 0), pending(OTHER, 0), pending(LOG, 1), pending(OTHER, 1)])
    assert shape(group) == [(0, 0, 2), (1, 0, 2)]
    assert (group.entries, group.batches, group.records) == (2, 4, 4)


def test_batches_of_different_origin_or_of_many_records_stay_apart() -> None:
    many = JOINED_RECORDS_MAX + 1
    group = build_group([pending(LOG, 0), pending(LOG, 1, origin=2), pending(LOG, 2, many)])
    assert shape(group) == [(0, 0, 1), (0, 1, 1), (0, 2, many)]
    group = build_group([pending(LOG, 0, many), pending(LOG, many)])
    assert shape(group) == [(0, 0, many), (0, many, 1)]


def test_a_committed_offset_does_not_part_neighbours() -> None:
    group = build_group([pending(LOG, 0), PendingChange(2, COMMIT), pending(LOG, 1)])
    assert group.folds == [COMMIT, Appended(1, 0, 2, 1)]


def test_nothing_moves_across_a_change_of_what_exists() -> None:
    group = build_group([pending(LOG, 0), PendingChange(2, TRIM), pending(LOG, 1)])
    assert group.folds == [Appended(1, 0, 1, 0), TRIM, Appended(1, 0, 2, 1)]


def change(sequence: int, what: ch.Change) -> PendingChange:
    return PendingChange(sequence, what, weight(what))


def test_changes_that_take_much_room_fill_a_group_as_batches_do() -> None:
    members: list[list[str | int | bool]] = [["m" * 255, "v1", 1, False]] * 100
    large = change(1, ch.GroupPut(1, "t", "g", 1, 1, "range", 1, members))
    assert large.nbytes >= 25_500
    assert change(1, COMMIT).nbytes == 0
    items = [large] * 5
    assert len(due_items(items, 5 * large.nbytes, 3 * large.nbytes)) == 3
    assert build_group(items).nbytes == 5 * large.nbytes


def test_a_group_never_ends_between_a_batch_and_what_it_says_of_its_producers() -> None:
    said = change(0, ch.ProducerPut(1, 0, "p", 1, 0, 0, 0, 0))
    items = [pending(LOG, 0), said, said, pending(LOG, 1), said]
    size = items[0].nbytes
    assert due_items(items, 2 * size, size) == items[:3]
    assert due_items(items[:3], 2 * size, 1) == items[:3]


def test_a_segment_is_given_the_bytes_that_the_journal_was_given() -> None:
    group = build_group([pending(LOG, 0), pending(LOG, 1)])
    (write,) = group.writes
    data = b"".join(write.buffers)
    assert len(data) == write.length
    assert data in b"".join(group.parts)
    assert list(decode_batch(data, 1, 0).values) == [b"0", b"1"]
