"""Which partition a produce goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import ByHash
from dragoman.core.error import EngineError, ErrorCode

if TYPE_CHECKING:
    from dragoman.core.calls import Route
    from dragoman.core.directory import Directory
    from dragoman.core.partition import Partition, Topic


_FNV_BASIS = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_U64 = (1 << 64) - 1


def fnv1a_64(data: bytes) -> int:
    """FNV-1a of 64 bits, by which Cursus clients and servers spread keys over partitions."""
    value = _FNV_BASIS
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & _U64
    return value


def route(directory: Directory, topic: Topic, way: Route) -> Partition:
    """Returns the partition; a choice of the client is always honoured.

    Round robin begins at partition 0 and moves on by one a request, whatever its size.

    Raises:
        EngineError: NO_PARTITIONS, UNKNOWN_PARTITION.
    """
    if type(way) is int:
        return directory.partition(topic, way)
    partitions = topic.partitions
    if not partitions:
        raise EngineError(
            ErrorCode.NO_PARTITIONS, "the topic has no partitions", topic=topic.state.name
        )
    if type(way) is ByHash:
        return partitions[way.hash % len(partitions)]
    turn = topic.turn
    if turn >= len(partitions):
        turn = 0
    topic.turn = turn + 1
    return partitions[turn]
