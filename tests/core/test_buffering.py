"""Buffers of partitions: when producers rest, and when they go on."""

from __future__ import annotations

import errno

from dragoman.core.calls import CreateTopic, DeleteTopic, Produce, ReportReplica
from support.log import Log, batch


def log_with(partition_buffer_records: int = 3) -> Log:
    log = Log(partition_buffer_records=partition_buffer_records)
    log.ask(CreateTopic("t", 2))
    return log


def append(log: Log, count: int, partition: int = 0) -> None:
    log.hand(Produce("t", batch(*[b"x"] * count), partition))


def test_producers_rest_while_a_partition_has_its_fill_and_go_on_once_that_is_durable() -> None:
    log = log_with()
    append(log, 2)
    assert not log.engine.overloaded()
    append(log, 1)
    assert log.engine.overloaded()
    log.flush()
    assert not log.engine.overloaded()
    assert log.engine.statistics()["buffers_filled"] == 1


def test_what_comes_all_the_same_is_taken() -> None:
    log = log_with()
    append(log, 100)
    append(log, 100)
    assert log.engine.overloaded()
    log.flush()
    assert len(log.read("t")) == 200
    assert log.engine.statistics()["buffers_filled"] == 1


def test_each_partition_has_a_buffer_of_its_own() -> None:
    log = log_with()
    append(log, 2, partition=0)
    append(log, 2, partition=1)
    assert not log.engine.overloaded()


def test_a_full_buffer_that_goes_with_its_topic_holds_up_nobody() -> None:
    log = log_with()
    append(log, 3)
    log.hand(DeleteTopic("t"))
    assert not log.engine.overloaded()


def test_a_log_that_failed_holds_up_nobody() -> None:
    log = log_with()
    append(log, 3)
    log.flush(OSError(errno.EIO, "gone"))
    assert not log.engine.overloaded()


def test_what_only_replicas_lack_fills_no_buffer() -> None:
    log = log_with()
    log.ask(ReportReplica("t", 0, 1, 0))
    append(log, 3)
    log.flush()
    assert not log.engine.overloaded()


def test_without_a_limit_nothing_is_counted() -> None:
    log = log_with(0)
    append(log, 100_000)
    assert not log.engine.overloaded()
    assert log.engine.statistics()["buffers_filled"] == 0
