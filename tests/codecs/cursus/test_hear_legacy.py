"""The replies of brokers before July 2026."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codecs.cursus.hear_legacy import hear_legacy
from dragoman.core import calls


@pytest.mark.parametrize(
    ("request_", "told", "expected"),
    [
        (calls.FetchOffset("t", "g", 2), "22", calls.OffsetFetched(2, 22, 0)),
        (
            calls.FetchOffset("t", "g", 2),
            "ERROR: no offset found",
            calls.OffsetFetched(2, None, 0),
        ),
        (calls.DeleteTopic("t"), "🗑️ Topic 'ns/t' deleted", calls.TopicDeleted("ns", "t")),
        (calls.LeaveGroup("t", "g", "m"), "✅ Left group 'g'", calls.GroupLeft("m", True)),
        (calls.Heartbeat("t", "g", "m", 4), "OK", calls.HeartbeatAccepted("m", 4)),
        (calls.ListTopics(), "(no topics)", calls.TopicsListed([])),
        (calls.FetchOffset("t", "g", 2), "OK offset=22", None),
        (calls.ListTopics(), "OK", None),
        (calls.DescribeTopic("t"), "22", None),
    ],
)
def test_an_older_reply_means_the_same(
    request_: calls.Request, told: str, expected: calls.Reply | None
) -> None:
    assert hear_legacy(request_, told) == expected


@pytest.mark.parametrize("mark", ["", "✅ "])
def test_a_topic_is_told_with_its_partitions(mark: str) -> None:
    reply: Any = hear_legacy(calls.CreateTopic("t", 2), f"{mark}Topic 't' now has 2 partitions")
    assert (reply.topic.name, len(reply.topic.partitions)) == ("t", 2)


def test_topics_are_listed_by_name() -> None:
    reply: Any = hear_legacy(calls.ListTopics(), "b, ns/a")
    assert [(topic.namespace, topic.name) for topic in reply.topics] == [
        ("default", "b"),
        ("ns", "a"),
    ]
