"""Retention: what is older or more than a topic keeps is trimmed, a few partitions at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.interface import Work
    from dragoman.core.options import EngineOptions
    from dragoman.core.partition import Partition
    from dragoman.core.store import ExpiryWork, Store
    from dragoman.core.trim import Trimming

PARTITIONS_PER_TICK = 64
"""How many partitions one tick looks at, so that no tick takes long."""


class Retention:
    """Walks all partitions each period and trims what the store says has expired.

    Attributes:
        trims: Changes of a log start so far.
        cleanups: Rounds over all partitions that trimmed something.
    """

    def __init__(
        self, options: EngineOptions, store: Store, directory: Directory, trimming: Trimming
    ) -> None:
        self._options = options
        self._store = store
        self._directory = directory
        self._trimming = trimming
        self._left: list[Partition] = []
        self._next_us = 0
        self._due: list[Work] = []
        self._looking: dict[int, tuple[Partition, ExpiryWork]] = {}
        self._busy: set[Partition] = set()
        self._has_trimmed = False
        self.trims = 0
        self.cleanups = 0

    def tick(self, now: Now) -> None:
        """Does the next bounded piece of work that is due."""
        if not self._left:
            if now.mono_us < self._next_us:
                return
            self._next_us = now.mono_us + self._options.retention_check_us
            self._has_trimmed = False
            self._left = [
                partition
                for topic in self._directory.topics.values()
                if self._limits(topic.state.config) != (0, 0)
                for partition in topic.partitions
            ]
        if self._store.failure is not None or self._directory.closing:
            self._left.clear()
            return
        for partition in self._left[-PARTITIONS_PER_TICK:]:
            if not partition.dropped and partition not in self._busy:
                self._check(partition, now)
        del self._left[-PARTITIONS_PER_TICK:]

    def take_work(self) -> list[Work]:
        """Looks at segments that may block, each handed out once."""
        if not self._due:
            return []
        due, self._due = self._due, []
        return due

    def finished(self, work: Work) -> bool:
        """A work ended; returns whether it was one of these. What could not be read is asked for
        again in the next round."""
        found = self._looking.pop(id(work), None)
        if found is None:
            return False
        partition, look = found
        self._busy.discard(partition)
        stopped = self._store.failure is not None or self._directory.closing
        if look.start is not None and not partition.dropped and not stopped:
            self._trim(partition, look.start)
        return True

    def _limits(self, config: dict[str, int | bool]) -> tuple[int, int]:
        options = self._options
        return (
            int(config.get("retention_ms", 0)) or options.retention_ms,
            int(config.get("retention_bytes", 0)) or options.retention_bytes,
        )

    def _check(self, partition: Partition, now: Now) -> None:
        age_ms, bytes_max = self._limits(partition.topic.state.config)
        before_us = max(now.wall_us - age_ms * 1000, 0) if age_ms else 0
        found = self._store.expired(
            partition.topic_id, partition.number, before_us=before_us, bytes_max=bytes_max
        )
        if isinstance(found, int):
            self._trim(partition, found)
        elif found is not None:
            self._looking[id(found)] = (partition, found)
            self._busy.add(partition)
            self._due.append(found)

    def _trim(self, partition: Partition, start: int) -> None:
        if self._trimming.trim(partition, min(start, partition.high_watermark)):
            self.trims += 1
            if not self._has_trimmed:
                self._has_trimmed = True
                self.cleanups += 1
