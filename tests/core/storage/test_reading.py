"""Cold reads: kept within a budget, and never trusting an index over the batches."""

from __future__ import annotations

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.storage.log import PartitionLog
from dragoman.core.storage.reading import ColdCache, SegmentRead
from dragoman.simulation.disk import SimDisk
from support.store import Driven, read_all, read_at


def batches(first: int, count: int) -> list[RecordBatch]:
    made = []
    for base in range(first, first + count):
        # Of two origins in turn, so that they are not joined.
        origin = Origin.V1 if base % 2 else Origin.IGGY
        batch = RecordBatch(1, VarColumn.single(b"v" * 500), origin=origin)
        batch.place(base_offset=base, timestamp_us=0, log_epoch=0)
        made.append(batch)
    return made


def test_kept_batches_are_given_as_far_as_they_are_neighbours() -> None:
    cache, log = ColdCache(1 << 20), PartitionLog(1, 0, 1, "d")
    cache.put(log.cold, batches(5, 3))
    cache.put(log.cold, batches(20, 2))
    assert [b.base_offset for b in cache.get(log.cold, 6, 1 << 20)] == [6, 7]
    assert [b.base_offset for b in cache.get(log.cold, 20, 1)] == [20]
    assert cache.get(log.cold, 4, 1) == []
    assert cache.get(log.cold, 8, 1) == []


def test_small_neighbours_are_kept_as_one() -> None:
    cache, log = ColdCache(1 << 20), PartitionLog(1, 0, 1, "d")
    alike = [batch for batch in batches(0, 100) if batch.base_offset % 2]
    for base, batch in enumerate(alike):
        batch.place(base_offset=base, timestamp_us=0, log_epoch=0)
    (joined,) = cache.put(log.cold, alike)
    assert (joined.base_offset, joined.count) == (0, 50)
    assert cache.get(log.cold, 30, 1) == [joined]


def test_what_begins_alike_and_ends_elsewhere_is_not_taken_for_the_other() -> None:
    cache, log = ColdCache(1 << 20), PartitionLog(1, 0, 1, "d")
    alike = [batch for batch in batches(0, 100) if batch.base_offset % 2]
    for base, batch in enumerate(alike):
        batch.place(base_offset=base, timestamp_us=0, log_epoch=0)
    cache.put(log.cold, alike[:1])
    (joined,) = cache.put(log.cold, alike)
    assert joined.count == 50


def test_the_first_object_kept_is_the_one_that_all_readers_get() -> None:
    cache, log = ColdCache(1 << 20), PartitionLog(1, 0, 1, "d")
    first = cache.put(log.cold, batches(0, 1))
    assert cache.put(log.cold, batches(0, 1))[0] is first[0]


def test_the_oldest_go_when_the_budget_is_passed() -> None:
    cache, log = ColdCache(5000), PartitionLog(1, 0, 1, "d")
    cache.put(log.cold, batches(0, 20))
    assert cache.bytes_held <= 5000
    assert cache.get(log.cold, 0, 1) == []
    assert cache.get(log.cold, 19, 1) != []


def test_an_index_that_lies_is_made_again() -> None:
    disk = SimDisk()
    disk.caches_reads = False
    driven = Driven(disk, segment_bytes=1 << 20)
    driven.topic()
    for n in range(200):
        driven.produce([b"%d" % n * 30])
        driven.settle()
    driven.stop()
    again = Driven(disk, segment_bytes=1 << 20, cold_bytes_max=1)
    log = again.store._logs[1, 0]
    segment = log.segments[0]
    assert segment.index is None
    found = again.store.read(1, 0, segment.next_offset - 1, 1)
    assert isinstance(found, SegmentRead)
    found.run()
    assert found.error is None
    assert segment.index is not None
    for at in range(1, len(segment.index.positions)):
        segment.index.positions[at] += 8
    data = disk.open(segment.index_path, create=True)
    from dragoman.core.batch import place_seed

    disk.write(data, [segment.index.to_bytes(place_seed(1, 0, 0))], 0)
    bases = list(segment.index.bases)
    assert len(bases) > 1
    for base in bases:
        segment.index = None
        assert read_at(again.store, 1, 0, base, 1)[0].base_offset == base
    segment.index = None
    assert read_all(again.store) == driven.written[1, 0]
