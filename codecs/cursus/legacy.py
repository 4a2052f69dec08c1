"""What brokers before July 2026 did otherwise, for listeners with `legacy_replies`; the replies of
group commands are in `group_reply`.

Their answers are phrases for people and bare numbers; refusals are the same as always, since their
clients look for `ERROR:` alone. Their brokers knew a text publish by its producer and its sequence,
whatever its epoch, for the half hour of the message-flow document.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from dragoman.core import calls
from dragoman.core.dedupe import DIGEST_BYTES
from dragoman.core.name import flat_name

if TYPE_CHECKING:
    from dragoman.codecs.cursus.translate import Tag

WINDOW_MS: Final = 1_800_000
"""For so long a publish is known; the message-flow document's figure."""


def producer_digest(producer: bytes, sequence: int) -> bytes:
    """What a publish is known by within its topic; never what a payload is known by."""
    data = sequence.to_bytes(8, "big") + producer
    return blake2b(data, digest_size=DIGEST_BYTES, person=b"producer").digest()


def legacy_line(tag: Tag, reply: calls.Reply) -> str | None:
    """The answer of a command about topics where it was another one; None where it was not."""
    match reply:
        case calls.TopicCreated(topic):
            return f"Topic '{tag.topic}' now has {len(topic.partitions)} partitions"
        case calls.TopicDeleted():
            return f"🗑️ Topic '{tag.topic}' deleted"
        case calls.TopicsListed(topics):
            names = sorted([flat_name(topic.namespace, topic.name) for topic in topics])
            return ", ".join(names) or "(no topics)"
    return None
