"""Topics: made, renamed, grown, shrunk, deleted, listed, described."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.core.calls import (
    AddPartitions,
    CommitOffset,
    CreateNamespace,
    CreateTopic,
    DeleteTopic,
    DescribeTopic,
    FetchOffset,
    IfExists,
    ListTopics,
    Produce,
    RemovePartitions,
    TopicConfig,
    TopicDeleted,
    UpdateTopic,
)
from dragoman.core.error import ErrorCode
from support.log import WALL_US, Log, batch

if TYPE_CHECKING:
    from dragoman.core.calls import Request


@pytest.fixture
def log() -> Log:
    made = Log()
    made.ask(CreateTopic("t", 2))
    return made


def names(log: Log, request: ListTopics) -> list[tuple[str, str, int]]:
    return [(found.namespace, found.name, found.number) for found in log.ask(request).topics]


def test_a_created_topic_is_described_as_it_stands(log: Log) -> None:
    config = TopicConfig(retention_ms=5, retention_bytes=6, idempotent=True)
    topic = log.ask(CreateTopic("u", 1, config=config)).topic
    assert (topic.namespace, topic.name, topic.number) == ("default", "u", 2)
    assert topic.created_us == WALL_US
    assert topic.config == config
    assert (topic.size_bytes, topic.records) == (0, 0)
    assert log.ask(DescribeTopic("u")).topic == topic
    assert log.ask(DescribeTopic(2)).topic == topic


def test_a_description_tells_ends_and_sizes(log: Log) -> None:
    log.ask(Produce("t", batch(b"abc", b"d"), 1))
    topic = log.ask(DescribeTopic("t")).topic
    first, second = topic.partitions
    assert (first.log_start_offset, first.log_end_offset, first.high_watermark) == (0, 0, 0)
    assert (second.log_start_offset, second.log_end_offset, second.high_watermark) == (0, 2, 2)
    assert (second.partition, second.segments, second.created_us) == (1, 1, WALL_US)
    assert topic.size_bytes == second.size_bytes > 4
    assert topic.records == 2


def test_a_description_waits_for_the_log_end_that_it_shows(log: Log) -> None:
    log.hand(Produce("t", batch(b"a"), 0))
    outcome = log.hand(DescribeTopic("t"))
    assert not outcome.ready
    log.flush()
    assert outcome.ready


def test_numbers_are_the_next_free_from_1_and_never_given_twice(log: Log) -> None:
    assert log.ask(CreateTopic("u", 1)).topic.number == 2
    log.ask(DeleteTopic("u"))
    assert log.ask(CreateTopic("v", 1)).topic.number == 3


def test_a_number_that_the_client_chose_is_honoured(log: Log) -> None:
    assert log.ask(CreateTopic("u", 1, number=7)).topic.number == 7
    assert log.ask(CreateTopic("v", 1)).topic.number == 8
    assert log.ask(CreateTopic("w", 1, number=3)).topic.number == 3
    assert log.ask(CreateTopic("x", 1)).topic.number == 9


def test_choosing_the_last_number_does_not_stop_later_topics(log: Log) -> None:
    log.ask(CreateTopic("u", 1, number=2**32 - 1))
    assert log.ask(CreateTopic("v", 1)).topic.number == 2


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (CreateTopic("t", 1), ErrorCode.TOPIC_EXISTS),
        (CreateTopic("u", 1, number=1), ErrorCode.TOPIC_NUMBER_EXISTS),
        (CreateTopic("t", 1, number=1), ErrorCode.TOPIC_NUMBER_EXISTS),
        (CreateTopic("u", 1, number=2**32), ErrorCode.INVALID_NUMBER),
        (CreateTopic("u", 1, number=-1), ErrorCode.INVALID_NUMBER),
        (CreateTopic("", 1), ErrorCode.INVALID_NAME),
        (CreateTopic("u", -1), ErrorCode.INVALID_PARTITION_COUNT),
        (CreateTopic("u", 100_001), ErrorCode.INVALID_PARTITION_COUNT),
        (CreateTopic("u", 1, namespace="n"), ErrorCode.UNKNOWN_NAMESPACE),
        (CreateTopic("u", 1, config=TopicConfig(retention_ms=-1)), ErrorCode.MALFORMED),
        (CreateTopic("u", 1, config=TopicConfig(retention_bytes=1 << 63)), ErrorCode.MALFORMED),
        (CreateTopic("u", 1, config=TopicConfig(dedupe_ms=-1)), ErrorCode.MALFORMED),
        (CreateTopic("u", 1, config=TopicConfig(tombstone_ms=1 << 63)), ErrorCode.MALFORMED),
        (
            CreateTopic("t", 1, if_exists=IfExists.GROW),
            ErrorCode.PARTITIONS_CANNOT_SHRINK,
        ),
        (UpdateTopic("t", name="a/b"), ErrorCode.INVALID_NAME),
        (UpdateTopic("u", name="v"), ErrorCode.UNKNOWN_TOPIC),
        (UpdateTopic("t", config=TopicConfig(retention_ms=-1)), ErrorCode.MALFORMED),
        (AddPartitions("t", 0), ErrorCode.INVALID_PARTITION_COUNT),
        (AddPartitions("t", -2), ErrorCode.INVALID_PARTITION_COUNT),
        (AddPartitions("t", 99_999), ErrorCode.INVALID_PARTITION_COUNT),
        (AddPartitions("u", 1), ErrorCode.UNKNOWN_TOPIC),
        (RemovePartitions("t", 0), ErrorCode.INVALID_PARTITION_COUNT),
        (RemovePartitions("u", 1), ErrorCode.UNKNOWN_TOPIC),
        (DeleteTopic("u"), ErrorCode.UNKNOWN_TOPIC),
        (DescribeTopic("u"), ErrorCode.UNKNOWN_TOPIC),
        (DescribeTopic(0), ErrorCode.UNKNOWN_TOPIC),
        (ListTopics("n"), ErrorCode.UNKNOWN_NAMESPACE),
    ],
)
def test_what_cannot_be_done_is_refused(log: Log, request_: Request, code: ErrorCode) -> None:
    assert log.code(request_) is code


def test_a_refusal_to_shrink_names_both_counts(log: Log) -> None:
    failure = log.refused(CreateTopic("t", 1, if_exists=IfExists.GROW))
    assert failure.facts == {"current": 2, "requested": 1}


def test_a_topic_that_exists_grows_or_is_kept_where_asked(log: Log) -> None:
    kept = log.ask(CreateTopic("t", 9, if_exists=IfExists.KEEP)).topic
    assert len(kept.partitions) == 2
    same = log.ask(CreateTopic("t", 2, if_exists=IfExists.GROW)).topic
    assert len(same.partitions) == 2
    log.pass_time(1)
    grown = log.ask(CreateTopic("t", 3, if_exists=IfExists.GROW)).topic
    assert [found.created_us - WALL_US for found in grown.partitions] == [0, 0, 1_000_000]


def test_limits_on_topics_and_partitions_hold() -> None:
    log = Log(topics_max=2, partitions_total_max=5)
    log.ask(CreateTopic("t", 2))
    assert log.code(CreateTopic("u", 4)) is ErrorCode.LIMIT_REACHED
    assert log.code(AddPartitions("t", 4)) is ErrorCode.LIMIT_REACHED
    log.ask(CreateTopic("u", 2))
    assert log.code(CreateTopic("v", 0)) is ErrorCode.LIMIT_REACHED
    log.ask(DeleteTopic("u"))
    log.ask(RemovePartitions("t", 1))
    log.ask(CreateTopic("v", 4))


def test_a_renamed_topic_keeps_its_records_number_and_offsets(log: Log) -> None:
    log.ask(Produce("t", batch(b"a"), 0))
    log.ask(CommitOffset("t", "g", ((0, 1),)))
    topic = log.ask(UpdateTopic("t", name="new")).topic
    assert (topic.name, topic.number) == ("new", 1)
    assert log.code(DescribeTopic("t")) is ErrorCode.UNKNOWN_TOPIC
    assert log.read("new") == [b"a"]
    assert log.ask(FetchOffset("new", "g", 0)).offset == 1
    assert log.ask(CreateTopic("t", 1)).topic.number == 2


def test_a_topic_cannot_take_the_name_of_another_but_may_keep_its_own(log: Log) -> None:
    log.ask(CreateTopic("u", 1))
    assert log.code(UpdateTopic("t", name="u")) is ErrorCode.TOPIC_EXISTS
    assert log.ask(UpdateTopic("t", name="t")).topic.name == "t"


def test_settings_change_and_survive_a_restart(log: Log) -> None:
    log.ask(UpdateTopic("t", config=TopicConfig(retention_ms=99)))
    log.ask(UpdateTopic("t", name="u"))
    again = Log(log.store.restarted())
    assert again.ask(DescribeTopic("u")).topic.config == TopicConfig(retention_ms=99)


def test_a_retention_of_zero_alone_goes_back_to_the_default_and_keeps_the_rest() -> None:
    log = Log()
    log.ask(CreateTopic("t", 1, config=TopicConfig(retention_ms=5, retention_bytes=6)))
    log.ask(UpdateTopic("t", retention_ms=0))
    assert log.ask(DescribeTopic("t")).topic.config == TopicConfig(retention_bytes=6)
    log.ask(UpdateTopic("t", retention_ms=0))
    assert log.ask(DescribeTopic("t")).topic.config == TopicConfig(retention_bytes=6)


def test_added_partitions_are_empty_and_take_records(log: Log) -> None:
    assert len(log.ask(AddPartitions("t", 2)).topic.partitions) == 4
    assert log.ask(Produce("t", batch(b"a"), 3)).base_offset == 0


def test_the_highest_partitions_are_removed_at_most_all(log: Log) -> None:
    log.ask(Produce("t", batch(b"a"), 0))
    log.ask(CommitOffset("t", "g", ((0, 1), (1, 5))))
    assert len(log.ask(RemovePartitions("t", 1)).topic.partitions) == 1
    assert log.read("t") == [b"a"]
    assert log.ask(RemovePartitions("t", 5)).topic.partitions == []
    log.ask(AddPartitions("t", 2))
    assert log.read("t") == []
    assert log.ask(FetchOffset("t", "g", 1)).offset is None


def test_a_deleted_topic_is_gone_with_its_offsets(log: Log) -> None:
    log.ask(CommitOffset("t", "g", ((0, 1),)))
    assert log.ask(DeleteTopic("t")) == TopicDeleted("default", "t")
    assert log.ask(ListTopics()).topics == []
    log.ask(CreateTopic("t", 1))
    assert log.ask(FetchOffset("t", "g", 0)).offset is None


def test_topics_are_listed_by_namespace_number_then_topic_number(log: Log) -> None:
    log.ask(CreateNamespace("n"))
    log.ask(CreateTopic("b", 1, namespace="n", number=5))
    log.ask(CreateTopic("a", 1, namespace="n", number=2))
    log.ask(CreateTopic("u", 1))
    ours = [("default", "t", 1), ("default", "u", 2)]
    theirs = [("n", "a", 2), ("n", "b", 5)]
    assert names(log, ListTopics()) == theirs + ours
    assert names(log, ListTopics("default")) == ours
    assert names(log, ListTopics(1)) == theirs


def test_topics_whose_names_alone_are_wanted_are_listed_without_their_partitions(log: Log) -> None:
    log.ask(CreateTopic("u", 1))
    assert names(log, ListTopics(names_only=True)) == [("default", "t", 1), ("default", "u", 2)]
    assert [found.partitions for found in log.ask(ListTopics(names_only=True)).topics] == [[], []]
