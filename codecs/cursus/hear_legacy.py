"""What Cursus brokers before July 2026 answered where newer ones answer `OK name=value ...`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman.codecs.cursus.hear_topic import described
from dragoman.core import calls
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from dragoman.core.calls import Reply, Request

_CREATED = re.compile(r"\W*Topic '(.+)' now has (\d{1,7}) partitions")
_DELETED = re.compile(r"\W*Topic '(.+)' deleted")
_LEFT = re.compile(r"\W*Left group '.*'")
_NAMES = re.compile(r"[\w.\-/]+(?:, [\w.\-/]+)*")
_NUMBER = re.compile(r"\d{1,19}")


def hear_legacy(request: Request, text: str) -> Reply | None:
    """The reply that an older broker's words mean, or None where they are none.

    Raises:
        ProtocolError: They tell of a topic that cannot be.
    """
    match request:
        case calls.FetchOffset(partition=partition) if _NUMBER.fullmatch(text):
            return calls.OffsetFetched(partition, int(text), 0)
        case calls.FetchOffset(partition=partition) if text == "ERROR: no offset found":
            return calls.OffsetFetched(partition, None, 0)
        case calls.CreateTopic() if found := _CREATED.fullmatch(text):
            return calls.TopicCreated(described(found[1], int(found[2])))
        case calls.DeleteTopic() if found := _DELETED.fullmatch(text):
            return calls.TopicDeleted(*split_flat(found[1]))
        case calls.ListTopics() if text == "(no topics)":
            return calls.TopicsListed([])
        case calls.ListTopics() if _NAMES.fullmatch(text) and text != "OK":
            return calls.TopicsListed([described(name, 0) for name in text.split(", ")])
        case calls.LeaveGroup(member=member) if _LEFT.fullmatch(text) or text == "OK":
            return calls.GroupLeft(member, True)
        case calls.Heartbeat(member=member, generation=generation) if text == "OK":
            return calls.HeartbeatAccepted(member, generation or 0)
    return None
