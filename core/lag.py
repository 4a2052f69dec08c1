"""How far behind groups are: what is visible and lies at or past their committed offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.calls import OffsetKind

if TYPE_CHECKING:
    from dragoman.core.directory import Directory


class Lag(NamedTuple):
    """One partition as one group has read it.

    Attributes:
        records: Offsets from the committed one to the high watermark.
    """

    namespace: str
    topic: str
    partition: int
    group: str
    records: int


class Lags(NamedTuple):
    """Some of them, and how many there are besides."""

    listed: list[Lag]
    left_out: int


def lags_of(directory: Directory, count_max: int) -> Lags:
    """The lag of every group in every partition that it committed for, up to so many."""
    listed: list[Lag] = []
    left_out = 0
    for topic in directory.topics.values():
        partitions = topic.partitions
        for (kind, group), offsets in topic.state.offsets.items():
            if kind != OffsetKind.GROUP.value:
                continue
            if len(listed) >= count_max:
                left_out += len(offsets)
                continue
            for number, offset in offsets.items():
                if number >= len(partitions):
                    continue
                if len(listed) >= count_max:
                    left_out += 1
                    continue
                behind = max(partitions[number].high_watermark - max(offset, 0), 0)
                listed.append(Lag(topic.namespace.name, topic.state.name, number, group, behind))
    return Lags(listed, left_out)
