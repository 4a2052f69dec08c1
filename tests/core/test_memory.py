"""The store in memory keeps the store's contract."""

from __future__ import annotations

import pytest

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.change import NamespacePut, TopicDropped, TopicPut, Trimmed
from dragoman.core.clock import Now
from dragoman.core.column import VarColumn
from dragoman.core.interface import WorkLane
from dragoman.core.memory import MemoryRead, MemoryStore
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER
from dragoman.core.store import Store, StoreDamage, StoreFull

NOW = Now(0, 0)
TOPIC = TopicPut(1, DEFAULT_NAMESPACE_NUMBER, 1, "t", 0, [0, 0], {})


def placed(base: int, *values: bytes, time: int = 5) -> RecordBatch:
    batch = RecordBatch(len(values), VarColumn.of(values), origin=Origin.NONE)
    batch.place(base_offset=base, timestamp_us=time, log_epoch=0)
    return batch


def flush(store: MemoryStore) -> None:
    work = store.take_flush(NOW)
    assert work is not None
    assert work.lane is WorkLane.FLUSH
    work.run()
    store.flushed(work, None)


@pytest.fixture
def store() -> MemoryStore:
    """Topic 1 with records 0, 1 | 2 in partition 0, in separate batches."""
    made = MemoryStore()
    made.append(TOPIC)
    made.append_batch(1, 0, placed(0, b"a", b"b"))
    flush(made)
    made.append_batch(1, 0, placed(2, b"c", time=7))
    flush(made)
    return made


def bases(store: MemoryStore, offset: int, bytes_max: int = 1 << 20) -> list[int]:
    found = store.read(1, 0, offset, bytes_max)
    assert isinstance(found, list)
    return [batch.base_offset for batch in found]


def test_it_is_a_store() -> None:
    store: Store = MemoryStore()
    assert store.take_flush(NOW) is None
    assert store.take_work(NOW) == []


def test_sequences_are_dense_and_revealed_only_by_a_flush_that_ended() -> None:
    store = MemoryStore()
    assert [store.append(TOPIC), store.append_batch(1, 0, placed(0, b"a"))] == [1, 2]
    assert store.revealed_sequence == 0
    work = store.take_flush(NOW)
    assert work is not None
    assert store.revealed_sequence == 0
    assert store.append_batch(1, 0, placed(1, b"b")) == 3
    ended = store.flushed(work, None)
    assert ended is not None
    assert (ended.last_sequence, ended.ends) == (2, {(1, 0): 1})
    assert store.revealed_sequence == 2


def test_records_are_not_readable_before_their_flush_was_taken(store: MemoryStore) -> None:
    store.append_batch(1, 0, placed(3, b"d"))
    assert bases(store, 0) == [0, 2]
    store.take_flush(NOW)
    assert bases(store, 0) == [0, 2, 3]


def test_one_flush_is_under_way_at_a_time(store: MemoryStore) -> None:
    store.append(TOPIC)
    assert store.take_flush(NOW) is not None
    store.append(TOPIC)
    assert store.take_flush(NOW) is None


def test_a_failed_flush_fences_the_store(store: MemoryStore) -> None:
    store.append(TOPIC)
    work = store.take_flush(NOW)
    assert work is not None
    assert store.flushed(work, OSError(5, "I/O error")) is None
    assert store.failure is not None
    store.append(TOPIC)
    assert store.take_flush(NOW) is None


def test_neighbours_of_one_flush_become_one_batch() -> None:
    store = MemoryStore()
    store.append(TOPIC)
    for base in range(3):
        store.append_batch(1, 0, placed(base, b"x"))
        store.append_batch(1, 1, placed(base, b"y"))
    store.append_batch(1, 0, placed(9, b"far"))
    flush(store)
    assert bases(store, 0) == [0, 9]
    (second,) = store.read(1, 1, 0, 1 << 20)  # type: ignore[misc]
    assert second.count == 3


