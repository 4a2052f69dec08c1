"""Reads that block are handed out once and told of once."""

from __future__ import annotations

import pytest

from dragoman.core.calls import DeleteRecords, Fetch
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.interface import WorkLane
from dragoman.core.memory import MemoryStore
from dragoman.core.reader import Read, damaged
from dragoman.core.store import StoreDamage
from support.log import Log, values


@pytest.fixture
def log() -> Log:
    made = Log(MemoryStore(blocking_reads=True))
    made.put("t", b"a")
    return made


def test_a_blocking_read_is_handed_out_once(log: Log) -> None:
    outcome = log.hand(Fetch("t", 0))
    assert not outcome.ready
    (work,) = log.engine.take_work()
    assert work.lane is WorkLane.READ
    assert log.engine.take_work() == []
    assert log.engine.statistics()["reading"] == 1
    work.run()
    log.engine.finished(work, None, log.now)
    assert values(outcome.reply.slices) == [b"a"]  # type: ignore[union-attr]
    assert log.engine.statistics()["reading"] == 0
    assert log.engine.statistics()["cold_reads"] == 1


def test_reads_may_end_in_any_order(log: Log) -> None:
    outcomes = [log.hand(Fetch("t", 0)) for _ in range(3)]
    for work in reversed(log.engine.take_work()):
        work.run()
        log.engine.finished(work, None, log.now)
    assert log.engine.take_ready() == outcomes[::-1]


def test_what_was_read_is_cut_at_the_watermark_as_it_stands_then(log: Log) -> None:
    outcome = log.hand(Fetch("t", 0))
    log.put("t", b"b")
    log.work()
    assert values(outcome.reply.slices) == [b"a"]  # type: ignore[union-attr]
    assert outcome.reply.high_watermark == 2  # type: ignore[union-attr]


def test_a_blocking_read_that_meets_damage_names_it(log: Log) -> None:
    log.store.damaged[1, 0] = [(0, 0)]
    outcome = log.hand(Fetch("t", 0))
    log.work()
    assert isinstance(outcome.reply, Failure)
    assert outcome.reply.code is ErrorCode.DAMAGED


def test_damage_is_told_with_its_range() -> None:
    error = damaged(StoreDamage(3, 5, "segment 0 at byte 64"))
    assert error.facts == {"first": 3, "last": 5}


def test_a_read_whose_records_were_deleted_meanwhile_does_not_go_on_behind_them() -> None:
    log = Log()
    for number in range(4):
        log.put("t", b"%d" % number)
    partition = log.engine._directory.topics[1].partitions[0]
    read = Read(partition, 0, 0, 100, 1 << 20, 0, False)
    batches = log.store.read(1, 0, 0, 1)
    assert isinstance(batches, list)
    log.ask(DeleteRecords("t", 0, 3))
    slices, next_offset = log.engine._reader.take(read, batches[:1])
    assert next_offset < 3
    assert values(slices) == [b"%d" % number for number in range(next_offset)]
