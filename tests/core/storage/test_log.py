"""One partition's log in memory, and the table of all."""

from __future__ import annotations

from dragoman.core import change as ch
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.log import LogTable, PartitionLog, Tails


def batch(base: int, count: int = 2, origin: Origin | None = None) -> RecordBatch:
    """A batch; neighbours are of two origins, so that they are not joined, unless one is named."""
    if origin is None:
        origin = Origin.V1 if base % 4 else Origin.IGGY
    made = RecordBatch(count, VarColumn.of([b"v" * 100] * count), origin=origin)
    made.place(base_offset=base, timestamp_us=10 * base, log_epoch=0)
    return made


def filled(count: int, bytes_max: int = 1 << 20) -> tuple[PartitionLog, Tails]:
    log, tails = PartitionLog(1, 0, 1, "d"), Tails(bytes_max)
    for n in range(count):
        tails.add(log, batch(2 * n), 200, n + 1)
    return log, tails


def test_a_read_begins_at_the_batch_that_holds_the_offset() -> None:
    log, _ = filled(10)
    for offset in range(20):
        assert log.in_tail(offset, 1)[0].base_offset == offset // 2 * 2


def test_a_read_ends_at_its_budget_but_gives_at_least_one_batch() -> None:
    log, _ = filled(10)
    assert len(log.in_tail(0, 0)) == 1
    assert len(log.in_tail(0, 300)) == 2
    assert len(log.in_tail(0, 1 << 20)) == 10


def test_only_written_batches_leave_the_memory() -> None:
    log, tails = filled(300, bytes_max=1000)
    tails.evict(0)
    assert log.tail_start == 0
    tails.evict(250)
    assert log.tail_start == 500
    assert [b.base_offset for b in log.in_tail(501, 1 << 20)] == list(range(500, 600, 2))
    tails.evict(300)
    assert tails.bytes_held <= 1000
    assert log.in_tail(log.tail_start, 0)[0].base_offset == log.tail_start


def small_neighbours(count: int, bytes_max: int = 1 << 20) -> tuple[PartitionLog, Tails]:
    log, tails = PartitionLog(1, 0, 1, "d"), Tails(bytes_max)
    for n in range(count):
        tails.add(log, batch(n, 1, Origin.V1), 200, n + 1)
    return log, tails


def test_small_neighbours_are_joined_for_a_reader_and_all_that_follow() -> None:
    log, _ = small_neighbours(100)
    (joined,) = log.in_tail(10, 1 << 20)
    assert (joined.base_offset, joined.next_offset) == (10, 100)
    assert log.in_tail(57, 1) == [joined]
    assert [b.base_offset for b in log.tail] == log.bases == [*range(11)]


def test_a_joined_batch_stays_until_all_that_it_holds_is_written() -> None:
    log, tails = small_neighbours(100, bytes_max=1)
    assert len(log.in_tail(0, 1 << 20)) == 1
    tails.evict(99)
    assert log.tail_start == 0
    tails.evict(100)
    assert log.tail_start == 100


def test_a_trim_beyond_the_end_leaves_nothing_behind() -> None:
    log, tails = filled(3)
    log.log_start = log.end = 100
    assert log.in_tail(50, 100) == []
    tails.add(log, batch(100), 200, 9)
    assert log.tail_start == 100
    assert log.end == 102


def test_time_is_bisected_over_the_batches_in_memory() -> None:
    log, _ = filled(10)
    assert log.tail_at_time(0) == 0
    assert log.tail_at_time(61) == 8
    assert log.tail_at_time(181) == log.end == 20


def put(topic_id: int, partitions: int, namespace: int = 1) -> ch.TopicPut:
    return ch.TopicPut(topic_id, namespace, topic_id, "t", 1, [1] * partitions, {})


def test_a_partition_that_is_made_again_has_files_of_its_own() -> None:
    table = LogTable(Layout("d"))
    made, _ = table.apply(put(1, 2), 5)
    assert [log.directory for log in made] == ["d/topics/1/0-5", "d/topics/1/1-5"]
    _, dropped = table.apply(put(1, 1), 6)
    assert [log.dropped for log in dropped] == [True]
    again, _ = table.apply(put(1, 2), 7)
    assert [log.directory for log in again] == ["d/topics/1/1-7"]


def test_topics_and_namespaces_take_their_partitions_with_them() -> None:
    table = LogTable(Layout("d"))
    for topic_id, namespace in ((1, 1), (2, 2), (3, 2)):
        table.apply(put(topic_id, 2, namespace), topic_id)
    _, dropped = table.apply(ch.TopicDropped(1), 4)
    assert len(dropped) == 2
    _, dropped = table.apply(ch.NamespaceDropped(2), 5)
    assert len(dropped) == 4
    assert table.logs == {}


def test_segments_roll_when_full_sealed_or_not_continued() -> None:
    log = PartitionLog(1, 0, 1, "d")
    first, created = log.segment_for(0, 600, 1000)
    assert created
    first.plan(600, 10)
    same, created = log.segment_for(10, 400, 1000)
    assert (same, created) == (first, False)
    same.plan(400, 20)
    second, created = log.segment_for(20, 8, 1000)
    assert created
    second.plan(8, 21)
    gap, created = log.segment_for(50, 8, 1000)
    assert created
    gap.plan(8, 51)
    gap.sealed = True
    assert log.segment_for(51, 8, 1000)[1]
    assert [segment.base for segment in log.segments] == [0, 20, 50, 51]
