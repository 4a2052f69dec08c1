"""Live topics and partitions follow the catalog."""

from __future__ import annotations

from dragoman.core.catalog import NamespaceState, PartitionState, TopicState
from dragoman.core.partition import Topic


def live(*ends: int) -> Topic:
    state = TopicState(1, 1, 1, "t", 0, {}, [PartitionState(0, 0, end) for end in ends])
    topic = Topic(NamespaceState(1, "n", 0), state, 5)
    assert topic.fit(5) == []
    return topic


def test_everything_recovered_is_visible() -> None:
    assert [partition.high_watermark for partition in live(3, 0).partitions] == [3, 0]


def test_added_partitions_know_the_change_that_made_them() -> None:
    topic = live(3)
    first = topic.partitions[0]
    topic.state.partitions.append(PartitionState(9))
    assert topic.fit(8) == []
    assert topic.partitions[0] is first
    assert (topic.partitions[1].number, topic.partitions[1].created_sequence) == (1, 8)
    assert (first.created_sequence, topic.sequence) == (5, 8)


def test_removed_partitions_are_dropped_and_given_back() -> None:
    topic = live(3, 4)
    del topic.state.partitions[1]
    (gone,) = topic.fit(8)
    assert (gone.number, gone.dropped, topic.partitions[0].dropped) == (1, True, False)
    assert not topic.dropped


def test_a_dropped_topic_drops_all() -> None:
    topic = live(3, 4)
    gone = topic.drop(9)
    assert [partition.dropped for partition in gone] == [True, True]
    assert (topic.dropped, topic.partitions, topic.sequence) == (True, [], 9)
