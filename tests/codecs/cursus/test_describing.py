"""What DESCRIBE tells; whole answers are vectors."""

from __future__ import annotations

import orjson

from dragoman.codecs.cursus.describing import described_json
from dragoman.core.calls import PartitionDescription, Role, TopicConfig, TopicDescription


def test_a_partition_that_is_a_follower_names_no_leader() -> None:
    partitions = [
        PartitionDescription(0, 0, 2, 9, 7, 100, 1),
        PartitionDescription(1, 0, 0, 3, 3, 100, 1, Role.FOLLOWER),
    ]
    topic = TopicDescription("n", "t", 1, 0, TopicConfig(compact=True), partitions)
    told = orjson.loads(described_json(topic, "n/t", "h:1"))
    assert (told["status"], told["topic"]) == ("OK", "n/t")
    assert [(part["leader"], part["leo"], part["hwm"]) for part in told["partitions"]] == [
        ("h:1", 9, 7),
        ("", 3, 3),
    ]
    assert told["policy"]["compact"] is True
    assert told["policy"]["retention_hours"] == 0


def test_retention_is_told_in_whole_hours_and_exactly() -> None:
    topic = TopicDescription("n", "t", 1, 0, TopicConfig(retention_ms=9_000_000), [])
    policy = orjson.loads(described_json(topic, "t", "h:1"))["policy"]
    assert (policy["retention_hours"], policy["retention"]) == (2, 9_000_000)
