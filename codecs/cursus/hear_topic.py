"""What a Cursus server says of a topic, in core's vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.cursus.fault import address_of
from dragoman.codecs.cursus.setting import config_of
from dragoman.core.name import split_flat
from dragoman.core.topology import PartitionDescription, TopicConfig, TopicDescription

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTITIONS_MAX: Final = 1_000_000
"""More than a server can have; what it says becomes a value for each."""


def told_topic(fields: Mapping[str, str]) -> TopicDescription:
    """The topic of an answer of `name=value`, as far as it is told.

    Raises:
        KeyError, ValueError: What has to be there is missing, or is no number.
        ProtocolError: There is no such topic.
    """
    topic = described(fields["topic"], int(fields["partitions"]))
    leaders = fields.get("leaders", "").split(",")
    for partition, leader in zip(topic.partitions, leaders, strict=False):
        partition.leader = address_of(leader)
    topic.config = config_of({name: value.encode() for name, value in fields.items()})
    return topic


def described(name: str, partitions: int) -> TopicDescription:
    """A topic of which only the name and the number of partitions are known.

    Raises:
        ProtocolError: There are not so many.
    """
    if not 0 <= partitions <= PARTITIONS_MAX:
        raise ProtocolError(f"a topic of {partitions} partitions")
    namespace, topic = split_flat(name)
    unknown = [PartitionDescription(number, 0, 0, 0, 0, 0, 0) for number in range(partitions)]
    return TopicDescription(namespace, topic, 0, 0, TopicConfig(), unknown)
