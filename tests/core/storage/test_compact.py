"""Compaction of a log on disk: what stays, what readers see meanwhile, and what files remain."""

from __future__ import annotations

import errno
from random import Random
from typing import TYPE_CHECKING

import pytest

from dragoman.core import change as ch
from dragoman.core.column import VarColumn
from dragoman.core.interface import WorkLane
from dragoman.core.storage.catalog_file import catalog_sequences, read_catalog
from dragoman.core.storage.compact import REST_US
from dragoman.core.storage.compaction import CompactWork
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.outside import OutsideLog
from dragoman.core.storage.reading import SegmentRead
from dragoman.core.storage.segment import segment_name
from dragoman.core.storage.verify import verify
from dragoman.simulation.disk import SimDisk
from support.keyed import Keyed, Row, read_rows
from support.store import Driven, ended, read_at

if TYPE_CHECKING:
    from dragoman.core.batch import Record


def filled(disk: SimDisk, *, count: int = 100, keys: int = 8, **options: int) -> Keyed:
    """Partition 0 of topic 1 with some hundred keyed rows in several segments."""
    keyed = Keyed(disk, tail_bytes_max=2000, **options)
    keyed.driven.topic(partitions=2)
    random = Random(7)
    for _ in range(count):
        keyed.put_random(random, keys=keys)
        keyed.driven.settle()
    return keyed


def files(disk: SimDisk, kind: str = ".log") -> list[str]:
    (directory,) = [name for name in disk.list("data/topics/1") if name.startswith("0-")]
    return [name for name in disk.list(f"data/topics/1/{directory}") if name.endswith(kind)]


def passes(keyed: Keyed) -> tuple[object, object]:
    found = keyed.store.statistics()
    return found["store_compactions"], found["store_compactions_given_up"]


def compact_work(keyed: Keyed) -> CompactWork:
    """The next piece of a pass, handed out and not run."""
    for work in keyed.store.take_work(keyed.driven.now()):
        if isinstance(work, CompactWork):
            return work
        work.run()
        keyed.store.finished(work, None)
    raise AssertionError("no piece of compaction was due")


def test_the_newest_of_each_key_is_what_is_left_of_closed_segments() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    before = read_rows(keyed.store)
    size = keyed.store.size(1, 0)[0]
    keyed.compact_all()
    found = keyed.check(keyed.store)
    assert passes(keyed) == (1, 0)
    assert len(found) < len(before) / 2
    assert keyed.store.size(1, 0)[0] < size / 2
    written = [name for name in files(disk) if "-" in name]
    assert len(files(disk)) == len(written) + 1
    assert len(written) < 4
    again = Driven(disk.crashed(None))
    assert again.store.damage == []
    assert read_rows(again.store) == found
    assert verify("data", disk=disk).damage == []


def test_everything_that_a_record_had_stays_with_it() -> None:
    disk = SimDisk()
    keyed = Keyed(disk)
    keyed.driven.topic()
    for n in range(60):
        keyed.put(
            [(b"a", b"%d" % n * 30), (b"b%d" % n, b"x")],
            headers=VarColumn.of([None, b"h%d" % n]),
            ids=b"%016d%016d" % (n, n + 1),
            producers=(b"p",),
            producer_epoch=3,
            base_sequence=2 * n,
        )
        keyed.driven.settle()
    before = {record.offset: record for record in records(keyed)}
    keyed.compact_all()
    after = records(keyed)
    assert len(after) < len(before)
    assert all(before[record.offset] == record for record in after)
    sequences = {record.sequence for record in after}
    assert None not in sequences


def records(keyed: Keyed) -> list[Record]:
    end = keyed.store.catalog.topics[1].partitions[0].next_offset
    found: list[Record] = []
    offset = 0
    while offset < end:
        for batch in read_at(keyed.store, 1, 0, offset):
            found += batch.records()
            offset = batch.next_offset
    return found


