"""Asks the store, partition by partition, to compact topics that keep the newest of each key."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.options import EngineOptions
    from dragoman.core.partition import Partition
    from dragoman.core.store import Store

PARTITIONS_PER_TICK = 64
"""How many partitions one tick looks at, so that no tick takes long."""


class Compacting:
    """Walks the partitions of compacted topics each period, in turn: where the store is busy with
    one, the others wait and are not passed over."""

    def __init__(self, options: EngineOptions, store: Store, directory: Directory) -> None:
        self._options = options
        self._store = store
        self._directory = directory
        self._left: deque[Partition] = deque()
        self._next_us = 0

    def tick(self, now: Now) -> None:
        """Does the next bounded piece of work that is due."""
        if not self._left:
            if now.mono_us < self._next_us:
                return
            self._next_us = now.mono_us + self._options.retention_check_us
            for topic in self._directory.topics.values():
                if topic.state.config.get("compact"):
                    self._left.extend(topic.partitions)
        if self._store.failure is not None or self._directory.closing:
            self._left.clear()
        for _ in range(min(len(self._left), PARTITIONS_PER_TICK)):
            if not self._ask(self._left[0], now):
                return
            self._left.popleft()

    def _ask(self, partition: Partition, now: Now) -> bool:
        """Whether the store looked at the partition."""
        config = partition.topic.state.config
        if partition.dropped or not config.get("compact"):
            return True
        grace_ms = int(config.get("tombstone_ms", 0)) or self._options.tombstone_ms
        return self._store.compact(
            partition.topic_id,
            partition.number,
            up_to=partition.high_watermark,
            tombstones_before_us=max(now.wall_us - grace_ms * 1000, 0),
        )
