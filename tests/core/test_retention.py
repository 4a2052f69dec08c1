"""Retention by age and size, by topic or by the server's default."""

from __future__ import annotations

from dragoman.core.calls import (
    CreateTopic,
    DeleteTopic,
    DescribeTopic,
    Produce,
    TopicConfig,
    UpdateTopic,
)
from support.log import Log, batch


def log_start(log: Log, topic: str = "t") -> int:
    found = log.ask(DescribeTopic(topic)).topic.partitions[0].log_start_offset
    assert isinstance(found, int)
    return found


def filled(config: TopicConfig, **options: int) -> Log:
    """Topic t with 5 records of 100 bytes, a second apart, each a closed segment but the last."""
    log = Log(**options)
    log.ask(CreateTopic("t", 1, config=config))
    for _ in range(5):
        log.ask(Produce("t", batch(bytes(100)), 0))
        log.pass_time(1)
    return log


def test_what_is_older_than_the_topic_keeps_is_trimmed() -> None:
    log = filled(TopicConfig(retention_ms=10_000))
    assert log_start(log) == 0
    log.pass_time(7)
    log.flush()
    assert log_start(log) == 2
    assert len(log.read("t")) == 3


def test_every_record_goes_by_age_also_the_newest() -> None:
    log = filled(TopicConfig(retention_ms=1))
    log.pass_time(100)
    assert log_start(log) == 5
    assert log.read("t") == []
    assert log.put("t", b"x").base_offset == 5
    assert log.read("t") == [b"x"]


def test_within_a_batch_the_first_record_that_is_young_enough_stays() -> None:
    log = Log(retention_check_us=1)
    log.ask(CreateTopic("t", 1, config=TopicConfig(retention_ms=2500)))
    for _ in range(5):  # one flush: neighbours are joined into one batch
        log.hand(Produce("t", batch(b"x"), 0))
        log.pass_time(1)
    log.flush()
    log.pass_time(0.1)
    assert log_start(log) == 3


def test_what_has_to_be_looked_up_in_a_thread_is_trimmed_when_it_was_found() -> None:
    log = filled(TopicConfig(retention_ms=10_000))
    log.store.blocking_reads = True
    log.pass_time(7)
    assert log_start(log) == 0
    log.pass_time(6)
    assert log.work() == 1
    assert log_start(log) == 2
    assert log.work() == 0


def test_what_was_looked_up_for_a_topic_that_is_gone_changes_nothing() -> None:
    log = filled(TopicConfig(retention_ms=10_000))
    log.store.blocking_reads = True
    log.pass_time(7)
    work = log.engine.take_work()[0]
    log.ask(DeleteTopic("t"))
    work.run()
    log.engine.finished(work, None, log.now)
    assert log.engine.statistics()["retention_trims"] == 0


def test_a_log_start_that_does_not_move_is_not_journaled() -> None:
    log = filled(TopicConfig(retention_ms=10_000))
    log.pass_time(7)
    log.flush()
    trims = log.engine.statistics()["retention_trims"]
    for _ in range(20):
        log.pass_time(0.05)
    assert log.engine.take_flush() is None
    assert log.engine.statistics()["retention_trims"] == trims


def test_what_is_more_than_the_topic_keeps_is_trimmed() -> None:
    log = filled(TopicConfig(retention_bytes=400))
    log.pass_time(10)
    assert log_start(log) == 3


def test_without_limits_everything_is_kept() -> None:
    log = filled(TopicConfig())
    log.pass_time(1_000_000)
    assert log_start(log) == 0


def test_the_servers_default_counts_where_the_topic_names_none() -> None:
    log = filled(TopicConfig(), retention_ms=1)
    log.pass_time(10)
    assert log_start(log) == 5


def test_a_changed_setting_counts_from_the_next_check() -> None:
    log = filled(TopicConfig())
    log.ask(UpdateTopic("t", config=TopicConfig(retention_ms=1)))
    log.pass_time(10)
    assert log_start(log) == 5


def test_a_trim_survives_a_restart() -> None:
    log = filled(TopicConfig(retention_ms=1))
    log.pass_time(10)
    log.flush()
    again = Log(log.store.restarted())
    assert log_start(again) == 5
    assert again.put("t", b"x").base_offset == 5


def test_records_that_are_not_durable_yet_are_never_trimmed() -> None:
    log = filled(TopicConfig(retention_ms=1))
    log.hand(Produce("t", batch(b"a"), 0))
    work = log.engine.take_flush()
    assert work is not None
    log.pass_time(10)
    state = log.store.catalog.topics[1].partitions[0]
    assert (state.log_start_offset, state.next_offset) == (5, 6)
    log.engine.flushed(work, None, log.now)
    assert log_start(log) == 5


def test_many_partitions_are_checked_over_several_ticks() -> None:
    log = Log(retention_ms=1)
    log.ask(CreateTopic("t", 100))
    for partition in (0, 99):
        for _ in range(2):
            log.ask(Produce("t", batch(b"x"), partition))
    log.pass_time(10)
    assert log.engine.statistics()["retention_trims"] == 1
    log.pass_time(0.05)
    assert log.engine.statistics()["retention_trims"] == 2


def test_a_fenced_log_is_left_alone() -> None:
    log = filled(TopicConfig(retention_ms=1))
    before = log.engine.statistics()["retention_trims"]
    log.hand(Produce("t", batch(b"a"), 0))
    log.flush(OSError(5, "I/O error"))
    log.pass_time(10)
    assert log.engine.statistics()["retention_trims"] == before


def test_rounds_that_trimmed_something_are_counted() -> None:
    log = filled(TopicConfig(retention_ms=10_000), retention_check_us=60_000_000)
    assert log.engine.statistics()["cleanups"] == 0
    log.ask(CreateTopic("u", 1, config=TopicConfig(retention_ms=10_000)))
    log.put("u", b"x")
    log.pass_time(60)
    for _ in range(3):
        log.pass_time(60)
    statistics = log.engine.statistics()
    assert (statistics["cleanups"], statistics["retention_trims"]) == (1, 2)
