"""The check of a whole directory: sound where it is sound, also beside a running server."""

from __future__ import annotations

import pytest

from dragoman.core.storage.catalog_file import catalog_sequences
from dragoman.core.storage.error import StorageError
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.verify import verify
from dragoman.simulation.disk import SimDisk
from support.store import Driven


def running(count: int = 80) -> tuple[SimDisk, Driven]:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    for n in range(count):
        driven.produce([b"%d" % n * 50])
        driven.settle()
    driven.advance(31)
    return disk, driven


def test_a_sound_directory_is_counted_and_nothing_is_named() -> None:
    disk, driven = running()
    driven.stop()
    report = verify("data", disk=disk)
    assert report.damage == []
    assert (report.records, report.clean, report.journal_groups) == (80, True, 0)
    assert report.segments > 1


def test_beside_a_running_server_what_grows_is_no_damage() -> None:
    disk, driven = running()
    for n in range(20):
        driven.produce([b"%d" % n * 50])
        driven.flush()
        if n % 2:
            driven.work()
        report = verify("data", disk=disk)
        assert report.damage == []
        assert report.records == 80
    assert report.journal_groups > 0


def test_damage_names_topic_partition_offsets_and_file() -> None:
    disk, driven = running()
    driven.stop()
    path = "data/topics/1/0-1/00000000000000000000.log"
    disk.file(path)[300] ^= 1
    (damage,) = verify("data", disk=disk).damage
    assert str(damage).startswith("topic-1/0 offsets ")
    assert path in str(damage)


def test_missing_and_shortened_segments_are_damage() -> None:
    disk, driven = running()
    driven.stop()
    names = [n for n in disk.list("data/topics/1/0-1") if n.endswith(".log")]
    disk.unlink(f"data/topics/1/0-1/{names[0]}")
    data = disk.file(f"data/topics/1/0-1/{names[1]}")
    del data[len(data) // 2 // 8 * 8 :]
    damage = verify("data", disk=disk).damage
    assert damage[0].reason == "the file is missing"
    assert {d.path[-24:] for d in damage} == {names[0], names[1]}
    assert max(d.last for d in damage if d.path.endswith(names[1])) == int(names[2][:-4]) - 1


def test_a_damaged_catalog_is_named_and_the_one_before_is_gone_by() -> None:
    disk, driven = running()
    driven.stop()
    newest = catalog_sequences(disk, Layout("data"))[0]
    disk.file(f"data/catalog/{newest}.json")[5] ^= 1
    report = verify("data", disk=disk)
    assert [d.path for d in report.damage] == [f"data/catalog/{newest}.json"]
    assert report.sequence < newest


def test_a_damaged_durable_group_of_the_journal_is_named() -> None:
    disk, driven = running()
    for _ in range(3):
        driven.produce([b"a"])
        driven.flush()
        driven.work()
    report = verify("data", disk=disk)
    assert report.journal_groups == 3
    for name in disk.list("data/journal"):
        data = disk.file(f"data/journal/{name}")
        first = driven.store._journal._current
        assert first is not None
        if int(name) == first.number:
            data[first.position - 3 * 4096 + 80] ^= 1
    assert "journal group" in verify("data", disk=disk).damage[0].reason


def test_a_strange_directory_is_refused() -> None:
    with pytest.raises(StorageError, match="no data directory"):
        verify("data", disk=SimDisk())
