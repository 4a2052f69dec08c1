"""When segments are written, and a full disk: nothing is lost or torn, and it heals by itself."""

from __future__ import annotations

import pytest

from dragoman.core import change as ch
from dragoman.core.storage.segment_work import SegmentWrite
from dragoman.core.store import StoreFull
from dragoman.simulation.disk import SimDisk
from support.store import Driven, read_all


def fill_up(driven: Driven, disk: SimDisk, limit: int) -> None:
    """Produces until the store says that the disk is full."""
    disk.bytes_max = limit
    for n in range(2000):
        try:
            driven.produce([b"%d" % n * 20])
        except StoreFull:
            return
        driven.flush()
        driven.work()
    raise AssertionError("the disk never became full")


@pytest.mark.parametrize("limit", range(150_000, 260_000, 11_000))
def test_a_full_disk_refuses_records_and_keeps_all_it_took(limit: int) -> None:
    disk = SimDisk()
    driven = Driven(disk, tail_bytes_max=1 << 20)
    driven.topic()
    driven.settle()
    fill_up(driven, disk, limit)
    driven.settle()
    assert driven.store.failure is None
    taken = list(driven.written[1, 0])
    assert read_all(driven.store) == taken
    revealed = driven.revealed[1, 0]
    survived = read_all(Driven(disk.crashed(None)).store)
    assert survived == taken[: len(survived)]
    assert len(survived) >= revealed


def test_it_heals_when_space_returns() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    driven.settle()
    fill_up(driven, disk, 200_000)
    assert driven.store.statistics()["store_full"] == 1
    disk.bytes_max = None
    for _ in range(4):
        driven.advance(2)
    assert driven.store.statistics()["store_full"] == 0
    assert len(disk.file("data/reserve")) == 8 * 1024
    driven.produce([b"again"])
    driven.settle()
    assert driven.revealed[1, 0] == len(driven.written[1, 0])
    assert read_all(Driven(disk.crashed(None)).store) == driven.written[1, 0]


def test_a_start_on_a_full_disk_gives_the_reserve_up() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    for n in range(10):
        driven.produce([b"%d" % n * 20])
        driven.settle()
    disk = disk.crashed(None)
    assert len(disk.file("data/reserve")) == 8 * 1024
    disk.bytes_max = disk.used
    again = Driven(disk, journal_first_bytes=4 * 1024)
    assert read_all(again.store) == driven.written[1, 0]
    assert disk.list("data").count("reserve") == 0


def test_on_a_full_disk_retention_still_frees_room() -> None:
    disk = SimDisk()
    driven = Driven(disk, journal_files_max=4)
    driven.topic()
    driven.settle()
    fill_up(driven, disk, 200_000)
    end = driven.revealed[1, 0]
    driven.change(ch.Trimmed(1, 0, end))
    for _ in range(6):
        driven.advance(31)
    assert driven.store.statistics()["store_full"] == 0
    driven.produce([b"again"])
    driven.settle()
    assert driven.store.failure is None


def segment_works(driven: Driven) -> list[SegmentWrite]:
    """The segment writes that are due; other work is done at once."""
    found = []
    for work in driven.store.take_work(driven.now()):
        if isinstance(work, SegmentWrite):
            found.append(work)
        else:
            work.run()
            driven.store.finished(work, None)
    return found


def flushed_works(driven: Driven) -> list[SegmentWrite]:
    """What a flush of one record brings a thread to write."""
    driven.produce([b"value"])
    flush = driven.store.take_flush(driven.now())
    assert flush is not None
    flush.run()
    driven.store.flushed(flush, None)
    return segment_works(driven)


def test_small_groups_wait_for_more_before_a_thread_is_woken() -> None:
    driven = Driven(SimDisk(), segment_linger_ms=10)
    driven.topic()
    driven.settle()
    assert not flushed_works(driven)
    assert not flushed_works(driven)
    driven.mono_us += 10_000
    (work,) = segment_works(driven)
    assert len(work.groups) == 2


def test_a_stop_does_not_linger() -> None:
    driven = Driven(SimDisk(), segment_linger_ms=60_000)
    driven.topic()
    driven.settle()
    assert not flushed_works(driven)
    driven.store.begin_close(driven.now())
    assert segment_works(driven)
