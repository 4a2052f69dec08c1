"""Roles, what replicas report, and produces that wait for replicas (acks=all).

A produce waits here from the beginning, since a replica may report a record before it is durable
here: it is answered when the high watermark has passed its records and enough replicas are in sync,
or, once they are durable, with REPLICATION_TIMEOUT. The records stay either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import Produced, ProducedMany, ReplicaReported, Role, RoleSet
from dragoman.core.change import RolePut
from dragoman.core.error import EngineError, ErrorCode, Failure
from dragoman.core.outcome import Outcome
from dragoman.core.waiting import Deadlines, dropped_failure, fenced

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.calls import ReportReplica, SetRole
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.options import EngineOptions
    from dragoman.core.outcome import Client
    from dragoman.core.partition import Partition
    from dragoman.core.replica import Replicas
    from dragoman.core.store import Store
    from dragoman.core.topic import Topics
    from dragoman.core.waiting import Waiting

_FOR_EVER_US = 1 << 62


class AckWait:
    """The `state` of a produce's outcome while it waits for replicas.

    Attributes:
        parts, partitions: What became of the records, and where: they go together.
        places: As `ProducedMany` has them, or None for the outcome of a `Produce`.
        sequence: What must be revealed before anything is told.
        ends: What the high watermarks must reach, of the partitions where they have not yet.
    """

    __slots__ = ("client", "ends", "partitions", "parts", "places", "sequence")

    def __init__(
        self,
        client: Client,
        parts: list[Produced | Failure],
        partitions: list[Partition],
        places: list[int] | None,
        sequence: int,
    ) -> None:
        self.client = client
        self.parts = parts
        self.partitions = partitions
        self.places = places
        self.sequence = sequence
        self.ends = {
            partition: part.base_offset + part.count
            for part, partition in zip(parts, partitions, strict=True)
            if isinstance(part, Produced)
        }


class Replicating:
    """Serves SetRole and ReportReplica, and holds produces with acks=all.

    Args:
        on_moved: Told of a partition whose high watermark a replica let move.

    Attributes:
        timeouts: Produces that waited for replicas in vain since the start.
    """

    def __init__(
        self,
        options: EngineOptions,
        store: Store,
        directory: Directory,
        topics: Topics,
        replicas: Replicas,
        waiting: Waiting,
        on_moved: Callable[[Partition], None],
    ) -> None:
        self._factor = options.replication_factor
        self._timeout_us = options.acks_all_timeout_us
        self._store = store
        self._directory = directory
        self._topics = topics
        self._replicas = replicas
        self._waiting = waiting
        self._on_moved = on_moved
        self._deadlines = Deadlines()
        self.timeouts = 0
        for topic in directory.topics.values():
            for partition in topic.partitions:
                if partition.state.is_follower:
                    replicas.track(partition)

    # ------------------------------------------------------------ requests

    def set_role(self, request: SetRole, client: Client, now: Now) -> Outcome:
        """Makes this server a partition's leader or follower; readers go on either way."""
        topic = self._topics.topic_or_new(
            request.namespace, request.topic, request.create_partitions, now
        )
        partition = self._directory.partition(topic, request.partition)
        is_follower = request.role is Role.FOLLOWER
        if is_follower != partition.state.is_follower:
            self._directory.check_writable()
            self._replicas.track(partition)
            topic.sequence = self._directory.apply_admin(
                RolePut(partition.topic_id, partition.number, is_follower)
            )
        reply = RoleSet(
            topic.namespace.name,
            topic.state.name,
            partition.number,
            request.role,
            partition.high_watermark,
        )
        return self._waiting.answer(client, reply, topic.sequence)

    def report(self, request: ReportReplica, client: Client, now: Now) -> Outcome:
        """Takes a replica's word for how far it is; who waits for that is answered."""
        if not 0 < request.replica < self._factor:
            raise EngineError(
                ErrorCode.INVALID_NUMBER,
                f"a replica is 1 to {self._factor - 1}",
                number=request.replica,
            )
        topic = self._directory.topic(request.namespace, request.topic)
        partition = self._directory.partition(topic, request.partition)
        check_leader(partition)
        replicas = self._replicas
        replicas.report(partition, request.replica, request.offset + 1, now)
        self._advance(partition)
        # A report that moved no watermark may still have made the replicas in sync enough.
        self.moved(partition)
        reply = ReplicaReported(
            partition.number,
            request.replica,
            request.offset,
            partition.high_watermark,
            replicas.in_sync(partition),
            replicas.is_under_replicated(partition),
        )
        return self._waiting.answer(client, reply, topic.sequence)

    # ------------------------------------------------------------ acks=all

    def hold(
        self, client: Client, reply: Produced, sequence: int, partition: Partition, now: Now
    ) -> Outcome:
        """The outcome of a produce with acks=all, which appended to the partition or repeated what
        was appended before."""
        end = partition.state.next_offset
        if self._is_copied(partition, end):
            return self._waiting.hold_unless_revealed(client, reply, sequence, partition)
        wait = AckWait(client, [reply], [partition], None, sequence)
        wait.ends[partition] = end
        return self._hold(wait, now)

    def hold_many(
        self,
        client: Client,
        reply: ProducedMany,
        sequence: int,
        partitions: list[Partition],
        now: Now,
    ) -> Outcome:
        """The outcome of a produce with acks=all to several partitions, which go with
        `reply.parts`."""
        wait = AckWait(client, reply.parts, partitions, reply.places, sequence)
        if all(self._is_copied(partition, end) for partition, end in wait.ends.items()):
            return self._waiting.hold_many(client, reply, sequence, partitions)
        return self._hold(wait, now)

    def durable(self, partition: Partition, end: int, now: Now) -> bool:
        """Records of a tracked partition are durable; returns whether its watermark moved."""
        moved = self._replicas.durable(partition, end, now)
        if moved:
            self.moved(partition)
        return moved

    def moved(self, partition: Partition) -> None:
        """Answers the produces that waited for what the partition's replicas have by now."""
        kept = partition.replication
        if kept is None or not kept.waits or self._replicas.is_under_replicated(partition):
            return
        high_watermark = partition.high_watermark
        for outcome in list(kept.waits):
            wait: AckWait = outcome.state
            if wait.ends[partition] <= high_watermark:
                del kept.waits[outcome]
                del wait.ends[partition]
                if not wait.ends:
                    self._finish(outcome, wait)

    def tick(self, now: Now) -> None:
        """Replicas that fell silent hold nobody back any more; who waited too long is told."""
        for partition in self._replicas.take_stale(now):
            self._advance(partition)
        for outcome in self._deadlines.take_due(now.mono_us):
            self._give_up(outcome)

    def dropped(self, partition: Partition) -> None:
        """The partition is gone: who waits there is told."""
        self._replicas.forget(partition)
        kept = partition.replication
        if kept is not None:
            for outcome in list(kept.waits):
                del kept.waits[outcome]
                wait: AckWait = outcome.state
                del wait.ends[partition]
                if not wait.ends:
                    self._finish(outcome, wait)

    def cancel(self, outcome: Outcome) -> None:
        """Nobody waits for this any more."""
        wait = outcome.state
        self._let_go(outcome, wait)
        outcome.state = None

    def end_all(self) -> None:
        """Waits for replicas no longer: the server stops."""
        for outcome in self._deadlines.take_due(_FOR_EVER_US):
            self._give_up(outcome)

    def fail_all(self, error: OSError) -> None:
        """The store is fenced: whoever waits is told."""
        for outcome in self._deadlines.take_due(_FOR_EVER_US):
            wait = outcome.state
            self._let_go(outcome, wait)
            self._waiting.settle(outcome, wait.client, fenced(error), 0)

    @property
    def waiting_count(self) -> int:
        """Produces that wait for replicas."""
        return len(self._deadlines)

    @property
    def follower_count(self) -> int:
        """Partitions that another server leads."""
        return sum([partition.state.is_follower for partition in self._replicas.tracked])

    @property
    def under_replicated_count(self) -> int:
        """Partitions with fewer replicas in sync than acks=all wants."""
        replicas = self._replicas
        if replicas.in_sync_min <= 1:
            return 0
        well = [not replicas.is_under_replicated(partition) for partition in replicas.tracked]
        return self._directory.partition_count - sum(well)

    def _is_copied(self, partition: Partition, end: int) -> bool:
        """Whether nothing but durability is missing: nobody else needs to have the records, or all
        who need to have them."""
        replicas = self._replicas
        if replicas.is_under_replicated(partition):
            return False
        kept = partition.replication
        return kept is None or not kept.replicas or end <= partition.high_watermark

    def _hold(self, wait: AckWait, now: Now) -> Outcome:
        outcome = Outcome(None, wait.sequence, ready=False)
        outcome.state = wait
        for partition in wait.ends:
            self._replicas.track(partition).waits[outcome] = None
        self._waiting.keep(wait.client, outcome)
        self._deadlines.put(outcome, now.mono_us + self._timeout_us)
        return outcome

    def _advance(self, partition: Partition) -> None:
        if self._replicas.advance(partition):
            self.moved(partition)
            self._on_moved(partition)

    def _give_up(self, outcome: Outcome) -> None:
        wait = outcome.state
        self.timeouts += 1
        for index, partition in enumerate(wait.partitions):
            if partition in wait.ends:
                wait.parts[index] = Failure(
                    ErrorCode.REPLICATION_TIMEOUT,
                    "too few replicas have the records in time; they stay",
                    {"partition": partition.number},
                )
        self._finish(outcome, wait)

    def _finish(self, outcome: Outcome, wait: AckWait) -> None:
        """Nothing is waited for any more: the reply leaves once the records are durable."""
        self._let_go(outcome, wait)
        sequence = wait.sequence
        parts = wait.parts
        for index, partition in enumerate(wait.partitions):
            part = parts[index]
            if isinstance(part, Failure):
                continue
            if partition.dropped:
                parts[index] = dropped_failure(partition)
                sequence = max(sequence, partition.topic.sequence)
            else:
                part.high_watermark = partition.high_watermark
        reply = parts[0] if wait.places is None else ProducedMany(parts, wait.places)
        self._waiting.settle(outcome, wait.client, reply, sequence)

    def _let_go(self, outcome: Outcome, wait: AckWait) -> None:
        for partition in wait.ends:
            kept = partition.replication
            if kept is not None:
                kept.waits.pop(outcome, None)
        self._deadlines.forget(outcome)
        self._waiting.let_go(wait.client, outcome)


def check_leader(partition: Partition) -> None:
    """Refuses what only a partition's leader does.

    Raises:
        EngineError: NOT_LEADER.
    """
    if partition.state.is_follower:
        raise EngineError(
            ErrorCode.NOT_LEADER,
            "this server does not lead the partition",
            topic=partition.topic.state.name,
            partition=partition.number,
        )
