"""Recovery: exactly what was promised, from whatever a stop or a crash left behind."""

from __future__ import annotations

import pytest

from dragoman.core.storage.catalog_file import catalog_sequences
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.error import StorageError
from dragoman.core.storage.group import scan_groups
from dragoman.core.storage.layout import Layout
from dragoman.core.store import StoreDamage
from dragoman.simulation.disk import PowerCut, SimDisk
from support.store import Driven, read_all, read_at, small_options

LAYOUT = Layout("data")
DIRECTORY = "data/topics/1/0-1"


def crashed(count: int = 12, *, tail: int = 6, stop: bool = False) -> tuple[SimDisk, Driven]:
    """A directory with `count` records in segments and `tail` more in the journal alone."""
    disk = SimDisk()
    driven = Driven(disk, journal_file_bytes=512 * 1024, journal_first_bytes=512 * 1024)
    driven.topic()
    for n in range(count):
        driven.produce([b"%d" % n * 200])
        driven.settle()
    driven.advance(31)
    for n in range(count, count + tail):
        driven.produce([b"%d" % n * 200])
        driven.flush()
    if stop:
        driven.stop()
    return disk.crashed(None), driven


def test_what_only_the_journal_holds_is_replayed_into_segments() -> None:
    disk, driven = crashed()
    again = Driven(disk)
    assert again.store.statistics()["store_replayed_groups"] == 6
    assert read_all(again.store) == driven.written[1, 0]
    third = Driven(disk.crashed(None))
    assert third.store.statistics()["store_replayed_groups"] == 0
    assert read_all(third.store) == driven.written[1, 0]


def test_an_orderly_stop_leaves_nothing_to_replay_and_keeps_the_epoch() -> None:
    disk, driven = crashed(stop=True)
    again = Driven(disk)
    assert again.store.clean
    assert again.store.catalog.log_epoch == 0
    assert again.store.statistics()["store_replayed_groups"] == 0
    assert read_all(again.store) == driven.written[1, 0]


def test_every_start_after_a_crash_raises_the_epoch() -> None:
    disk, _ = crashed()
    epochs = []
    for _ in range(3):
        epochs.append(Driven(disk).store.catalog.log_epoch)
        disk = disk.crashed(None)
    assert epochs == [1, 2, 3]


def test_files_that_the_catalog_does_not_name_are_removed() -> None:
    disk, driven = crashed()
    for path in (f"{DIRECTORY}/00000000000000999999.log", "data/topics/77/0-9/x.log"):
        disk.make_directory(path.rpartition("/")[0])
        disk.close(disk.open(path, create=True))
    again = Driven(disk)
    assert disk.list("data/topics") == ["1"]
    assert read_all(again.store) == driven.written[1, 0]


def test_what_lies_beyond_the_recorded_size_is_overwritten_and_cut() -> None:
    disk, driven = crashed(tail=1)
    last = f"{DIRECTORY}/{[n for n in disk.list(DIRECTORY) if n.endswith('.log')][-1]}"
    disk.file(last).extend(b"\xff" * 5000)
    again = Driven(disk)
    assert read_all(again.store) == driven.written[1, 0]
    assert b"\xff" not in disk.file(last)


def test_a_damaged_newest_catalog_falls_back_on_the_one_before() -> None:
    disk, driven = crashed()
    newest, previous = catalog_sequences(disk, LAYOUT)
    disk.file(f"data/catalog/{newest}.json")[10] ^= 1
    again = Driven(disk)
    assert f"catalog/{newest}.json" in again.store.damage[0]
    assert read_all(again.store) == driven.written[1, 0]
    assert previous in catalog_sequences(disk, LAYOUT)


