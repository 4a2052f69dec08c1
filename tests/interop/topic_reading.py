"""What a topic holds, as one of our own clients reads it, and whether that is what was sent."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dragoman.clients.sync import connect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.server import Server

PARTITIONS = 3
OTHERS = ("v1", "iggy", "rustlog")
"""The dialects that a Cursus client's records have to cross into."""

Row = tuple[int, int, str]
"""Partition, offset, value."""


def read_all(server: Server, dialect: str, topic: str) -> list[Row]:
    """Every record of the topic by one of our own clients."""
    rows: list[Row] = []
    with connect(dialect, port=server.ports[dialect]) as reader:
        for partition in range(PARTITIONS):
            at = 0
            while records := reader.fetch(topic, partition, at):
                rows += [(partition, r.offset, (r.value or b"").decode()) for r in records]
                at = records[-1].offset + 1
    return rows


def check_whole(rows: Iterable[Row], prefix: str, count: int) -> None:
    """Each of `count` values once, offsets without a gap, each partition in its order."""
    parts: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for partition, offset, value in rows:
        assert value.startswith(prefix)
        parts[partition].append((offset, int(value.removeprefix(prefix))))
    numbers = sorted(number for part in parts.values() for _, number in part)
    assert numbers == [*range(count)]
    for part in parts.values():
        assert [offset for offset, _ in part] == [*range(len(part))]
        assert part == sorted(part, key=lambda pair: pair[1])


def write(server: Server, dialect: str, topic: str, values: list[bytes]) -> None:
    """Deals the values to the partitions in turn, by one of our own clients."""
    with connect(dialect, port=server.ports[dialect]) as writer:
        if dialect == "v1":
            # V1 has no partition of the writer's choice.
            writer.produce(topic, values)
            return
        for partition in range(PARTITIONS):
            writer.produce(topic, values[partition::PARTITIONS], partition=partition)
