"""The window of payloads: which of several equal publishes is kept."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core import dedupe
from dragoman.core.calls import (
    Acks,
    CreateTopic,
    DeleteTopic,
    DescribeTopic,
    Produce,
    Produced,
    RemovePartitions,
    Role,
    SetRole,
    TopicConfig,
    UpdateTopic,
)
from dragoman.core.error import ErrorCode
from dragoman.core.memory import MemoryStore
from support.log import Log, batch

WINDOW_MS = 30 * 60_000


def windowed(log: Log, topic: str = "t", window_ms: int = WINDOW_MS) -> Log:
    log.ask(CreateTopic(topic, 3, config=TopicConfig(dedupe_ms=window_ms)))
    return log


@pytest.fixture
def log() -> Log:
    return windowed(Log())


def publish(log: Log, value: bytes | None = b"a", topic: str = "t", **fields: Any) -> Any:
    return log.ask(Produce(topic, batch(value), dedupe=True, **fields))


def count(log: Log, topic: str = "t") -> int:
    return sum([len(log.read(topic, partition=partition)) for partition in range(3)])


def test_a_payload_is_kept_once_and_its_duplicates_name_it(log: Log) -> None:
    log.put("t", b"x")
    assert publish(log) == Produced(0, 1, 1, 2)
    publish(log, b"b")
    assert publish(log) == Produced(0, 1, 1, 2)
    assert log.engine.statistics()["dedupe_hits"] == 1
    assert count(log) == 3


def test_a_duplicate_takes_no_turn(log: Log) -> None:
    assert [publish(log, value).partition for value in (b"a", b"a", b"b", b"c")] == [0, 0, 1, 2]


def test_the_window_is_the_topic_s(log: Log) -> None:
    windowed(log, "u")
    log.ask(CreateTopic("v", 3))
    for topic in ("t", "u", "v", "v"):
        publish(log, topic=topic)
    assert (count(log, "t"), count(log, "u"), count(log, "v")) == (1, 1, 2)


def test_only_requests_that_ask_for_it_are_looked_at(log: Log) -> None:
    publish(log)
    log.ask(Produce("t", batch(b"a")))
    assert count(log) == 2


def test_only_single_records_with_a_value_are_looked_at(log: Log) -> None:
    for _ in range(2):
        log.ask(Produce("t", batch(b"a", b"b"), dedupe=True))
        publish(log, None)
    assert count(log) == 6
    assert log.engine.statistics()["dedupe_entries"] == 0


def test_the_window_begins_with_the_first_and_is_not_renewed(log: Log) -> None:
    publish(log)
    log.pass_time(1799)
    publish(log)
    assert count(log) == 1
    log.pass_time(1)
    publish(log)
    assert count(log) == 2


def test_a_digest_that_comes_along_is_taken_for_the_payload_s(log: Log) -> None:
    publish(log)
    publish(log, b"a", digest=dedupe.digest_of(b"a"))
    assert count(log) == 1


def test_a_duplicate_is_answered_no_sooner_than_its_original(log: Log) -> None:
    first = log.hand(Produce("t", batch(b"a"), dedupe=True))
    second = log.hand(Produce("t", batch(b"a"), dedupe=True))
    assert not first.ready
    assert not second.ready
    log.flush()
    assert second.reply == Produced(0, 0, 1, 1)
    assert log.hand(Produce("t", batch(b"a"), dedupe=True)).ready


def test_acks_are_the_request_s_own(log: Log) -> None:
    for acks in (Acks.NONE, Acks.ALL, Acks.NONE):
        assert publish(log, acks=acks).base_offset == 0


def test_what_was_refused_is_not_remembered() -> None:
    log = windowed(Log(MemoryStore(bytes_max=200)))
    assert log.code(Produce("t", batch(b"a" * 300), dedupe=True)) is ErrorCode.STORAGE_FULL
    assert log.engine.statistics()["dedupe_entries"] == 0


def test_an_original_that_went_with_its_partition_counts_no_more(log: Log) -> None:
    publish(log, route=2)
    log.ask(RemovePartitions("t", 1))
    assert publish(log, route=1).partition == 1
    log.ask(DeleteTopic("t"))
    windowed(log)
    assert publish(log) == Produced(0, 0, 1, 1)


def test_a_follower_partition_refuses_duplicates_too(log: Log) -> None:
    publish(log, route=1)
    log.ask(SetRole("t", 1, Role.FOLLOWER))
    assert log.code(Produce("t", batch(b"a"), dedupe=True)) is ErrorCode.NOT_LEADER


def test_another_length_is_another_window(log: Log) -> None:
    publish(log)
    log.ask(UpdateTopic("t", config=TopicConfig(dedupe_ms=1000)))
    publish(log)
    publish(log)
    assert count(log) == 2


def test_the_window_begins_anew_after_a_restart(log: Log) -> None:
    publish(log)
    again = Log(log.store.restarted())
    publish(again)
    publish(again)
    assert count(again) == 2


def test_what_left_its_window_is_cleaned_each_minute_a_few_at_a_time(
    log: Log, monkeypatch: Any
) -> None:
    monkeypatch.setattr(dedupe, "ENTRIES_PER_TICK", 2)
    windowed(log, "u", 100_000)
    log.pass_time(0)
    for value in (b"a", b"b", b"c"):
        publish(log, value, "u")
    publish(log)
    log.pass_time(99)
    assert log.engine.statistics()["dedupe_entries"] == 4
    log.pass_time(1)
    entries = []
    for _ in range(3):
        entries.append(log.engine.statistics()["dedupe_entries"])
        log.pass_time(60)
    assert entries == [4, 2, 1]


def test_the_oldest_of_all_windows_make_room() -> None:
    log = windowed(windowed(Log(dedupe_entries_max=3)), "u", 1000)
    for value, topic in ((b"a", "u"), (b"b", "t"), (b"c", "u"), (b"d", "t"), (b"e", "t")):
        log.pass_time(0.01)
        publish(log, value, topic)
    statistics = log.engine.statistics()
    assert (statistics["dedupe_entries"], statistics["dedupe_evicted"]) == (3, 2)
    for value, topic, hits in ((b"c", "u", 1), (b"d", "t", 2), (b"e", "t", 3), (b"b", "t", 3)):
        publish(log, value, topic)
        assert log.engine.statistics()["dedupe_hits"] == hits


def test_equal_digests_are_equal_payloads() -> None:
    assert dedupe.digest_of(b"a") == dedupe.digest_of(memoryview(b"a"))
    assert len({dedupe.digest_of(b"a"), dedupe.digest_of(b"b"), dedupe.digest_of(b"")}) == 3


def test_topics_without_a_window_have_the_server_s() -> None:
    log = windowed(Log(dedupe_ms=100_000), "own", 1000)
    log.ask(CreateTopic("none", 3))
    for topic in ("own", "none"):
        publish(log, topic=topic)
    log.pass_time(50)
    for topic in ("own", "none"):
        publish(log, topic=topic)
    assert (count(log, "own"), count(log, "none")) == (2, 1)


def test_the_server_s_window_is_stored_with_no_topic() -> None:
    log = Log(dedupe_ms=100_000)
    log.ask(CreateTopic("t", 3))
    assert log.ask(DescribeTopic("t")).topic.config == TopicConfig()
    again = Log(log.store.restarted())
    publish(again)
    publish(again)
    assert count(again) == 2


def test_the_server_s_window_leaves_other_produces_alone() -> None:
    log = Log(dedupe_ms=100_000)
    log.ask(CreateTopic("t", 3))
    for _ in range(2):
        log.ask(Produce("t", batch(b"a")))
    assert count(log) == 2


def test_how_often_is_cleaned_is_chosen_and_looks_that_found_something_are_counted() -> None:
    log = windowed(Log(dedupe_check_us=7_000_000), window_ms=1000)
    log.pass_time(0)
    publish(log)
    publish(log, b"b")
    log.pass_time(6)
    statistics = log.engine.statistics()
    assert (statistics["dedupe_entries"], statistics["cleanups"]) == (2, 0)
    for _ in range(3):
        log.pass_time(7)
    statistics = log.engine.statistics()
    assert (statistics["dedupe_entries"], statistics["cleanups"]) == (0, 1)


def test_a_look_that_takes_several_ticks_counts_once(monkeypatch: Any) -> None:
    monkeypatch.setattr(dedupe, "ENTRIES_PER_TICK", 1)
    log = windowed(Log(), window_ms=1000)
    log.pass_time(0)
    for value in (b"a", b"b", b"c"):
        publish(log, value)
    log.pass_time(60)
    for _ in range(5):
        log.pass_time(0.05)
    statistics = log.engine.statistics()
    assert (statistics["dedupe_entries"], statistics["cleanups"]) == (0, 1)
