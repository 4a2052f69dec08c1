"""Topics and partitions as they live in memory: the catalog's state plus who waits for what.

The catalog holds what survives a restart; these objects hold the rest (high watermark, long polls,
followers, the round-robin position) and point at their state in the catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.core.catalog import NamespaceState, PartitionState, TopicState
    from dragoman.core.events.index import Index
    from dragoman.core.outcome import Outcome
    from dragoman.core.replica import Replication


class Partition:
    """One partition.

    Attributes:
        state: Its ends in the catalog; the engine alone moves `next_offset` on.
        high_watermark: The first offset that no reader may see. It never falls.
        created_sequence: The change that made it; older flushes speak of a dropped namesake.
        batch_sequence: Of the newest batch that was appended.
        start_sequence: Of the newest trim.
        dropped: The partition or its topic is gone.
        polls: Long polls that wait here, in the order in which they came.
        followers: Follows that wait here for records.
        replication: What concerns replicas; None while nobody reported, waited for one, or set a
            role.
        index: What is to hear of every batch that is appended: the index of an event-sourcing
            partition while it is in memory, else None.
    """

    __slots__ = (
        "batch_sequence",
        "created_sequence",
        "dropped",
        "followers",
        "high_watermark",
        "index",
        "number",
        "polls",
        "replication",
        "start_sequence",
        "state",
        "topic",
        "topic_id",
    )

    def __init__(
        self, topic: Topic, number: int, state: PartitionState, created_sequence: int
    ) -> None:
        self.topic = topic
        self.topic_id = topic.state.topic_id
        self.number = number
        self.state = state
        self.high_watermark = state.next_offset
        self.created_sequence = created_sequence
        self.batch_sequence = 0
        self.start_sequence = 0
        self.dropped = False
        self.polls: dict[Outcome, None] = {}
        self.followers: dict[Outcome, None] = {}
        self.replication: Replication | None = None
        self.index: Index | None = None


class Topic:
    """One topic.

    Attributes:
        sequence: Of the newest change of the topic itself (made, renamed, grown, dropped).
        offset_sequences: Of the newest committed offset of each (kind, group).
        dropped: The topic is gone.
        turn: The partition that the next round-robin produce takes.
    """

    __slots__ = (
        "dropped",
        "namespace",
        "offset_sequences",
        "partitions",
        "sequence",
        "state",
        "turn",
    )

    def __init__(self, namespace: NamespaceState, state: TopicState, sequence: int) -> None:
        self.namespace = namespace
        self.state = state
        self.sequence = sequence
        self.offset_sequences: dict[tuple[str, str], int] = {}
        self.turn = 0
        self.dropped = False
        self.partitions: list[Partition] = []

    def fit(self, sequence: int) -> list[Partition]:
        """Makes the live partitions match the catalog; returns those that were dropped."""
        self.sequence = sequence
        states = self.state.partitions
        dropped = self.partitions[len(states) :]
        del self.partitions[len(states) :]
        for partition in dropped:
            partition.dropped = True
        for number in range(len(self.partitions), len(states)):
            self.partitions.append(Partition(self, number, states[number], sequence))
        return dropped

    def drop(self, sequence: int) -> list[Partition]:
        """Marks the topic as gone; returns its partitions."""
        self.sequence = sequence
        self.dropped = True
        dropped = self.partitions
        self.partitions = []
        for partition in dropped:
            partition.dropped = True
        return dropped
