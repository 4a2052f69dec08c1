"""Where requests find their topic, and the one way by which state other than records changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.partition import Topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.calls import Key
    from dragoman.core.catalog import NamespaceState
    from dragoman.core.change import Change
    from dragoman.core.partition import Partition
    from dragoman.core.store import Store


class Directory:
    """The live topics over the store's catalog.

    Attributes:
        catalog: The live state, shared with the store's contract.
        sequence: Of the newest change that is not a committed offset or a trim.
        offsets_sequence: Of the newest committed offset of any topic.
        trims_sequence: Of the newest trim of any partition.
        closing: Nothing new is taken any more.
        partition_count, offset_groups: Partitions, and groups and consumers with committed offsets,
            of all topics together.
        on_admin: Told of every change of a namespace or topic once the catalog has it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.catalog = store.catalog
        self.sequence = 0
        self.offsets_sequence = 0
        self.trims_sequence = 0
        self.closing = False
        self.partition_count = 0
        self.offset_groups = 0
        self.on_admin: Callable[[Change], None] | None = None
        self.topics: dict[int, Topic] = {}
        self._found: dict[tuple[Key, Key], Topic] = {}
        for state in self.catalog.topics.values():
            self._adopt(state.topic_id, 0)

    def topic(self, namespace: Key, topic: Key) -> Topic:
        """The topic by names or numbers.

        Raises:
            EngineError: UNKNOWN_NAMESPACE, UNKNOWN_TOPIC.
        """
        found = self._found.get((namespace, topic))
        if found is not None:
            return found
        home = self.namespace(namespace)
        state = home.topics.get(topic) if isinstance(topic, str) else home.by_number.get(topic)
        if state is None:
            raise EngineError(ErrorCode.UNKNOWN_TOPIC, "there is no such topic", topic=topic)
        found = self.topics[state.topic_id]
        self._found[namespace, topic] = found
        return found

    def namespace(self, key: Key) -> NamespaceState:
        """The namespace by name or number.

        Raises:
            EngineError: UNKNOWN_NAMESPACE.
        """
        catalog = self.catalog
        if isinstance(key, str):
            found = catalog.namespaces.get(key)
        else:
            found = catalog.namespaces_by_number.get(key)
        if found is None:
            raise EngineError(
                ErrorCode.UNKNOWN_NAMESPACE, "there is no such namespace", namespace=key
            )
        return found

    def partition(self, topic: Topic, number: int) -> Partition:
        """A partition of the topic.

        Raises:
            EngineError: NO_PARTITIONS, UNKNOWN_PARTITION.
        """
        partitions = topic.partitions
        if 0 <= number < len(partitions):
            return partitions[number]
        if not partitions:
            raise EngineError(
                ErrorCode.NO_PARTITIONS,
                "the topic has no partitions",
                namespace=topic.namespace.name,
                topic=topic.state.name,
                partition=number,
            )
        raise EngineError(
            ErrorCode.UNKNOWN_PARTITION,
            f"the topic has partitions 0 to {len(partitions) - 1}",
            namespace=topic.namespace.name,
            topic=topic.state.name,
            partition=number,
            partitions=len(partitions),
        )

    @property
    def is_writable(self) -> bool:
        """Whether state may change: the engine is neither fenced nor closing."""
        return self._store.failure is None and not self.closing

    def check_writable(self) -> None:
        """Refuses what would change state while the engine is fenced or closing.

        Raises:
            EngineError: STORAGE_FAILED, SHUTTING_DOWN.
        """
        if self._store.failure is not None:
            raise EngineError(
                ErrorCode.STORAGE_FAILED,
                f"the log failed and takes nothing until restart: {self._store.failure}",
            )
        if self.closing:
            raise EngineError(ErrorCode.SHUTTING_DOWN, "the server is shutting down")

    def apply(self, change: Change) -> int:
        """Gives the change to the store and, once taken, changes the live state; returns its
        sequence."""
        sequence = self._store.append(change)
        self.catalog.apply(change)
        return sequence

    def apply_admin(self, change: Change) -> int:
        """As `apply`, for changes of namespaces and topics: what was looked up is forgotten."""
        self.sequence = self.apply(change)
        self._found.clear()
        if self.on_admin is not None:
            self.on_admin(change)
        return self.sequence

    def fit(self, topic_id: int) -> list[Partition]:
        """Makes the live topic match the catalog after a change; returns partitions that went."""
        topic = self.topics.get(topic_id)
        if topic is None:
            self._adopt(topic_id, self.sequence)
            return []
        if topic_id not in self.catalog.topics:
            del self.topics[topic_id]
            self.partition_count -= len(topic.partitions)
            self.offset_groups -= len(topic.state.offsets)
            return topic.drop(self.sequence)
        before = len(topic.partitions)
        dropped = topic.fit(self.sequence)
        self.partition_count += len(topic.partitions) - before
        return dropped

    def _adopt(self, topic_id: int, sequence: int) -> None:
        state = self.catalog.topics[topic_id]
        namespace = self.catalog.namespaces_by_number[state.namespace_number]
        topic = Topic(namespace, state, sequence)
        topic.fit(sequence)
        self.topics[topic_id] = topic
        self.partition_count += len(topic.partitions)
        self.offset_groups += len(state.offsets)