def test_what_the_catalog_before_needs_is_not_written_over_by_the_life_after_a_start() -> None:
    disk = SimDisk()
    small = {"journal_file_bytes": 16384, "journal_first_bytes": 4096, "journal_files_max": 16}
    driven = Driven(disk, **small)
    driven.topic()
    driven.settle()
    for _ in range(2):
        for n in range(6):
            driven.produce([b"%d" % n * 200])
            driven.settle()
        driven.advance(31)
    newest, previous = catalog_sequences(disk, LAYOUT)
    assert driven.store.revealed_sequence == newest > previous
    life = disk.killed()
    heir = Driven(life, **small)
    heir.written[1, 0] = driven.written[1, 0]
    for n in range(8):
        heir.produce([b"heir %d" % n * 200])
        heir.settle()
    disk = life.killed()
    assert catalog_sequences(disk, LAYOUT) == [newest, previous]
    disk.file(f"data/catalog/{newest}.json")[10] ^= 1
    again = Driven(disk, **small)
    assert f"catalog/{newest}.json" in again.store.damage[0]
    assert read_all(again.store) == heir.written[1, 0]


def test_a_partition_that_was_made_again_keeps_what_is_written_to_it() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic(partitions=2)
    driven.produce([b"of the first life"], partition=1)
    driven.settle()
    driven.topic(partitions=1)
    driven.topic(partitions=2)
    driven.written[1, 1] = []
    driven.produce([b"of the second"], partition=1)
    driven.settle()
    driven.advance(31)
    again = Driven(disk.crashed())
    assert again.store.damage == []
    assert read_all(again.store, partition=1) == [b"of the second"]


def test_a_directory_without_a_catalog_is_refused_and_left_alone() -> None:
    disk, _ = crashed()
    for sequence in catalog_sequences(disk, LAYOUT):
        disk.unlink(f"data/catalog/{sequence}.json")
    files = disk.list(DIRECTORY)
    with pytest.raises(StorageError, match="no catalog"):
        Driven(disk)
    assert disk.list(DIRECTORY) == files


def test_a_lost_catalog_whose_journal_does_not_begin_at_the_beginning_is_refused() -> None:
    disk, _ = crashed()
    for sequence in catalog_sequences(disk, LAYOUT):
        disk.unlink(f"data/catalog/{sequence}.json")
    for name in disk.list(DIRECTORY):
        disk.unlink(f"{DIRECTORY}/{name}")
    disk.remove_directory(DIRECTORY)
    disk.remove_directory("data/topics/1")
    fd = disk.open("data/journal/0")
    first = next(iter(scan_groups(disk, fd, 0)))
    disk.file("data/journal/0")[first.position] ^= 1
    with pytest.raises(StorageError, match="damaged"):
        Driven(disk)


def damaged_journal() -> tuple[SimDisk, Driven, int]:
    """A directory whose third group from the end is damaged, and the sequence it begins with."""
    disk, driven = crashed()
    fd = disk.open("data/journal/0")
    group = list(scan_groups(disk, fd, 0))[-3]
    disk.close(fd)
    disk.file("data/journal/0")[group.position + 99] ^= 16
    return disk, driven, group.first_sequence


def test_a_damaged_durable_group_refuses_the_start_and_says_what_to_do() -> None:
    disk, _, sequence = damaged_journal()
    for _ in range(2):
        with pytest.raises(StorageError, match=f"--give-up-from {sequence}"):
            Driven(disk)


def test_a_damaged_group_is_given_up_only_when_told_so() -> None:
    disk, driven, sequence = damaged_journal()
    with pytest.raises(StorageError):
        Driven(disk)
    store = DiskStore("data", small_options(), disk=disk, give_up_from=sequence)
    assert read_all(store) == driven.written[1, 0][:-3]
    store.close()
    assert read_all(Driven(disk).store) == driven.written[1, 0][:-3]


def test_a_damaged_last_group_is_a_torn_tail() -> None:
    disk, driven = crashed()
    fd = disk.open("data/journal/0")
    group = list(scan_groups(disk, fd, 0))[-1]
    disk.file("data/journal/0")[group.position + 99] ^= 16
    again = Driven(disk)
    assert again.store.damage == []
    assert read_all(again.store) == driven.written[1, 0][:-1]


