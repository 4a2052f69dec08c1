"""Namespaces, topics and partitions as replies show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import (
    NamespaceDescription,
    PartitionDescription,
    Role,
    TopicConfig,
    TopicDescription,
)

if TYPE_CHECKING:
    from dragoman.core.catalog import NamespaceState
    from dragoman.core.directory import Directory
    from dragoman.core.partition import Partition, Topic
    from dragoman.core.replica import Replicas
    from dragoman.core.store import Store


class Describer:
    """Draws descriptions from the live state and the store's sizes."""

    def __init__(self, store: Store, directory: Directory, replicas: Replicas) -> None:
        self._store = store
        self._directory = directory
        self._replicas = replicas

    def namespace(self, state: NamespaceState) -> NamespaceDescription:
        """A namespace with its topics, by number."""
        topics = [self.topic(topic) for topic in self.topics(state)]
        return NamespaceDescription(state.name, state.number, state.created_us, topics)

    def topics(self, state: NamespaceState) -> list[Topic]:
        """The namespace's live topics, by number."""
        live = self._directory.topics
        return [live[state.by_number[number].topic_id] for number in sorted(state.by_number)]

    def topic(self, topic: Topic) -> TopicDescription:
        """A topic with its partitions."""
        described = self.name(topic)
        described.partitions = [self.partition(partition) for partition in topic.partitions]
        return described

    def name(self, topic: Topic) -> TopicDescription:
        """A topic without its partitions."""
        state = topic.state
        return TopicDescription(
            topic.namespace.name,
            state.name,
            state.number,
            state.created_us,
            config_from(state.config),
            [],
        )

    def partition(self, partition: Partition) -> PartitionDescription:
        """A partition as it stands."""
        state = partition.state
        size_bytes, segments = self._store.size(partition.topic_id, partition.number)
        return PartitionDescription(
            partition.number,
            state.created_us,
            state.log_start_offset,
            state.next_offset,
            partition.high_watermark,
            size_bytes,
            segments,
            Role.FOLLOWER if state.is_follower else Role.LEADER,
            self._replicas.in_sync(partition),
            self._replicas.is_under_replicated(partition),
        )


def revealed_by(topic: Topic) -> int:
    """The newest sequence that a description of this topic reveals: its own changes, and where the
    logs of its partitions start and end."""
    return max(
        [topic.sequence, *[max(p.batch_sequence, p.start_sequence) for p in topic.partitions]]
    )


def config_from(config: dict[str, int | bool]) -> TopicConfig:
    """Reads a topic's settings at rest."""
    return TopicConfig(
        retention_ms=int(config.get("retention_ms", 0)),
        retention_bytes=int(config.get("retention_bytes", 0)),
        idempotent=bool(config.get("idempotent", False)),
        compact=bool(config.get("compact", False)),
        tombstone_ms=int(config.get("tombstone_ms", 0)),
        dedupe_ms=int(config.get("dedupe_ms", 0)),
        event_sourcing=bool(config.get("event_sourcing", False)),
    )


def config_at_rest(config: TopicConfig) -> dict[str, int | bool]:
    """A topic's settings at rest; what has its default is left out."""
    fields: dict[str, int | bool] = {
        "retention_ms": config.retention_ms,
        "retention_bytes": config.retention_bytes,
        "idempotent": config.idempotent,
        "compact": config.compact,
        "tombstone_ms": config.tombstone_ms,
        "dedupe_ms": config.dedupe_ms,
        "event_sourcing": config.event_sourcing,
    }
    return {name: value for name, value in fields.items() if value}
