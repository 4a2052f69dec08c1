"""The topic of the snapshots of another: its name and settings, and what may befall it."""

from __future__ import annotations

from dragoman.core import calls
from dragoman.core.calls import AddPartitions, DeleteTopic, Snapshot
from dragoman.core.error import ErrorCode
from dragoman.core.events.snapshot_topic import PREFIX
from support.streams import TOPIC, Streams

K = b"k"
HOME = PREFIX + TOPIC


def saved(**options: int) -> Streams:
    log = Streams(2, **options)
    log.add(K, 1)
    log.save(K, 1)
    return log


def test_it_is_made_by_the_first_snapshot() -> None:
    log = Streams()
    log.add(K, 1)
    assert not log.engine.has_topic("default", HOME)
    log.save(K, 1)
    assert log.engine.has_topic("default", HOME)


def test_the_servers_default_retention_does_not_reach_it() -> None:
    log = saved(retention_ms=1000)
    for _ in range(3):
        log.pass_time(10)
        log.work()
        log.flush()
    assert log.snapshot(K) == Snapshot(1, b"state")
    config = log.ask(calls.DescribeTopic(HOME)).topic.config
    assert config.retention_ms == config.retention_bytes == (1 << 63) - 1


def test_it_may_be_deleted_alone_and_is_made_again() -> None:
    log = saved()
    log.ask(DeleteTopic(HOME))
    assert log.snapshot(K) is None
    log.save(K, 1, b"again")
    assert log.snapshot(K) == Snapshot(1, b"again")


def test_more_partitions_of_it_change_nothing() -> None:
    log = saved()
    log.ask(AddPartitions(HOME, 1))
    assert log.snapshot(K) == Snapshot(1, b"state")


def test_the_limit_of_topics_holds_for_it() -> None:
    log = Streams(topics_max=1)
    log.add(K, 1)
    assert log.save(K, 1).code is ErrorCode.LIMIT_REACHED
