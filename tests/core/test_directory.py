"""Finding topics by names and numbers, also after they changed."""

from __future__ import annotations

import pytest

from dragoman.core.change import NamespacePut, TopicDropped, TopicPut
from dragoman.core.directory import Directory
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.memory import MemoryStore
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER

TOPIC = TopicPut(1, DEFAULT_NAMESPACE_NUMBER, 7, "t", 0, [0, 0], {})


@pytest.fixture
def directory() -> Directory:
    made = Directory(MemoryStore())
    made.apply_admin(TOPIC)
    made.fit(1)
    return made


def code(directory: Directory, namespace: str | int, topic: str | int) -> ErrorCode:
    with pytest.raises(EngineError) as refused:
        directory.topic(namespace, topic)
    return refused.value.code


def test_a_topic_is_the_same_by_name_and_by_number(directory: Directory) -> None:
    found = directory.topic("default", "t")
    assert directory.topic("default", 7) is found
    assert directory.topic(DEFAULT_NAMESPACE_NUMBER, "t") is found
    assert directory.topic("default", "t") is found


def test_a_name_that_reads_like_a_number_is_not_one(directory: Directory) -> None:
    assert code(directory, "default", "7") is ErrorCode.UNKNOWN_TOPIC


def test_what_was_looked_up_before_a_change_is_looked_up_anew(directory: Directory) -> None:
    found = directory.topic("default", "t")
    directory.apply_admin(TOPIC._replace(name="u"))
    assert code(directory, "default", "t") is ErrorCode.UNKNOWN_TOPIC
    assert directory.topic("default", "u") is found
    directory.apply_admin(TopicDropped(1))
    assert directory.fit(1) == found.partitions or found.dropped
    assert code(directory, "default", 7) is ErrorCode.UNKNOWN_TOPIC


def test_the_namespace_is_missed_before_the_topic(directory: Directory) -> None:
    assert code(directory, "n", "t") is ErrorCode.UNKNOWN_NAMESPACE
    directory.apply_admin(NamespacePut(1, "n", 0))
    assert code(directory, "n", "t") is ErrorCode.UNKNOWN_TOPIC


def test_a_refused_partition_names_how_many_there_are(directory: Directory) -> None:
    with pytest.raises(EngineError) as refused:
        directory.partition(directory.topic("default", "t"), 2)
    assert refused.value.facts == {
        "namespace": "default",
        "topic": "t",
        "partition": 2,
        "partitions": 2,
    }


def test_partitions_are_counted(directory: Directory) -> None:
    assert directory.partition_count == 2
    directory.apply_admin(TOPIC._replace(partition_created_us=[0]))
    assert [partition.number for partition in directory.fit(1)] == [1]
    assert directory.partition_count == 1
