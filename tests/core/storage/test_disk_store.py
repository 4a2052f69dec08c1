"""The store as the engine sees it, in good times: what goes in comes out, also after a restart."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from dragoman.core import change as ch
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.interface import WorkLane
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.error import StorageError
from dragoman.core.storage.options import Durability
from dragoman.core.store import StoreOverloaded
from dragoman.simulation.disk import SimDisk
from support.store import Driven, ended, read_all, read_at, small_options

if TYPE_CHECKING:
    from pathlib import Path


def filled(disk: SimDisk, count: int = 300, **options: int) -> Driven:
    driven = Driven(disk, **options)
    driven.topic(partitions=2)
    for n in range(count):
        driven.produce([b"%d-%d" % (n, k) * (n % 9) for k in range(1 + n % 4)], partition=n % 2)
        driven.flush()
        if n % 3 == 0:
            driven.work()
    driven.settle()
    return driven


@pytest.mark.parametrize("caches_reads", [True, False])
@pytest.mark.parametrize("tail_bytes_max", [1 << 20, 9000, 2000])
def test_what_was_written_is_read_from_memory_page_cache_and_disk(
    caches_reads: bool, tail_bytes_max: int
) -> None:
    disk = SimDisk()
    disk.caches_reads = caches_reads
    driven = filled(disk, tail_bytes_max=tail_bytes_max)
    for partition in (0, 1):
        assert read_all(driven.store, 1, partition) == driven.written[1, partition]


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_written_is_there_after_a_stop(clean: bool) -> None:
    disk = SimDisk()
    driven = filled(disk)
    if clean:
        driven.stop()
    again = Driven(disk if clean else disk.crashed(None))
    assert again.store.clean is clean
    assert again.store.damage == []
    for partition in (0, 1):
        assert read_all(again.store, 1, partition) == driven.written[1, partition]
    assert again.store.catalog.log_epoch == (0 if clean else 1)


def test_a_read_at_any_offset_begins_with_the_batch_that_holds_it() -> None:
    driven = filled(SimDisk(), count=100, tail_bytes_max=2000)
    end = driven.store.catalog.topics[1].partitions[0].next_offset
    for offset in range(end):
        batches = read_at(driven.store, 1, 0, offset, 1)
        assert len(batches) == 1
        assert batches[0].base_offset <= offset < batches[0].next_offset
    assert read_at(driven.store, 1, 0, end) == []
    assert read_at(driven.store, 9, 0, 0) == []


def test_cold_batches_are_the_same_objects_for_the_next_reader() -> None:
    driven = filled(SimDisk(), tail_bytes_max=2000)
    assert read_at(driven.store, 1, 0, 0)[0] is read_at(driven.store, 1, 0, 0)[0]


def test_nothing_is_revealed_before_its_flush_has_ended() -> None:
    driven = Driven(SimDisk())
    driven.topic()
    driven.settle()
    before = driven.store.revealed_sequence
    driven.produce([b"a"])
    assert read_at(driven.store, 1, 0, 0) == []
    work = driven.store.take_flush(driven.now())
    assert work is not None
    assert driven.store.revealed_sequence == before
    assert len(read_at(driven.store, 1, 0, 0)) == 1
    assert driven.store.take_flush(driven.now()) is None
    work.run()
    flush = driven.store.flushed(work, None)
    assert flush is not None
    assert (flush.last_sequence, flush.ends) == (before + 1, {(1, 0): 1})
    assert driven.store.revealed_sequence == before + 1


def test_the_end_of_a_partition_that_went_meanwhile_is_not_told() -> None:
    driven = Driven(SimDisk())
    driven.topic(partitions=2)
    driven.produce([b"a"], partition=1)
    work = driven.store.take_flush(driven.now())
    assert work is not None
    driven.topic(partitions=1)
    driven.topic(partitions=2)
    work.run()
    flush = driven.store.flushed(work, None)
    assert flush is not None
    assert flush.ends == {}


def test_a_partition_that_was_made_again_is_empty_also_after_a_crash() -> None:
    disk = SimDisk()
    driven = filled(disk, count=60)
    driven.topic(partitions=1)
    driven.topic(partitions=2)
    driven.settle()
    assert read_at(driven.store, 1, 1, 0) == []
    driven.produce([b"new"], partition=1)
    driven.settle()
    again = Driven(disk.crashed(None))
    assert read_all(again.store, 1, 1) == [b"new"]
    assert read_all(again.store, 1, 0) == driven.written[1, 0]


def test_dropped_and_trimmed_files_go_after_the_next_checkpoint() -> None:
    disk = SimDisk()
    driven = filled(disk)
    driven.topic(2)
    driven.produce([b"x" * 100], topic_id=2)
    driven.advance(31)
    files = [d for d in disk.list("data/topics/1") if d.startswith("0-")]
    count = len(disk.list(f"data/topics/1/{files[0]}"))
    driven.change(ch.Trimmed(1, 0, 200))
    driven.change(ch.TopicDropped(2))
    driven.flush()
    assert len(disk.list(f"data/topics/1/{files[0]}")) >= count
    assert disk.list("data/topics/2") != []
    driven.advance(31)
    assert len(disk.list(f"data/topics/1/{files[0]}")) < count
    assert disk.list("data/topics") == ["1"]
    assert read_all(driven.store, 1, 0) == driven.written[1, 0][200:]
    again = Driven(disk.crashed(None))
    assert read_all(again.store, 1, 0) == driven.written[1, 0][200:]


def test_retention_names_whole_closed_segments() -> None:
    driven = filled(SimDisk())
    store = driven.store
    size, segments = store.size(1, 0)
    assert segments > 3
    assert store.expired(1, 0, before_us=0, bytes_max=0) is None
    assert store.expired(1, 0, before_us=0, bytes_max=size) is None
    start = store.expired(1, 0, before_us=0, bytes_max=5000)
    assert start is not None
    driven.change(ch.Trimmed(1, 0, start))
    assert 5000 <= store.size(1, 0)[0] < 5000 + 2 * 4096
    assert store.expired(1, 0, before_us=0, bytes_max=5000) is None
    assert store.expired(1, 9, before_us=1, bytes_max=1) is None
    assert store.size(1, 9) == (0, 0)


@pytest.mark.parametrize("tail_bytes_max", [1 << 20, 2000])
def test_an_offset_is_found_by_time_to_the_batch(tail_bytes_max: int) -> None:
    disk = SimDisk()
    driven = filled(disk, count=120, tail_bytes_max=tail_bytes_max)
    for store in (driven.store, Driven(disk.crashed(None)).store):
        end = store.catalog.topics[1].partitions[0].next_offset
        offset = 0
        while offset < end:
            batch = read_at(store, 1, 0, offset, 1)[0]
            found = ended(store.read_since(1, 0, batch.max_timestamp_us, 1))
            assert found[0].base_offset == batch.base_offset
            offset = batch.next_offset
        assert ended(store.read_since(1, 0, 0, 1))[0].base_offset == 0
        assert store.read_since(1, 0, 1 << 60, 1) == []
        assert store.read_since(9, 0, 0, 1) == []


def test_a_search_by_time_reads_no_file_on_the_loop_and_none_for_what_is_in_memory() -> None:
    store = filled(SimDisk(), count=120, tail_bytes_max=8000).store
    first = read_at(store, 1, 0, 0, 1)[0]
    newest = store.catalog.topics[1].partitions[0].last_timestamp_us
    assert isinstance(store.read_since(1, 0, newest, 1), list)
    work = store.read_since(1, 0, first.max_timestamp_us, 1)
    assert not isinstance(work, list)
    assert work.lane is WorkLane.READ
    assert ended(work)[0].base_offset == 0


def test_committed_offsets_and_topics_survive_a_crash() -> None:
    disk = SimDisk()
    driven = filled(disk, count=20)
    driven.change(ch.OffsetPut(1, "group", "readers", 1, 5))
    driven.change(ch.NamespacePut(7, "seven", 1))
    driven.flush()
    again = Driven(disk.crashed(None))
    assert again.store.catalog.to_json()["topics"] == driven.store.catalog.to_json()["topics"]
    assert again.store.catalog.namespaces["seven"].number == 7


def test_the_journal_is_recycled_and_never_passes_its_budget() -> None:
    disk = SimDisk()
    driven = Driven(disk, journal_files_max=4, journal_file_bytes=32 * 1024)
    driven.topic()
    for n in range(400):
        driven.produce([b"%d" % n])
        driven.settle()
    assert len(disk.list("data/journal")) <= 4
    assert driven.revealed[1, 0] == 400
    assert read_all(Driven(disk.crashed(None)).store) == driven.written[1, 0]


def test_a_batch_larger_than_every_file_is_kept_whole() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    driven.produce([b"small"])
    driven.produce([b"L" * 300_000])
    driven.settle()
    assert read_all(Driven(disk.crashed(None)).store) == driven.written[1, 0]


def test_a_batch_larger_than_a_segment_has_one_of_its_own() -> None:
    mib = 1 << 20
    disk = SimDisk()
    sizes = {"journal_file_bytes": 4 * mib, "journal_first_bytes": 4 * mib}
    driven = Driven(disk, segment_bytes=mib, tail_bytes_max=1, pending_bytes_max=64 * mib, **sizes)
    driven.topic()
    for length in (600_000, 300_000, 9 * mib, 10, 32 * mib, 700_000, 700_000):
        driven.produce([bytes([length % 251]) * length])
        driven.settle()
    assert driven.store.size(1, 0)[1] == 6
    assert read_all(driven.store) == driven.written[1, 0]
    assert read_all(Driven(disk.crashed(None), segment_bytes=mib).store) == driven.written[1, 0]


def test_one_flush_takes_no_more_than_a_groups_worth() -> None:
    driven = Driven(SimDisk(), group_bytes_max=1000)
    driven.topic()
    driven.settle()
    flushes = driven.store.statistics()["store_flushes"]
    for _ in range(10):
        driven.produce([b"x" * 300])
    driven.settle()
    assert int(driven.store.statistics()["store_flushes"]) - int(flushes) >= 4
    assert driven.revealed[1, 0] == 10


def test_too_much_pending_is_refused_and_taken_again_later() -> None:
    driven = Driven(SimDisk(), pending_bytes_max=1000)
    driven.topic()
    driven.settle()
    driven.produce([b"x" * 600])
    assert not driven.store.overloaded()
    driven.produce([b"x" * 100])
    assert driven.store.overloaded()
    end = driven.store.catalog.topics[1].partitions[0].next_offset
    with pytest.raises(StoreOverloaded):
        driven.produce([b"x" * 600])
    driven.settle()
    assert not driven.store.overloaded()
    assert driven.store.catalog.topics[1].partitions[0].next_offset == end
    driven.produce([b"x" * 600])


def test_a_fenced_store_keeps_nobody_waiting_for_room() -> None:
    driven = Driven(SimDisk(), pending_bytes_max=1000)
    driven.topic()
    work = driven.store.take_flush(driven.now())
    assert work is not None
    driven.produce([b"x" * 600])
    driven.produce([b"x" * 100])
    assert driven.store.overloaded()
    driven.store.flushed(work, OSError(errno.EIO, "the sync failed"))
    assert not driven.store.overloaded()


def test_too_much_on_its_way_to_segments_is_refused_and_taken_again_later() -> None:
    driven = Driven(SimDisk(), tail_bytes_max=1000)
    driven.topic()
    driven.settle()
    driven.produce([b"x" * 1200])
    driven.flush()
    with pytest.raises(StoreOverloaded):
        driven.produce([b"y"])
    driven.settle()
    driven.produce([b"y"])


def test_in_mode_fsync_every_flush_is_synced() -> None:
    disk = SimDisk()
    driven = Driven(disk, journal_first_bytes=64 * 1024)
    driven.topic()
    driven.settle()
    before = disk.log.count("sync data/journal/0")
    for _ in range(5):
        driven.produce([b"a"])
        driven.flush()
    assert disk.log.count("sync data/journal/0") - before == 5


def test_in_mode_os_nothing_is_synced_and_all_survives_a_kill() -> None:
    disk = SimDisk()
    driven = Driven(disk, durability=Durability.OS, journal_first_bytes=64 * 1024)
    driven.topic()
    driven.settle()
    before = disk.log.count("sync data/journal/0")
    for _ in range(5):
        driven.produce([b"a"])
        driven.flush()
    assert disk.log.count("sync data/journal/0") == before
    assert driven.revealed[1, 0] == 5
    assert len(read_all(Driven(disk.crashed(None)).store)) == 5


def test_in_mode_interval_a_sync_comes_after_so_many_records_or_so_long() -> None:
    disk = SimDisk()
    driven = Driven(
        disk,
        durability=Durability.INTERVAL,
        flush_records=10,
        flush_ms=100,
        journal_file_bytes=256 * 1024,
        journal_first_bytes=256 * 1024,
    )
    driven.topic()
    driven.advance(1)

    def syncs() -> int:
        return disk.log.count("sync data/journal/0")

    before = syncs()
    for _ in range(9):
        driven.produce([b"a"])
        driven.flush()
    assert driven.revealed[1, 0] == 9
    assert syncs() == before
    driven.produce([b"a"])
    driven.flush()
    assert syncs() == before + 1
    driven.produce([b"a"])
    driven.flush()
    assert not driven.flush()
    driven.mono_us += 100_000
    assert driven.flush()
    assert syncs() == before + 2
    assert not driven.flush()


def test_the_cursus_documents_window_is_500_records_or_100_ms_whichever_is_first() -> None:
    disk = SimDisk()
    driven = Driven(disk, durability=Durability.INTERVAL)
    driven.topic()
    driven.advance(1)
    counted = [disk.log.count("sync data/journal/0")]

    def syncs() -> int:
        """How many there were since the last look."""
        counted.append(disk.log.count("sync data/journal/0"))
        return counted[-1] - counted[-2]

    driven.produce([b"a"] * 499)
    driven.flush()
    assert (syncs(), driven.revealed[1, 0]) == (0, 499)
    driven.produce([b"a"])
    driven.flush()
    assert syncs() == 1
    driven.produce([b"a"])
    driven.flush()
    driven.mono_us += 98_000
    assert (driven.flush(), syncs()) == (False, 0)
    assert (driven.flush(), syncs()) == (True, 1)


def test_producers_do_not_rest_for_long_behind_a_slow_checkpoint() -> None:
    driven = Driven(SimDisk(), journal_files_max=4)
    store = driven.store
    driven.topic()
    driven.flush()
    slow = []
    while not store.overloaded():
        driven.produce([b"v" * 3000])
        driven.flush()
        for work in store.take_work(driven.now()):
            work.run()
            if work.lane is WorkLane.CHECKPOINT:
                slow.append(work)
            else:
                store.finished(work, None)
    assert len(slow) == 1
    store.finished(slow[0], None)
    driven.settle()
    assert driven.mono_us < 1_000_000
    assert not store.overloaded()


def test_after_the_last_checkpoint_nothing_more_is_taken() -> None:
    driven = Driven(SimDisk())
    driven.topic()
    driven.stop()
    with pytest.raises(EngineError) as refused:
        driven.store.append(ch.TopicDropped(1))
    assert refused.value.code is ErrorCode.SHUTTING_DOWN


def test_a_directory_is_opened_by_one_server_at_a_time() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    with pytest.raises(StorageError, match="in use"):
        DiskStore("data", small_options(), disk=disk)
    driven.stop()
    DiskStore("data", small_options(), disk=disk).close()


def test_statistics_count_what_happened() -> None:
    driven = filled(SimDisk(), count=30, tail_bytes_max=2000)
    read_all(driven.store)
    found = driven.store.statistics()
    assert found["store_records"] == sum(map(len, driven.written.values()))
    assert found["store_batches"] == 30
    assert found["store_reads"]
    assert found["store_failed"] == ""


def test_room_for_several_batches_is_asked_for_together() -> None:
    driven = Driven(SimDisk(), pending_bytes_max=10_000)
    driven.topic()
    driven.settle()
    driven.store.check_room(10_000)
    with pytest.raises(StoreOverloaded):
        driven.store.check_room(10_001)


def test_a_directory_of_somebody_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"")
    with pytest.raises(StorageError, match=r"holiday\.jpg"):
        DiskStore(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]