@pytest.mark.parametrize(
    ("offset", "bytes_max", "expected"),
    [(0, 1 << 20, [0, 2]), (1, 1 << 20, [0, 2]), (2, 1, [2]), (0, 1, [0]), (3, 9, []), (0, 0, [0])],
)
def test_reading_begins_at_the_batch_that_holds_the_offset(
    store: MemoryStore, offset: int, bytes_max: int, expected: list[int]
) -> None:
    assert bases(store, offset, bytes_max) == expected


def test_a_partition_without_records_reads_empty(store: MemoryStore) -> None:
    assert store.read(1, 1, 0, 9) == []
    assert store.read_since(1, 1, 5, 9) == []
    assert store.size(1, 1) == (0, 1)


def test_damage_is_told_only_where_reading_begins(store: MemoryStore) -> None:
    store.damaged[1, 0] = [(2, 2)]
    assert bases(store, 0) == [0]
    with pytest.raises(StoreDamage, match="offsets 2 to 2"):
        store.read(1, 0, 2, 9)


def test_blocking_reads_answer_when_they_ran(store: MemoryStore) -> None:
    store.blocking_reads = True
    work = store.read(1, 0, 0, 1 << 20)
    assert isinstance(work, MemoryRead)
    assert work.batches == []
    work.run()
    assert [batch.base_offset for batch in work.batches] == [0, 2]


@pytest.mark.parametrize(("time", "found"), [(0, [0]), (5, [0]), (6, [2]), (7, [2]), (8, [])])
def test_reading_begins_at_the_first_batch_of_a_time(
    store: MemoryStore, time: int, found: list[int]
) -> None:
    batches = store.read_since(1, 0, time, 1)
    assert isinstance(batches, list)
    assert [batch.base_offset for batch in batches] == found


@pytest.mark.parametrize(
    ("before_us", "bytes_max", "expected"),
    [(0, 0, None), (5, 0, 0), (6, 0, 2), (99, 0, 3), (0, 1, 2), (0, 1 << 20, None), (6, 1, 2)],
)
def test_by_bytes_whole_batches_expire_and_by_age_every_record(
    store: MemoryStore, before_us: int, bytes_max: int, expected: int | None
) -> None:
    assert store.expired(1, 0, before_us=before_us, bytes_max=bytes_max) == expected


def test_trimmed_and_dropped_records_are_gone(store: MemoryStore) -> None:
    store.append(Trimmed(1, 0, 2))
    flush(store)
    assert bases(store, 0) == [2]
    store.append(TopicDropped(1))
    flush(store)
    assert bases(store, 0) == []


def test_records_of_a_partition_dropped_in_the_same_flush_do_not_count() -> None:
    store = MemoryStore()
    store.append(TOPIC)
    store.append_batch(1, 1, placed(0, b"a"))
    store.append(TOPIC._replace(partition_created_us=[0]))
    work = store.take_flush(NOW)
    assert work is not None
    ended = store.flushed(work, None)
    assert ended is not None
    assert ended.ends == {}


def test_a_full_store_takes_nothing() -> None:
    store = MemoryStore(bytes_max=100)
    assert not store.overloaded()
    with pytest.raises(StoreFull):
        store.append_batch(1, 0, placed(0, bytes(200)))
    assert store.take_flush(NOW) is None


def test_a_restart_gives_back_what_was_flushed(store: MemoryStore) -> None:
    store.append(NamespacePut(3, "lost", 0))
    store.append_batch(1, 0, placed(3, b"lost"))
    store.take_flush(NOW)
    again = store.restarted()
    assert bases(again, 0) == [0, 2]
    assert again.catalog.topics[1].partitions[0].next_offset == 3
    assert list(again.catalog.namespaces) == ["default"]
    assert again.revealed_sequence == 0


def test_statistics_name_the_store(store: MemoryStore) -> None:
    found = store.statistics()
    assert (found["store"], found["store_sequence"], found["store_flushes"]) == ("memory", 3, 2)
