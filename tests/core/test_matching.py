"""FetchMatching: one partition of every topic whose name a pattern means."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core import matching
from dragoman.core.calls import (
    CommitOffset,
    CreateTopic,
    DeleteTopic,
    FetchedMatching,
    FetchMatching,
    Produce,
    Whence,
)
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.memory import MemoryStore
from support.log import Log, batch, values


@pytest.fixture(params=[False, True], ids=["hot", "cold"])
def log(request: pytest.FixtureRequest) -> Log:
    """Topics la, lb and lc with records, m without any; once with reads that block."""
    made = Log(MemoryStore(blocking_reads=request.param))
    made.put("lb", b"3", b"4")
    made.put("la", b"1", b"2")
    made.put("lc", b"5")
    made.ask(CreateTopic("m", 1))
    return made


def read(log: Log, pattern: str, **fields: Any) -> dict[str, list[bytes | None]]:
    """The values read of each topic."""
    reply = log.ask(FetchMatching(pattern, 0, **fields))
    assert isinstance(reply, FetchedMatching)
    return {part.topic: values(part.slices) for part in reply.parts}


def test_topics_are_read_in_the_order_of_their_names(log: Log) -> None:
    found = read(log, "l*")
    assert list(found.items()) == [("la", [b"1", b"2"]), ("lb", [b"3", b"4"]), ("lc", [b"5"])]


def test_a_topic_without_records_is_told_too(log: Log) -> None:
    assert read(log, "?") == {"m": []}


def test_the_limit_of_records_is_of_each_topic(log: Log) -> None:
    assert read(log, "l*", records_max=1) == {"la": [b"1"], "lb": [b"3"], "lc": [b"5"]}
    assert read(log, "l*", records_max=0) == {}


def test_the_limit_of_bytes_is_of_all_together(log: Log) -> None:
    assert read(log, "l*", bytes_max=3) == {"la": [b"1", b"2"], "lb": [b"3"]}


def test_each_topic_is_read_from_the_same_offset(log: Log) -> None:
    assert read(log, "l*", offset=1) == {"la": [b"2"], "lb": [b"4"], "lc": []}


def test_each_topic_is_read_from_where_the_group_has_committed_in_it(log: Log) -> None:
    log.ask(CommitOffset("la", "g", ((0, 2),)))
    found = read(log, "l*", whence=Whence.COMMITTED, group="g")
    assert found == {"la": [], "lb": [b"3", b"4"], "lc": [b"5"]}
    reply = log.ask(FetchMatching("la*", 0, whence=Whence.COMMITTED, group="g"))
    assert [part.committed for part in reply.parts] == [2]


def test_topics_that_lack_the_partition_are_passed_over(log: Log) -> None:
    reply = log.ask(FetchMatching("*", 2))
    assert [part.topic for part in reply.parts] == ["la", "lb", "lc"]
    assert log.code(FetchMatching("*", 3)) is ErrorCode.UNKNOWN_PARTITION
    assert log.code(FetchMatching("*", -1)) is ErrorCode.UNKNOWN_PARTITION


def test_no_match_and_no_namespace_are_refused(log: Log) -> None:
    assert log.code(FetchMatching("x*", 0)) is ErrorCode.UNKNOWN_TOPIC
    assert log.code(FetchMatching("*", 0, namespace="n")) is ErrorCode.UNKNOWN_NAMESPACE


def test_an_offset_that_cannot_be_is_refused(log: Log) -> None:
    assert log.code(FetchMatching("l*", 0, -1)) is ErrorCode.INVALID_OFFSET


def test_what_is_not_durable_is_not_read(log: Log) -> None:
    log.hand(Produce("la", batch(b"new"), 0))
    assert read(log, "la*") == {"la": [b"1", b"2"]}


def test_it_tells_of_a_topic_once_that_is_durable() -> None:
    log = Log()
    log.hand(CreateTopic("t", 1))
    outcome = log.hand(FetchMatching("*", 0))
    assert not outcome.ready
    log.flush()
    assert outcome.ready


def test_what_was_given_out_is_counted(log: Log) -> None:
    before = log.engine.statistics()["fetched_records"]
    read(log, "l*")
    assert log.engine.statistics()["fetched_records"] == int(before) + 5


@pytest.mark.parametrize("topic", ["la", "lb"])
def test_that_a_topic_is_gone_is_told_once_it_is_durable(topic: str) -> None:
    log = cold()
    outcome = log.hand(FetchMatching("l*", 0))
    log.hand(DeleteTopic(topic))
    while log.work():
        pass
    assert not outcome.ready
    log.flush()
    assert outcome.ready


def test_others_have_their_turn_while_many_topics_are_read(
    monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    monkeypatch.setattr(matching, "PARTITIONS_AT_ONCE", 1)
    outcome = log.hand(FetchMatching("l*", 0))
    assert not outcome.ready
    while log.work():
        pass
    assert isinstance(outcome.reply, FetchedMatching)
    assert [part.topic for part in outcome.reply.parts] == ["la", "lb", "lc"]


def test_a_topic_deleted_while_it_is_read_is_left_out() -> None:
    log = cold()
    outcome = log.hand(FetchMatching("l*", 0))
    log.ask(DeleteTopic("la"))
    while log.work():
        pass
    log.flush()
    assert isinstance(outcome.reply, FetchedMatching)
    assert [values(part.slices) for part in outcome.reply.parts] == [[b"2"]]


def test_a_topic_deleted_before_its_turn_is_left_out() -> None:
    log = cold()
    outcome = log.hand(FetchMatching("l*", 0))
    log.ask(DeleteTopic("lb"))
    while log.work():
        pass
    log.flush()
    assert isinstance(outcome.reply, FetchedMatching)
    assert [values(part.slices) for part in outcome.reply.parts] == [[b"1"]]


def test_a_read_that_the_disk_fails_is_refused() -> None:
    log = cold()
    outcome = log.hand(FetchMatching("l*", 0))
    log.work(OSError(5, "I/O error"))
    assert isinstance(outcome.reply, Failure)
    assert outcome.reply.code is ErrorCode.STORAGE_FAILED
    assert log.ready.count(outcome) == 1


def test_damage_in_a_later_topic_is_told(log: Log) -> None:
    log.store.damaged[1, 0] = [(0, 1)]
    failure = log.refused(FetchMatching("l*", 0))
    assert failure.code is ErrorCode.DAMAGED


def test_an_asker_that_left_is_forgotten() -> None:
    log = cold()
    outcome = log.hand(FetchMatching("l*", 0))
    log.engine.disconnected(log.client, log.now)
    log.ready.clear()
    assert log.work() == 1
    assert log.ready == []
    assert not outcome.ready


def test_one_that_was_cancelled_is_forgotten() -> None:
    log = cold()
    outcome = log.hand(FetchMatching("l*", 0))
    log.engine.cancel(outcome, log.now)
    log.work()
    assert outcome not in log.ready
    assert log.engine.take_work() == []


def cold() -> Log:
    """Topics la and lb with a record each, and reads that block."""
    log = Log(MemoryStore(blocking_reads=True))
    log.put("la", b"1")
    log.put("lb", b"2")
    return log
