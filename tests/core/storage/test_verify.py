"""The check of a whole directory: sound where it is sound, also beside a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.storage.catalog_file import (
    SegmentRow,
    catalog_sequences,
    read_catalog,
    with_checksum,
    write_catalog,
)
from dragoman.core.storage.error import StorageError
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.verify import Damage, verify
from dragoman.simulation.disk import SimDisk
from support.store import Driven

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.storage.catalog_file import CatalogImage


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


SEGMENTS = "data/topics/1/0-1"


def stopped() -> tuple[SimDisk, list[str]]:
    """A directory after an orderly stop, and the names of its segment files."""
    disk, driven = running()
    driven.stop()
    return disk, [n for n in disk.list(SEGMENTS) if n.endswith(".log")]


def damaged_at(disk: SimDisk, path: str, at: int) -> list[Damage]:
    """What is named where one bit of one byte is other than it was."""
    data = disk.file(path)
    data[at] ^= 1 << at % 8
    report = verify("data", disk=disk)
    data[at] ^= 1 << at % 8
    return report.damage


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


def test_any_byte_of_any_catalog_is_missed() -> None:
    disk, _ = stopped()
    sequences = catalog_sequences(disk, Layout("data"))
    assert len(sequences) == 2
    for sequence in sequences:
        path = f"data/catalog/{sequence}.json"
        for at in range(0, len(disk.file(path)), 7):
            assert path in [found.path for found in damaged_at(disk, path, at)]


def test_any_byte_of_what_is_visible_is_missed() -> None:
    disk, _ = stopped()
    for at in range(len(disk.file("data/visible"))):
        (found,) = damaged_at(disk, "data/visible", at)
        assert found.path == "data/visible"


def test_any_byte_of_a_durable_journal_group_is_missed_where_it_stands() -> None:
    disk, driven = running()
    for n in range(3):
        driven.produce([b"%d" % n * 50])
        driven.flush()
    current = driven.store._journal._current
    assert current is not None
    path = f"data/journal/{current.number}"
    group_at = current.position - 3 * 4096
    assert verify("data", disk=disk).journal_groups == 3
    length = max(at for at in range(4096) if disk.file(path)[group_at + at])
    for at in range(group_at, group_at + length, 3):
        damage = damaged_at(disk, path, at)
        assert [found.reason.startswith("journal group") for found in damage] == [True]


def test_the_journal_that_only_the_older_catalog_needs_is_checked_too() -> None:
    disk, driven = running()
    for n in range(3):
        driven.produce([b"%d" % n * 50])
        driven.settle()
    driven.advance(31)
    current = driven.store._journal._current
    assert current is not None
    assert verify("data", disk=disk).journal_groups == 0
    at = current.position - 2 * 4096 + 80
    (found,) = damaged_at(disk, f"data/journal/{current.number}", at)
    assert "before catalog" in found.reason
    assert found.position == at - 80


def rewritten(disk: SimDisk, change: Callable[[CatalogImage], None]) -> list[Damage]:
    """What is named where the newest catalog says something else, with a checksum that fits."""
    layout = Layout("data")
    image = read_catalog(disk, layout, catalog_sequences(disk, layout)[0])
    change(image)
    write_catalog(disk, layout, image)
    return verify("data", disk=disk).damage


def test_a_catalog_that_leaves_out_a_file_is_named_with_the_offsets() -> None:
    disk, names = stopped()
    (found,) = rewritten(disk, lambda image: image.logs[0].segments.pop(1))  # type: ignore[arg-type,return-value]
    assert (found.first, found.last) == (int(names[1][:-4]), int(names[2][:-4]) - 1)
    assert found.reason == "it names no file that holds these"


@pytest.mark.parametrize(("field", "reason"), [(2, "it ends before offset"), (3, "its newest")])
def test_a_catalog_that_contradicts_its_segment_is_named(field: int, reason: str) -> None:
    disk, names = stopped()

    def contradict(image: CatalogImage) -> None:
        row = list(image.logs[0].segments[-1])
        row[field] -= 1
        image.logs[0].segments[-1] = SegmentRow(*row)
        if field == 2:
            state = image.state["topics"][0]["partitions"][0]
            assert state["next_offset"] == row[2] + 1
            state["next_offset"] = row[2]

    damage = rewritten(disk, contradict)
    assert f"{SEGMENTS}/{names[-1]}" in [found.path for found in damage]
    assert any(found.reason.startswith(reason) for found in damage)


def test_what_is_visible_beyond_the_log_is_named() -> None:
    disk, _ = stopped()
    text = orjson.dumps({"log_epoch": 0, "partitions": [[1, 0, 0, 81]]})
    disk.file("data/visible")[:] = with_checksum(text)
    (found,) = verify("data", disk=disk).damage
    assert found.path == "data/visible"
    assert "its log ends at 80" in found.reason


def test_what_a_crash_may_leave_is_a_remark_and_no_damage() -> None:
    disk, driven = running()
    driven.store.close()
    (name, *_) = [n for n in disk.list(SEGMENTS) if n.endswith(".index")]
    del disk.file(f"{SEGMENTS}/{name}")[30:]
    del disk.file("data/visible")[5:]
    report = verify("data", disk=disk)
    assert report.damage == []
    assert len(report.remarks) == 2
    Driven(disk).stop()
    report = verify("data", disk=disk)
    assert (report.damage, report.remarks) == ([], [])


def test_a_file_that_no_catalog_names_is_a_remark() -> None:
    disk, _ = stopped()
    disk.close(disk.open(f"{SEGMENTS}/00000000000000009999.log", create=True))
    report = verify("data", disk=disk)
    assert report.damage == []
    assert len(report.remarks) == 1


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


def test_progress_goes_up_to_the_whole() -> None:
    disk, _ = stopped()
    told: list[tuple[int, int]] = []
    report = verify("data", disk=disk, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (report.bytes, report.bytes)
