"""Compaction asked of a store in memory: which topics, when, and what every reader sees after."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dragoman.core.calls import (
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    DescribeTopic,
    Fetch,
    Follow,
    Produce,
    TopicConfig,
    UpdateTopic,
    Whence,
)
from dragoman.core.error import Failure
from dragoman.core.memory import MemoryStore
from support.log import Log, batch, values

Row = tuple[bytes | None, bytes | None]


def put(log: Log, *rows: Row, partition: int = 0) -> None:
    keys = [key for key, _ in rows]
    log.ask(Produce("t", batch(*[value for _, value in rows], keys=keys), partition))


def filled(config: TopicConfig, rows: int = 20, **options: int) -> Log:
    """Topic t with a row each of the keys a, b, c in turn, each a closed segment but the last."""
    log = Log(**options)
    log.ask(CreateTopic("t", 1, config=config))
    for number in range(rows):
        put(log, (b"abc"[number % 3 :][:1], b"%d" % number))
    return log


def pass_over(log: Log) -> int:
    """Lets the time of a check pass, and works off what is due; returns how much that was."""
    log.pass_time(6)
    works = 0
    while found := log.work():
        works += found
        log.pass_time(0.05)
    return works


def offsets(log: Log, **fields: Any) -> list[int]:
    reply = log.ask(Fetch("t", 0, **fields))
    return [r.offset for piece in reply.slices for r in piece.batch.records(*piece[1:])]


def test_a_compacted_topic_keeps_the_newest_of_each_key() -> None:
    log = filled(TopicConfig(compact=True))
    assert pass_over(log) == 1
    assert offsets(log) == [16, 17, 18, 19]
    assert log.read("t") == [b"16", b"17", b"18", b"19"]
    described = log.ask(DescribeTopic("t")).topic.partitions[0]
    assert (described.log_start_offset, described.high_watermark) == (0, 20)


def test_another_topic_keeps_everything() -> None:
    log = filled(TopicConfig())
    assert pass_over(log) == 0
    assert len(offsets(log)) == 20


def test_a_topic_that_is_told_later_is_compacted_from_then_on() -> None:
    log = filled(TopicConfig())
    log.ask(UpdateTopic("t", config=TopicConfig(compact=True)))
    pass_over(log)
    assert offsets(log) == [16, 17, 18, 19]


def test_tombstones_stay_for_their_grace_and_then_go() -> None:
    log = Log()
    log.ask(CreateTopic("t", 1, config=TopicConfig(compact=True, tombstone_ms=60_000)))
    for row in [(b"a", b"1"), (b"a", None), (b"b", b"2"), (None, b"3")]:
        put(log, row)
    pass_over(log)
    assert offsets(log) == [1, 2, 3]
    assert pass_over(log) == 0
    log.pass_time(60)
    pass_over(log)
    assert offsets(log) == [2, 3]


def test_the_servers_grace_counts_where_the_topic_names_none() -> None:
    log = Log(tombstone_ms=1000)
    log.ask(CreateTopic("t", 1, config=TopicConfig(compact=True)))
    for row in [(b"a", None), (b"b", b"2")]:
        put(log, row)
    pass_over(log)
    assert offsets(log) == [1]


def test_what_was_compacted_stays_so_after_a_restart() -> None:
    log = filled(TopicConfig(compact=True))
    pass_over(log)
    again = Log(log.store.restarted())
    assert offsets(again) == [16, 17, 18, 19]
    put(again, (b"a", b"new"))
    assert offsets(again)[-1] == 20


def test_readers_pass_over_what_is_gone() -> None:
    log = filled(TopicConfig(compact=True))
    pass_over(log)
    reply = log.ask(Fetch("t", 0, 3, records_max=1))
    assert values(reply.slices) == [b"16"]
    assert reply.next_offset == 17
    first_us = log.ask(Fetch("t", 0, 16)).slices[0].batch.timestamp_at(0)
    assert offsets(log, offset=first_us, whence=Whence.TIMESTAMP) == [16, 17, 18, 19]
    assert offsets(log, offset=5, whence=Whence.LAST) == [16, 17, 18, 19]
    assert offsets(log, whence=Whence.EARLIEST, records_max=2) == [16, 17]


def test_a_follow_that_stands_in_what_is_gone_goes_on_after_it() -> None:
    log = filled(TopicConfig(compact=True))
    follow = log.hand(Follow("t", 0, records_max=2))
    push = log.engine.pull(follow, log.now)
    assert push is not None
    assert not isinstance(push, Failure)
    pass_over(log)
    pushed = values(push.slices)
    while (push := log.engine.pull(follow, log.now)) is not None:
        assert not isinstance(push, Failure)
        pushed += values(push.slices)
    assert pushed == [b"0", b"1", b"16", b"17", b"18", b"19"]
    put(log, (b"z", b"new"))
    push = log.engine.pull(follow, log.now)
    assert push is not None
    assert not isinstance(push, Failure)
    assert values(push.slices) == [b"new"]


def test_records_beyond_the_watermark_are_left_alone() -> None:
    log = filled(TopicConfig(compact=True))
    log.hand(Produce("t", batch(b"pending", keys=[b"c"]), 0))
    work = log.engine.take_flush()
    assert work is not None
    pass_over(log)
    log.engine.flushed(work, None, log.now)
    assert offsets(log) == [16, 17, 18, 19, 20]


def test_a_trim_or_a_drop_while_a_pass_runs_is_kept() -> None:
    for request in (DeleteRecords("t", 0, 18), DeleteTopic("t")):
        log = filled(TopicConfig(compact=True))
        log.pass_time(6)
        (work,) = log.engine.take_work()
        assert log.engine.take_work() == []
        log.ask(request)
        work.run()
        log.engine.finished(work, None, log.now)
        if isinstance(request, DeleteRecords):
            assert offsets(log) == [18, 19]


def test_partitions_wait_for_each_other_and_none_is_passed_over() -> None:
    log = Log()
    log.ask(CreateTopic("t", 100, config=TopicConfig(compact=True)))
    for partition in range(0, 100, 11):
        for number in range(3):
            put(log, (b"k", b"%d" % number), partition=partition)
    works = 0
    for _ in range(40):
        log.pass_time(0.05)
        works += log.work()
    assert works == 10
    for partition in range(0, 100, 11):
        assert log.read("t", partition=partition) == [b"1", b"2"]


def test_nothing_is_begun_while_the_server_stops_or_the_log_failed() -> None:
    log = filled(TopicConfig(compact=True))
    log.engine.begin_close(log.now)
    assert pass_over(log) == 0
    log = filled(TopicConfig(compact=True))
    log.hand(Produce("t", batch(b"x"), 0))
    log.flush(OSError(5, "I/O error"))
    assert pass_over(log) == 0


@pytest.mark.parametrize("seed", range(20))
def test_random_histories_keep_every_newest_record_and_revive_none(seed: int) -> None:
    dice = Random(seed)
    log = Log(MemoryStore(blocking_reads=bool(seed % 2)), retention_check_us=1)
    log.ask(CreateTopic("t", 1, config=TopicConfig(compact=True, tombstone_ms=10_000)))
    rows: list[Row] = []
    for _ in range(60):
        fresh: list[Row] = [
            (dice.choice([None, b"a", b"b", b"c"]), dice.choice([None, b"%d" % len(rows)]))
            for _ in range(dice.randint(1, 3))
        ]
        put(log, *fresh)
        rows += fresh
        log.pass_time(dice.choice([0.05, 3]))
        if dice.random() < 0.5:
            log.work()
        if dice.random() < 0.05:
            log = Log(log.store.restarted(), retention_check_us=1)
    found: dict[int, Row] = {}
    reply = log.ask(Fetch("t", 0))
    for piece in reply.slices:
        for record in piece.batch.records(*piece[1:]):
            found[record.offset] = (record.key, record.value)
    assert all(rows[offset] == row for offset, row in found.items())
    for offset, (key, value) in enumerate(rows):
        newest = max([at for at, row in enumerate(rows) if row[0] == key])
        if key is None or (newest == offset and value is not None):
            assert offset in found
        if offset not in found and value is None and key is not None:
            assert not [at for at in found if at < offset and rows[at][0] == key]
    assert len(found) < len(rows)
