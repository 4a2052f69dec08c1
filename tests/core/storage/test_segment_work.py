"""The work of the segment lane: it can be run again, and what is only a cache may fail."""

from __future__ import annotations

import errno

import pytest

from dragoman.core.storage.segment_work import ReserveWork
from dragoman.simulation.disk import SimDisk
from support.store import Driven, read_all

DIRECTORY = "data/topics/1/0-1"


def filled(disk: SimDisk, count: int = 100) -> Driven:
    driven = Driven(disk)
    driven.topic()
    for n in range(count):
        driven.produce([b"%d" % n * 50])
        driven.settle()
    return driven


def test_a_closed_segment_gets_its_index_beside_it_and_the_open_one_has_none() -> None:
    disk = SimDisk()
    filled(disk)
    names = disk.list(DIRECTORY)
    logs = [name for name in names if name.endswith(".log")]
    assert [name[:-6] for name in names if name.endswith(".index")] == [n[:-4] for n in logs[:-1]]


def test_an_index_that_cannot_be_written_is_no_failure() -> None:
    disk = SimDisk()

    def fails(_: int, operation: str, path: str) -> None:
        if path.endswith(".index") and operation == "write":
            raise OSError(errno.EIO, "told to fail")

    disk.fails = fails
    driven = filled(disk)
    assert driven.store.failure is None
    assert not [name for name in disk.list(DIRECTORY) if name.endswith(".index")]
    driven.stop()
    again = Driven(disk)
    assert read_all(again.store) == driven.written[1, 0]


def test_a_write_that_failed_half_way_is_done_whole_the_next_time() -> None:
    disk = SimDisk()
    driven = filled(disk, count=3)
    driven.topic(2)
    driven.produce([b"first" * 10], topic_id=1)
    driven.produce([b"second" * 10], topic_id=2)
    driven.flush()
    seen = 0

    def fails(_: int, operation: str, path: str) -> None:
        nonlocal seen
        seen += operation == "write" and path.startswith("data/topics/2")
        if seen:
            raise OSError(errno.ENOSPC, "told to be full")

    disk.fails = fails
    driven.settle()
    assert driven.store.statistics()["store_full"] == 1
    disk.fails = None
    for _ in range(4):
        driven.advance(2)
    assert driven.store.statistics()["store_full"] == 0
    again = Driven(disk.crashed(None))
    for topic_id in (1, 2):
        assert read_all(again.store, topic_id) == driven.written[topic_id, 0]


def test_a_reserve_that_does_not_fit_takes_no_room() -> None:
    disk = SimDisk()
    disk.bytes_max = 100_000
    with pytest.raises(OSError, match="full"):
        ReserveWork(disk, "reserve", 200_000, give_up=False).run()
    assert disk.list("") == []
    ReserveWork(disk, "reserve", 90_000, give_up=False).run()
    assert len(disk.file("reserve")) == 90_000
    ReserveWork(disk, "reserve", 90_000, give_up=True).run()
    assert disk.list("") == []
