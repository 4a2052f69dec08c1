"""Who has copied a partition how far, and what that leaves for readers to see.

This server is replica 0 and always in sync. Another one is in sync while it reports and lags
little; the high watermark is the least that a replica in sync has, and never falls. It knows no
request and nobody who waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.due import Due

if TYPE_CHECKING:
    from dragoman.core.clock import Now
    from dragoman.core.options import EngineOptions
    from dragoman.core.outcome import Outcome
    from dragoman.core.partition import Partition
    from dragoman.core.store import Store


class Replica:
    """How far one replica has copied a partition.

    Attributes:
        next_offset: The first offset that it lacks; it never falls.
        reported_us: When it was heard of last (`Now.mono_us`).
    """

    __slots__ = ("next_offset", "reported_us")

    def __init__(self) -> None:
        self.next_offset = 0
        self.reported_us = 0


class Replication:
    """What is kept of a partition of which somebody reported, waits for replicas, or set a role.

    Attributes:
        durable_end: The end of what may be revealed, whatever the replicas have.
        replicas: By number, from 1.
        waits: Produces that wait for replicas, in the order in which they came.
        is_due: A look at who has grown stale is due some time.
    """

    __slots__ = ("durable_end", "is_due", "replicas", "waits")

    def __init__(self, durable_end: int) -> None:
        self.durable_end = durable_end
        self.replicas: dict[int, Replica] = {}
        self.waits: dict[Outcome, None] = {}
        self.is_due = False


class Replicas:
    """The in-sync rule of all partitions.

    Attributes:
        in_sync_min: So many replicas must be in sync for acks=all.
        tracked: Every partition of which something is kept.
    """

    def __init__(self, options: EngineOptions, store: Store) -> None:
        self._store = store
        self._lag_max = options.replica_lag_max
        self._timeout_us = options.replica_lag_timeout_us
        self.in_sync_min = options.in_sync_min
        self.tracked: dict[Partition, None] = {}
        self._mono_us = 0
        self._due: Due[Partition] = Due()

    def track(self, partition: Partition) -> Replication:
        """What is kept of the partition, from now on."""
        kept = partition.replication
        if kept is None:
            # Nothing was kept, so that nothing held the watermark back.
            kept = partition.replication = Replication(partition.high_watermark)
            self.tracked[partition] = None
        return kept

    def forget(self, partition: Partition) -> None:
        """The partition is gone."""
        self.tracked.pop(partition, None)
        self._due.forget(partition)

    def in_sync(self, partition: Partition) -> tuple[int, ...]:
        """The replicas in sync, by number; always with this server."""
        kept = partition.replication
        if kept is None or not kept.replicas:
            return (0,)
        found = [n for n, one in kept.replicas.items() if self._is_in_sync(partition, one)]
        return (0, *sorted(found))

    def is_under_replicated(self, partition: Partition) -> bool:
        """Whether fewer replicas are in sync than acks=all wants."""
        return self.in_sync_min > 1 and len(self.in_sync(partition)) < self.in_sync_min

    def report(self, partition: Partition, number: int, next_offset: int, now: Now) -> None:
        """A replica has copied what is below `next_offset`, which counts at most as the log's
        end."""
        self._mono_us = now.mono_us
        kept = self.track(partition)
        replica = kept.replicas.get(number)
        if replica is None:
            replica = kept.replicas[number] = Replica()
        reached = min(next_offset, partition.state.next_offset)
        if reached > replica.next_offset:
            replica.next_offset = reached
        replica.reported_us = now.mono_us
        if not kept.is_due:
            self._put_due(partition, kept, now.mono_us)

    def durable(self, partition: Partition, end: int, now: Now) -> bool:
        """Records below `end` are durable; returns whether the high watermark moved."""
        self._mono_us = now.mono_us
        self.track(partition).durable_end = end
        return self.advance(partition)

    def advance(self, partition: Partition) -> bool:
        """Moves the high watermark to the least that a replica in sync has; returns whether it
        moved."""
        kept = self.track(partition)
        reach = kept.durable_end
        for replica in kept.replicas.values():
            if replica.next_offset < reach and self._is_in_sync(partition, replica):
                reach = replica.next_offset
        moved = reach > partition.high_watermark
        if moved:
            partition.high_watermark = reach
        if moved or reach < kept.durable_end:
            # A flush shows readers beside the engine all of it.
            self._store.limit_visible(
                partition.topic_id, partition.number, partition.high_watermark
            )
        return moved

    def take_stale(self, now: Now) -> list[Partition]:
        """The partitions of which a replica has grown stale since the last call."""
        self._mono_us = now.mono_us
        stale: list[Partition] = []
        for partition in self._due.take_due(now.mono_us):
            kept = self.track(partition)
            kept.is_due = False
            times = [one.reported_us for one in kept.replicas.values() if self._is_fresh(one)]
            if times:
                self._put_due(partition, kept, min(times))
            if len(times) < len(kept.replicas):
                stale.append(partition)
        return stale

    def _put_due(self, partition: Partition, kept: Replication, reported_us: int) -> None:
        kept.is_due = True
        self._due.put(partition, reported_us + self._timeout_us)

    def _is_fresh(self, replica: Replica) -> bool:
        return self._mono_us - replica.reported_us < self._timeout_us

    def _is_in_sync(self, partition: Partition, replica: Replica) -> bool:
        lag = partition.state.next_offset - replica.next_offset
        return lag <= self._lag_max and self._is_fresh(replica)