def test_readers_that_already_hold_batches_and_those_that_come_after_both_read_on() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    disk.caches_reads = False
    cold = keyed.store.read(1, 0, 0, 1 << 20)
    assert isinstance(cold, SegmentRead)
    keyed.compact_all()
    cold.run()
    assert cold.error is None
    assert cold.batches[0].next_offset > 0
    keyed.check(keyed.store)


def test_a_read_whose_file_went_meanwhile_is_served_from_the_one_in_its_place() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    disk.caches_reads = False
    cold = keyed.store.read(1, 0, 0, 1 << 20)
    assert isinstance(cold, SegmentRead)
    keyed.compact_all()
    for name in files(disk):
        assert name != f"{0:020d}.log"
    keyed.store._files._idle.clear()
    cold.run()
    assert cold.error is None
    found = {record.offset for batch in cold.batches for record in batch.records()}
    assert found <= set(keyed.check(keyed.store))
    assert read_rows(keyed.store) == keyed.check(keyed.store)


def test_batches_in_memory_go_a_few_at_a_time_once_they_were_compacted() -> None:
    disk = SimDisk()
    keyed = Keyed(disk)
    keyed.driven.topic()
    random = Random(1)
    for _ in range(100):
        keyed.put_random(random)
        keyed.driven.settle()
    assert keyed.store._logs[1, 0].tail_start == 0
    keyed.compact_all()
    assert keyed.store._logs[1, 0].tail_start > 0
    assert len(keyed.check(keyed.store)) < len(keyed.rows[0]) / 2


def test_nothing_is_due_before_as_much_is_closed_again_as_the_last_pass_left() -> None:
    keyed = filled(SimDisk())
    keyed.compact_all()
    assert keyed.compact()
    keyed.driven.settle()
    assert passes(keyed) == (1, 0)
    random = Random(2)
    for _ in range(100):
        keyed.put_random(random)
        keyed.driven.settle()
    keyed.compact_all()
    assert passes(keyed) == (2, 0)
    keyed.check(keyed.store)


def test_tombstones_go_after_their_grace_without_new_records() -> None:
    keyed = filled(SimDisk())
    keyed.compact_all()
    kept = [row for row in keyed.check(keyed.store).values() if row[1] is None]
    assert kept
    end = keyed.store.catalog.topics[1].partitions[0].next_offset
    keyed.compact_all(before=end)
    assert passes(keyed) == (2, 0)
    segment = keyed.store._logs[1, 0].segments[0]
    assert segment.tombstone_us == 0
    left = keyed.check(keyed.store)
    assert not [n for n, row in left.items() if row[1] is None and n < segment.next_offset]


def test_what_a_pass_left_is_known_after_a_restart() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.compact_all()
    again = Driven(disk.crashed(None))
    before = keyed.store._logs[1, 0].segments[0]
    after = again.store._logs[1, 0].segments[0]
    assert (after.number, after.is_clean, after.tombstone_us) == (
        before.number,
        True,
        before.tombstone_us,
    )
    assert after.sealed


def test_a_pass_ends_where_its_map_is_full_and_the_next_goes_on_there() -> None:
    disk = SimDisk()
    keyed = filled(disk, keys=60, compact_keys_max=20)
    keyed.compact_all()
    segments = keyed.store._logs[1, 0].segments
    assert [s.is_clean for s in segments if s.number] == [True, False][: len(segments)]
    counts = []
    for _ in range(12):
        keyed.compact_all()
        counts.append(len(keyed.check(keyed.store)))
    assert counts[-1] < len(keyed.rows[0]) * 0.8
    assert read_rows(Driven(disk.crashed(None)).store) == keyed.check(keyed.store)


