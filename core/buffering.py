"""How much of one partition may be appended and not be durable yet: its buffer.

A buffer refuses nothing. While one is full, connections that produce are not read, so that their
senders wait in the network as they would for a slow disk; what was read before is taken, and a
batch that is larger than a buffer passes an empty one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.core.partition import Partition


class Buffers:
    """Knows the partitions whose buffer is full.

    Args:
        records_max: A partition of which so many records wait is full.

    Attributes:
        filled: How often a buffer became full.
    """

    def __init__(self, records_max: int) -> None:
        self._records_max = records_max
        self._full: dict[Partition, None] = {}
        self.filled = 0

    def appended(self, partition: Partition) -> None:
        """Something was appended to the partition."""
        if self._waiting(partition) >= self._records_max and partition not in self._full:
            self._full[partition] = None
            self.filled += 1

    def any_full(self) -> bool:
        """Whether a buffer is full now."""
        if self._full:
            for partition in list(self._full):
                if partition.dropped or self._waiting(partition) < self._records_max:
                    del self._full[partition]
        return bool(self._full)

    @staticmethod
    def _waiting(partition: Partition) -> int:
        """Records that are appended and not durable; what only replicas lack is not among them."""
        kept = partition.replication
        durable_end = partition.high_watermark if kept is None else kept.durable_end
        return partition.state.next_offset - durable_end