def test_after_a_torn_tail_new_records_take_the_offsets_and_survive() -> None:
    disk, driven = crashed()
    fd = disk.open("data/journal/0")
    group = list(scan_groups(disk, fd, 0))[-2]
    disk.file("data/journal/0")[group.position + 3] ^= 16
    disk.file("data/journal/0")[list(scan_groups(disk, fd, 0))[-1].position + 3] ^= 16
    again = Driven(disk)
    kept = read_all(again.store)
    assert kept == driven.written[1, 0][:-2]
    again.produce([b"new"])
    again.settle()
    disk.file("data/journal/0")[group.position + 3] ^= 16
    third = Driven(disk.crashed(None))
    assert read_all(third.store) == [*kept, b"new"]


def segments(disk: SimDisk) -> list[str]:
    return [f"{DIRECTORY}/{n}" for n in disk.list(DIRECTORY) if n.endswith(".log")]


@pytest.mark.parametrize("harm", ["missing", "cut", "emptied"])
def test_a_lost_segment_is_named_and_all_others_are_served(harm: str) -> None:
    disk, driven = crashed(count=60)
    second = segments(disk)[1]
    base, end = (int(path[-24:-4]) for path in segments(disk)[1:3])
    if harm == "missing":
        disk.unlink(second)
    else:
        del disk.file(second)[0 if harm == "emptied" else 2000 :]
    again = Driven(disk)
    assert second in again.store.damage[0]
    values = driven.written[1, 0]
    lost: set[int] = set()
    places: set[str] = set()
    for offset in range(len(values)):
        try:
            batch = read_at(again.store, 1, 0, offset, 1)[0]
        except StoreDamage as damage:
            lost.update(range(damage.first, damage.last + 1))
            places.add(damage.place)
        else:
            assert offset not in lost
            assert batch.values[offset - batch.base_offset] == values[offset]
    assert lost
    assert all(second in place for place in places)
    assert lost <= set(range(base, end))
    again.produce([b"more"])
    again.settle()
    assert read_at(again.store, 1, 0, len(values))[0].values[0] == b"more"


def test_recovery_cut_off_at_any_step_is_done_again_from_the_start() -> None:
    disk, driven = crashed()
    operations = 0
    while True:
        operations += 1
        broken = disk.crashed(None)
        broken.cut_power_at(operations)
        try:
            Driven(broken)
        except PowerCut:
            again = Driven(broken.crashed(None))
            assert read_all(again.store) == driven.written[1, 0], broken.log
            assert again.store.damage == []
        else:
            break
    assert operations > 15


def test_a_new_directory_cut_off_at_any_step_is_made_again() -> None:
    operations = 0
    while True:
        operations += 1
        disk = SimDisk()
        disk.cut_power_at(operations)
        try:
            Driven(disk)
        except PowerCut:
            again = Driven(disk.crashed(None))
            again.topic()
            again.settle()
        else:
            break
    assert operations > 10


def test_a_journal_file_that_a_kill_left_without_an_entry_stays_after_a_power_cut() -> None:
    disk = SimDisk()
    options = {"journal_first_bytes": 16 * 1024, "journal_file_bytes": 16 * 1024}
    driven = Driven(disk, **options)

    def fails(_: int, operation: str, path: str) -> None:
        if (operation, path) == ("sync directory", LAYOUT.journal):
            raise PowerCut

    disk.fails = fails
    driven.topic()
    values: list[bytes] = []

    def fill() -> None:
        while True:
            values.append(b"%d" % len(values))
            driven.produce(values[-1:])
            driven.settle()

    with pytest.raises(PowerCut):
        fill()
    disk = disk.killed()
    assert disk.list(LAYOUT.journal) == ["0", "1"]
    again = Driven(disk, **options)
    again.produce([b"into the new file"])
    again.flush()
    found = read_all(Driven(disk.stripped(), **options).store)
    assert found == [*values, b"into the new file"]