def test_segments_that_lose_everything_vanish_and_the_log_start_stays() -> None:
    disk = SimDisk()
    keyed = Keyed(disk, tail_bytes_max=2000)
    keyed.driven.topic(partitions=1)
    for n in range(80):
        keyed.put([(b"k", b"%d" % n * 60)])
        keyed.driven.settle()
    keyed.compact_all()
    state = keyed.store.catalog.topics[1].partitions[0]
    assert state.log_start_offset == 0
    found = keyed.check(keyed.store)
    assert min(found) > 10
    assert read_at(keyed.store, 1, 0, 0)[0].base_offset == min(found)
    assert ended(keyed.store.read_since(1, 0, 1, 1))[0].base_offset == min(found)
    driven = Driven(disk.crashed(None))
    assert read_rows(driven.store) == found


def test_all_tombstones_and_no_file_is_made() -> None:
    disk = SimDisk()
    keyed = Keyed(disk, tail_bytes_max=2000)
    keyed.driven.topic(partitions=1)
    for n in range(300):
        keyed.put([(b"key-%d" % (n % 9), None)])
        keyed.driven.settle()
    closed = keyed.store._logs[1, 0].segments[-1].base
    assert closed > 0
    keyed.compact_all(before=closed)
    assert min(keyed.check(keyed.store)) == closed
    assert len(files(disk)) == 1
    outside = OutsideLog("data", disk=disk)
    assert next(outside.read(1, 0, 0)).base_offset == closed


def test_old_files_stay_until_no_catalog_names_them() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    plain = files(disk)
    keyed.driven.settle()
    keyed.compact()
    keyed.driven.settle()
    assert set(plain) < set(files(disk))
    keyed.driven.advance(31)  # a catalog names the new files; the one before it the old ones
    assert set(plain) < set(files(disk))
    image = sorted(catalog_sequences(disk, Layout("data")))[-1]
    crashed = disk.crashed(None)
    crashed.damage(f"data/catalog/{image}.json", lambda data: data.__setitem__(5, 0))
    fallen_back = Driven(crashed)
    assert [line for line in fallen_back.store.damage if "catalog" not in line] == []
    assert len(read_rows(fallen_back.store)) == len(keyed.rows[0])
    again = Driven(disk.crashed(None))
    assert set(plain) <= set(files(again.disk or disk))
    again.change(ch.OffsetPut(1, "group", "g", 0, 1))
    again.advance(31)
    assert len(files(again.disk or disk)) < len(plain)
    keyed.driven.change(ch.OffsetPut(1, "group", "g", 0, 1))
    keyed.driven.advance(31)
    assert not set(plain[:-1]) & set(files(disk))


def test_passes_of_a_log_that_rests_leave_no_files_but_those_that_a_catalog_names() -> None:
    disk = SimDisk()
    keyed = filled(disk, keys=60, compact_keys_max=6)
    for _ in range(12):
        keyed.driven.settle()
        keyed.compact()
        keyed.driven.advance(31)
    assert passes(keyed) == (12, 0)
    layout = Layout("data")
    sequences = catalog_sequences(disk, layout)
    named = {
        segment_name(segment.base, segment.number)
        for sequence in sequences
        for row in read_catalog(disk, layout, sequence).logs
        for segment in row.segments
        if row.partition == 0
    }
    assert set(files(disk)) <= named | {segment_name(keyed.store._logs[1, 0].segments[-1].base)}
    crashed = disk.crashed(None)
    crashed.damage(f"data/catalog/{max(sequences)}.json", lambda data: data.__setitem__(5, 0))
    fallen_back = Driven(crashed)
    assert [line for line in fallen_back.store.damage if "catalog" not in line] == []
    assert len(read_rows(fallen_back.store)) == len(keyed.rows[0])


def test_a_trim_while_a_pass_runs_cuts_its_result() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.compact()
    work = compact_work(keyed)
    middle = keyed.store._logs[1, 0].segments[3].base + 1
    keyed.driven.change(ch.Trimmed(1, 0, middle))
    keyed.driven.flush()
    keyed.store.take_work(keyed.driven.now())
    work.run()
    keyed.store.finished(work, None)
    keyed.driven.advance(31)
    assert keyed.store.catalog.topics[1].partitions[0].log_start_offset == middle
    found = keyed.check(keyed.store)
    assert min(found) >= middle
    assert read_rows(Driven(disk.crashed(None)).store) == found


