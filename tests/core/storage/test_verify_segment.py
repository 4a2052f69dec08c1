"""The check of a segment and of its index: no byte of them may change unseen."""

from __future__ import annotations

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.storage.verify import verify
from support.sound import SEGMENTS, damaged_at, running, stopped


def test_any_byte_of_a_segment_is_missed_with_its_offsets() -> None:
    disk, names = stopped()
    path = f"{SEGMENTS}/{names[1]}"
    first, last = int(names[1][:-4]), int(names[2][:-4]) - 1
    for at in range(0, len(disk.file(path)), 13):
        damage = damaged_at(disk, path, at)
        assert damage, at
        for found in damage:
            assert (found.path, found.topic, found.partition) == (path, "topic-1", 0)
            assert first <= found.first <= found.last <= last
        assert damage[0].position <= at
    assert verify("data", disk=disk).damage == []


def test_any_byte_of_an_index_is_missed_at_its_place() -> None:
    disk, names = stopped()
    path = f"{SEGMENTS}/{names[1].removesuffix('.log')}.index"
    assert verify("data", disk=disk).indexes == len(names) - 1
    for at in range(len(disk.file(path))):
        (found,) = damaged_at(disk, path, at)
        assert (found.path, found.position) == (path, at)


def test_time_that_goes_back_is_named() -> None:
    disk, driven = running(10)
    state = driven.store.catalog.partition(1, 0)
    assert state is not None
    batch = RecordBatch(1, VarColumn.single(b"late"), origin=Origin.NONE)
    batch.place(base_offset=10, timestamp_us=1_000_000, log_epoch=0)
    driven.store.append_batch(1, 0, batch)
    driven.settle()
    driven.stop()
    (found,) = verify("data", disk=disk).damage
    assert (found.first, found.last) == (10, 10)
    assert "time" in found.reason


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


def test_damage_names_topic_partition_offsets_and_file() -> None:
    disk, driven = running()
    driven.stop()
    path = "data/topics/1/0-1/00000000000000000000.log"
    disk.file(path)[300] ^= 1
    (damage,) = verify("data", disk=disk).damage
    assert str(damage).startswith("topic-1/0 offsets ")
    assert path in str(damage)
