"""What a server says of a topic is believed as far as a topic can be."""

from __future__ import annotations

import pytest

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.cursus.hear_topic import PARTITIONS_MAX, described, told_topic
from dragoman.codecs.cursus.hearing import understand
from dragoman.core import calls


def test_a_topic_has_the_leaders_and_settings_that_are_told() -> None:
    told = "topic=ns/t partitions=2 leaders=h:1,nowhere idempotent=true"
    topic = told_topic(dict(item.split("=") for item in told.split()))
    assert (topic.namespace, topic.name) == ("ns", "t")
    assert [partition.leader for partition in topic.partitions] == ["h:1", ""]
    assert topic.config == calls.TopicConfig(idempotent=True)


@pytest.mark.parametrize("count", [-1, PARTITIONS_MAX + 1])
def test_no_topic_has_so_many_partitions(count: int) -> None:
    with pytest.raises(ProtocolError):
        described("t", count)


def test_nor_has_one_of_an_older_broker() -> None:
    with pytest.raises(ProtocolError):
        understand(calls.CreateTopic("t", 1), b"Topic 't' now has 9999999 partitions")