def test_a_trim_of_everything_while_a_pass_runs_leaves_nothing_of_it() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.compact()
    work = compact_work(keyed)
    end = keyed.store.catalog.topics[1].partitions[0].next_offset
    keyed.driven.change(ch.Trimmed(1, 0, end))
    keyed.driven.flush()
    for other in keyed.store.take_work(keyed.driven.now()):
        other.run()
        keyed.store.finished(other, None)
    keyed.driven.mono_us += 31_000_000
    for other in keyed.store.take_work(keyed.driven.now()):
        other.run()
        keyed.store.finished(other, None)
    work.run()
    keyed.store.finished(work, None)
    keyed.driven.advance(31)
    assert passes(keyed) == (0, 1)
    assert files(disk) == []


def test_a_topic_that_is_dropped_while_a_pass_runs_leaves_no_file() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.compact()
    work = compact_work(keyed)
    keyed.driven.change(ch.TopicDropped(1))
    work.run()
    keyed.store.finished(work, None)
    keyed.driven.advance(31)
    assert passes(keyed) == (0, 1)
    assert disk.list("data/topics") == []


def test_a_topic_dropped_after_a_pass_takes_the_old_files_with_it() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.compact()
    keyed.driven.settle()
    keyed.driven.change(ch.TopicDropped(1))
    keyed.driven.advance(31)
    assert disk.list("data/topics") == []


def test_a_full_disk_ends_a_pass_and_the_next_one_comes_later() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    before = files(disk)
    keyed.compact()
    disk.bytes_max = disk.used
    keyed.driven.settle()
    assert passes(keyed) == (0, 1)
    assert files(disk) == before
    assert not keyed.store.statistics()["store_full"]
    disk.bytes_max = None
    assert not keyed.compact()
    keyed.driven.mono_us += REST_US
    keyed.driven.settle()
    keyed.compact_all()
    assert passes(keyed) == (1, 1)
    keyed.check(keyed.store)


def test_a_disk_that_others_filled_makes_room_by_giving_up_a_pass() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.compact()
    work = compact_work(keyed)
    keyed.store._writer.met_full_disk()
    keyed.store.take_work(keyed.driven.now())
    work.run()
    keyed.store.finished(work, None)
    keyed.driven.settle()
    assert passes(keyed) == (0, 1)
    assert [name for name in files(disk) if "-" in name] == []


@pytest.mark.parametrize("operation", ["write", "sync", "sync directory", "create"])
def test_a_disk_that_fails_a_pass_fences_the_log(operation: str) -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.compact()
    disk.fail_at(1, errno.EIO, operation)
    keyed.driven.settle()
    assert keyed.store.failure is not None
    found = keyed.check(Driven(disk.crashed(None)).store)
    assert len(found) == len(keyed.rows[0])


def test_a_damaged_segment_is_left_alone_and_so_is_what_follows_it() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    (directory,) = [name for name in disk.list("data/topics/1") if name.startswith("0-")]
    bad = files(disk)[3]
    disk.damage(f"data/topics/1/{directory}/{bad}", lambda data: data.__setitem__(100, 255))
    keyed.compact_all()
    assert passes(keyed) == (0, 1)
    keyed.compact_all()
    assert passes(keyed) == (1, 1)
    assert bad in files(disk)
    assert keyed.compact()
    keyed.driven.settle()
    assert passes(keyed) == (1, 1)


def test_an_orderly_stop_removes_what_a_pass_began() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.compact()
    work = compact_work(keyed)
    keyed.store.begin_close(keyed.driven.now())
    keyed.store.take_work(keyed.driven.now())
    work.run()
    keyed.store.finished(work, None)
    keyed.driven.settle()
    keyed.store.close()
    assert [name for name in files(disk) if "-" in name] == []
    assert disk._open == {}
    keyed.check(Driven(disk).store)


