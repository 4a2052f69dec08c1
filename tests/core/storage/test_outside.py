"""Readers outside the server see what is visible, and not a record more."""

from __future__ import annotations

import pytest

from dragoman.core import change as ch
from dragoman.core.storage.outside import OutsideLog
from dragoman.core.store import StoreDamage
from dragoman.simulation.disk import SimDisk
from support.store import Driven


def values(log: OutsideLog, offset: int = 0, next_offset: int | None = None) -> list[bytes | None]:
    return [
        batch.values[n]
        for batch in log.read(1, 0, offset, next_offset=next_offset)
        for n in range(batch.index_of(offset), batch.count)
    ]


def running(count: int = 100) -> tuple[SimDisk, Driven]:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    for n in range(count):
        driven.produce([b"%d" % n * 30])
        driven.settle()
    driven.advance(2)
    return disk, driven


def test_a_reader_sees_topics_partitions_and_every_visible_record() -> None:
    disk, driven = running()
    log = OutsideLog("data", disk=disk)
    assert [topic.name for topic in log.topics()] == ["topic-1"]
    assert [(p.log_start, p.high_watermark) for p in log.partitions(1)] == [(0, 100)]
    assert values(log) == driven.written[1, 0]
    assert values(log, 40) == driven.written[1, 0][40:]
    assert values(log, 40, 41) == [driven.written[1, 0][40]]


def test_records_beyond_the_watermark_are_not_read_before_a_refresh() -> None:
    disk, driven = running()
    log = OutsideLog("data", disk=disk)
    driven.produce([b"later"])
    driven.advance(2)
    assert len(values(log)) == 100
    log.refresh()
    assert values(log)[-1] == b"later"


def test_trimmed_records_and_unknown_partitions_are_nothing() -> None:
    disk, driven = running()
    driven.change(ch.Trimmed(1, 0, 60))
    driven.advance(31)
    log = OutsideLog("data", disk=disk)
    assert len(values(log)) == 40
    assert list(log.read(1, 5, 0)) == []
    assert list(log.read(9, 0, 0)) == []


def test_damage_below_the_catalogs_size_is_an_error_that_names_it() -> None:
    disk, driven = running()
    driven.advance(31)
    disk.file("data/topics/1/0-1/00000000000000000000.log")[200] ^= 1
    log = OutsideLog("data", disk=disk)
    with pytest.raises(StoreDamage) as damage:
        values(log)
    offset = damage.value.last + 1
    assert values(log, offset) == driven.written[1, 0][offset:]
