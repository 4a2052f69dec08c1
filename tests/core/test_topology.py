"""What descriptions add up."""

from __future__ import annotations

from dragoman.core.topology import PartitionDescription, TopicConfig, TopicDescription


def test_a_topic_sums_its_partitions() -> None:
    partitions = [PartitionDescription(n, 0, 2, 9, 7, 100, 1) for n in range(3)]
    topic = TopicDescription("default", "t", 1, 0, TopicConfig(), partitions)
    assert (topic.size_bytes, topic.records) == (300, 15)
