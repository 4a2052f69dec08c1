"""The check of a whole directory: sound where it is sound, also beside a running server."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import orjson
import pytest

from dragoman.core.change import Trimmed
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
from support.keyed import Keyed
from support.sound import SEGMENTS, damaged_at, running, stopped
from support.store import Driven

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.storage.catalog_file import CatalogImage


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


def test_a_damaged_catalog_is_named_and_the_one_before_is_gone_by() -> None:
    disk, driven = running()
    driven.stop()
    newest = catalog_sequences(disk, Layout("data"))[0]
    disk.file(f"data/catalog/{newest}.json")[5] ^= 1
    report = verify("data", disk=disk)
    assert [d.path for d in report.damage] == [f"data/catalog/{newest}.json"]
    assert report.sequence < newest


def test_a_strange_directory_is_refused() -> None:
    with pytest.raises(StorageError, match="no data directory"):
        verify("data", disk=SimDisk())


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


def test_progress_goes_up_to_the_whole() -> None:
    disk, _ = stopped()
    told: list[tuple[int, int]] = []
    report = verify("data", disk=disk, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (report.bytes, report.bytes)


@pytest.mark.parametrize("seed", range(4))
def test_no_life_and_no_power_cut_leaves_what_is_called_damage(seed: int) -> None:
    random = Random(seed)
    disk = SimDisk()
    keyed = Keyed(disk)
    keyed.driven.topic()
    for _ in range(25):
        match random.randrange(8):
            case 0:
                keyed.compact_all(before=random.randrange(50))
            case 1:
                state = keyed.store.catalog.partition(1, 0)
                assert state is not None
                revealed = keyed.driven.revealed.get((1, 0), 0)
                start = random.randint(
                    state.log_start_offset, max(state.log_start_offset, revealed)
                )
                keyed.driven.change(Trimmed(1, 0, start))
            case 2:
                keyed.driven.advance(random.choice((1, 31)))
            case _:
                for _ in range(random.randint(1, 12)):
                    keyed.put_random(random)
        if random.random() < 0.5:
            keyed.driven.flush()
            keyed.driven.work()
        crashed = disk.crashed(random)
        assert verify("data", disk=disk).damage == []
        assert verify("data", disk=crashed).damage == []
        again = Driven(crashed)
        assert verify("data", disk=crashed).damage == []
        again.stop()
        report = verify("data", disk=crashed)
        assert (report.damage, report.remarks, report.clean) == ([], [], True)