def test_files_of_a_pass_that_no_catalog_names_are_gone_after_a_start() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.compact()
    keyed.driven.settle()
    assert [name for name in files(disk) if "-" in name]
    again = Driven(disk.crashed(None))
    assert [name for name in files(again.disk or disk) if "-" in name] == []
    assert len(keyed.check(again.store)) == len(keyed.rows[0])


def test_names_are_never_used_twice_also_not_by_a_later_life() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.compact_all()
    first = {name for name in files(disk) if "-" in name}
    again = Keyed(disk.crashed(None), tail_bytes_max=2000)
    again.rows, again.stamps = keyed.rows, keyed.stamps
    random = Random(5)
    for _ in range(120):
        again.put_random(random)
        again.driven.settle()
    again.compact_all()
    assert passes(again) == (1, 0)
    assert again.driven.disk is not None
    second = {name for name in files(again.driven.disk) if "-" in name}
    assert second
    assert not first & second
    again.check(again.store)


def test_one_pass_at_a_time_and_the_others_are_told_to_wait() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    random = Random(3)
    for _ in range(100):
        keyed.put_random(random, 1)
        keyed.driven.settle()
    assert keyed.compact(0)
    assert not keyed.compact(1)
    keyed.driven.settle()
    assert keyed.compact(1)
    keyed.driven.settle()
    assert passes(keyed) == (2, 0)
    for partition in (0, 1):
        keyed.check(keyed.store, partition)
    assert keyed.store.compact(9, 0, up_to=1, tombstones_before_us=0)


def test_only_what_is_visible_is_touched() -> None:
    keyed = filled(SimDisk())
    segments = keyed.store._logs[1, 0].segments
    up_to = segments[2].next_offset
    last = segments[-1]
    assert keyed.store.compact(1, 0, up_to=up_to + 1, tombstones_before_us=0)
    keyed.driven.settle()
    segments = keyed.store._logs[1, 0].segments
    assert segments[0].number
    assert [segment.number for segment in segments if segment.base >= up_to][-1] == 0
    assert segments[-1] is last
    keyed.check(keyed.store)


def test_the_pace_is_kept() -> None:
    disk = SimDisk()
    keyed = filled(disk, count=300, compact_bytes_per_s=1_000_000)
    keyed.compact()
    began_us = keyed.driven.mono_us
    while keyed.store.statistics()["store_compactions"] == 0:
        keyed.driven.work()
        keyed.driven.mono_us += 10_000
    # 300 small batches count as 4 KiB each, twice; the last of three pieces is not waited for.
    assert 2_000_000 < keyed.driven.mono_us - began_us < 3_000_000


def test_a_reader_outside_goes_on_across_compaction() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.driven.advance(2)
    outside = OutsideLog("data", disk=disk)
    reading = outside.read(1, 0, 0)
    first = next(reading)
    keyed.compact_all()
    found = [*first.records(), *[record for batch in reading for record in batch.records()]]
    offsets = [record.offset for record in found]
    assert offsets == sorted(set(offsets))
    rows: list[Row] = [(record.key, record.value) for record in found]
    assert rows == [keyed.rows[0][offset] for offset in offsets]
    assert set(keyed.check(keyed.store)) - set(offsets) == set()
    outside.refresh()
    fresh = {record.offset for batch in outside.read(1, 0, 0) for record in batch.records()}
    assert fresh == set(keyed.check(keyed.store))


def test_the_scrub_and_verify_find_a_compacted_log_whole() -> None:
    disk = SimDisk()
    keyed = filled(disk)
    keyed.compact_all()
    keyed.driven.advance(3700)
    for _ in range(100):
        keyed.driven.advance(1)
    assert keyed.store.statistics()["store_damaged_batches"] == 0
    assert verify("data", disk=disk).damage == []


def test_the_work_runs_in_a_lane_of_its_own() -> None:
    keyed = filled(SimDisk())
    keyed.compact()
    assert compact_work(keyed).lane is WorkLane.COMPACT
