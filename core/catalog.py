"""What exists: namespaces, topics, partitions, committed offsets, groups and producers, with the
one function that changes it.

The engine keeps one as its live state; the store folds journal entries into another for checkpoints
and recovery. The same changes in the same order give the same catalog.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from dragoman.core import change as ch
from dragoman.core.name import DEFAULT_NAMESPACE, DEFAULT_NAMESPACE_NUMBER

if TYPE_CHECKING:
    from dragoman.core.change import Change


K = TypeVar("K")

RANGES_MAX = 16
"""Runs of appended sequences that are remembered of one producer; a producer that writes alone has
one."""


@dataclass(slots=True)
class ProducerState:
    """An idempotent producer of one partition.

    Attributes:
        ranges: (first sequence, last sequence, offset of the first), oldest first. What follows on
            in both sequence and offset is one.
        last_us: Append time of its newest batch.
    """

    epoch: int
    last_us: int
    ranges: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, first: int, last: int, base_offset: int, timestamp_us: int) -> None:
        """The sequences `first` to `last` were appended from `base_offset` on."""
        ranges = self.ranges
        if ranges:
            start, end, base = ranges[-1]
            if first == end + 1 and base_offset == base + (first - start):
                ranges[-1] = (start, last, base)
                self.last_us = timestamp_us
                return
        ranges.append((first, last, base_offset))
        del ranges[:-RANGES_MAX]
        self.last_us = timestamp_us


def put_producer(producers: dict[K, ProducerState], key: K, put: ch.ProducerPut) -> None:
    """A producer, known by `key`, appended; a new epoch begins it anew."""
    state = producers.get(key)
    if state is None or state.epoch != put.epoch:
        state = producers[key] = ProducerState(put.epoch, 0)
    state.add(put.first_sequence, put.last_sequence, put.base_offset, put.timestamp_us)


@dataclass(slots=True)
class PartitionState:
    """One partition's ends. `next_offset` and `last_timestamp_us` follow from its batches.

    Attributes:
        is_follower: Another server leads it: nothing is produced to it here.
        producers: Idempotent producers by name, their bytes read as Latin-1.
    """

    created_us: int
    log_start_offset: int = 0
    next_offset: int = 0
    last_timestamp_us: int = 0
    is_follower: bool = False
    producers: dict[str, ProducerState] = field(default_factory=dict)


@dataclass(slots=True)
class GroupState:
    """One consumer group since its newest generation; the fields are those of `change.GroupPut`."""

    number: int
    generation: int
    assignor: str
    partitions: int
    members: list[list[str | int | bool]]


@dataclass(slots=True)
class TopicState:
    """One topic. `offsets` maps (kind, group) to {partition: next offset to read}."""

    topic_id: int
    namespace_number: int
    number: int
    name: str
    created_us: int
    config: dict[str, int | bool]
    partitions: list[PartitionState] = field(default_factory=list)
    offsets: dict[tuple[str, str], dict[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class NamespaceState:
    """One namespace. `numbers_used` is the highest topic number ever given in it."""

    number: int
    name: str
    created_us: int
    numbers_used: int = 0
    topics: dict[str, TopicState] = field(default_factory=dict)
    by_number: dict[int, TopicState] = field(default_factory=dict)


class Catalog:
    """The state of everything but records.

    Attributes:
        namespaces, namespaces_by_number: The same objects under both keys.
        topics: By topic id.
        topic_ids_used, namespace_numbers_used: The highest ever given (the default namespace's
            aside).
        groups: Of each (namespace number, topic name), by their names.
        log_epoch: Raised at each unclean start.
    """

    def __init__(self) -> None:
        self.namespaces: dict[str, NamespaceState] = {}
        self.namespaces_by_number: dict[int, NamespaceState] = {}
        self.topics: dict[int, TopicState] = {}
        self.groups: dict[tuple[int, str], dict[str, GroupState]] = {}
        self.topic_ids_used = 0
        self.namespace_numbers_used = 0
        self.log_epoch = 0
        self.apply(ch.NamespacePut(DEFAULT_NAMESPACE_NUMBER, DEFAULT_NAMESPACE, 0))

    def apply(self, change: Change) -> None:
        """Changes the state. A change about a topic or partition that is gone does nothing."""
        match change:
            case ch.NamespacePut():
                self._put_namespace(change)
            case ch.NamespaceDropped(number):
                namespace = self.namespaces_by_number.pop(number)
                del self.namespaces[namespace.name]
                for topic in namespace.topics.values():
                    del self.topics[topic.topic_id]
                for home in [home for home in self.groups if home[0] == number]:
                    del self.groups[home]
            case ch.TopicPut():
                self._put_topic(change)
            case ch.TopicDropped(topic_id):
                topic = self.topics.pop(topic_id)
                namespace = self.namespaces_by_number[topic.namespace_number]
                del namespace.topics[topic.name]
                del namespace.by_number[topic.number]
                self.groups.pop((topic.namespace_number, topic.name), None)
            case ch.Trimmed(topic_id, partition, log_start_offset):
                if (state := self.partition(topic_id, partition)) is not None:
                    state.log_start_offset = max(state.log_start_offset, log_start_offset)
                    state.next_offset = max(state.next_offset, log_start_offset)
            case ch.OffsetPut(topic_id, kind, group, partition, offset):
                if (found := self.topics.get(topic_id)) is not None:
                    found.offsets.setdefault((kind, group), {})[partition] = offset
            case ch.GroupPut():
                groups = self.groups.setdefault((change.namespace_number, change.topic), {})
                groups[change.group] = GroupState(*change[3:])
            case ch.GroupDropped():
                self._drop_group(change)
            case ch.ProducerPut():
                self._put_producer(change)
            case ch.ProducersExpired(topic_id, partition, before_us):
                if (state := self.partition(topic_id, partition)) is not None:
                    for name in [n for n, p in state.producers.items() if p.last_us < before_us]:
                        del state.producers[name]
            case ch.RolePut(topic_id, partition, is_follower):
                if (state := self.partition(topic_id, partition)) is not None:
                    state.is_follower = is_follower
            case ch.EpochRaised(log_epoch):
                self.log_epoch = log_epoch
            case _:
                assert_never(change)

    def appended(
        self, *, topic_id: int, partition: int, next_offset: int, timestamp_us: int
    ) -> None:
        """A batch ends before `next_offset`, stamped `timestamp_us`."""
        if (state := self.partition(topic_id, partition)) is not None:
            state.next_offset = max(state.next_offset, next_offset)
            state.last_timestamp_us = max(state.last_timestamp_us, timestamp_us)

    def partition(self, topic_id: int, partition: int) -> PartitionState | None:
        """The partition, or None where topic or partition are gone."""
        topic = self.topics.get(topic_id)
        if topic is None or partition >= len(topic.partitions):
            return None
        return topic.partitions[partition]

    def _put_producer(self, change: ch.ProducerPut) -> None:
        state = self.partition(change.topic_id, change.partition)
        if state is None:
            return
        put_producer(state.producers, change.producer, change)

    def _drop_group(self, change: ch.GroupDropped) -> None:
        home = (change.namespace_number, change.topic)
        groups = self.groups.get(home, {})
        groups.pop(change.group, None)
        if not groups:
            self.groups.pop(home, None)
        namespace = self.namespaces_by_number.get(change.namespace_number)
        topic = None if namespace is None else namespace.topics.get(change.topic)
        if topic is not None:
            topic.offsets.pop(("group", change.group), None)

    def _put_namespace(self, change: ch.NamespacePut) -> None:
        known = self.namespaces_by_number.get(change.number)
        if known is None:
            known = NamespaceState(change.number, change.name, change.created_us)
            self.namespaces_by_number[change.number] = known
            if change.number != DEFAULT_NAMESPACE_NUMBER:
                self.namespace_numbers_used = max(self.namespace_numbers_used, change.number)
        else:
            del self.namespaces[known.name]
            known.name = change.name
        self.namespaces[change.name] = known

    def _put_topic(self, change: ch.TopicPut) -> None:
        namespace = self.namespaces_by_number[change.namespace_number]
        topic = self.topics.get(change.topic_id)
        if topic is None:
            topic = TopicState(
                change.topic_id,
                change.namespace_number,
                change.number,
                change.name,
                change.created_us,
                change.config,
            )
            self.topics[topic.topic_id] = topic
            namespace.by_number[topic.number] = topic
            namespace.numbers_used = max(namespace.numbers_used, topic.number)
            self.topic_ids_used = max(self.topic_ids_used, topic.topic_id)
        else:
            del namespace.topics[topic.name]
            if topic.name != change.name:
                groups = self.groups.pop((namespace.number, topic.name), None)
                if groups is not None:
                    self.groups[namespace.number, change.name] = groups
            topic.name = change.name
            topic.config = change.config
        namespace.topics[topic.name] = topic
        wanted = change.partition_created_us
        for dropped in range(len(wanted), len(topic.partitions)):
            for committed in topic.offsets.values():
                committed.pop(dropped, None)
        del topic.partitions[len(wanted) :]
        topic.partitions.extend(map(PartitionState, wanted[len(topic.partitions) :]))

    def to_json(self) -> dict[str, Any]:
        """The state as JSON that people can read."""
        return {
            "log_epoch": self.log_epoch,
            "topic_ids_used": self.topic_ids_used,
            "namespace_numbers_used": self.namespace_numbers_used,
            "namespaces": [
                {
                    "number": namespace.number,
                    "name": namespace.name,
                    "created_us": namespace.created_us,
                    "numbers_used": namespace.numbers_used,
                }
                for namespace in self.namespaces.values()
            ],
            "topics": [
                {
                    "topic_id": topic.topic_id,
                    "namespace_number": topic.namespace_number,
                    "number": topic.number,
                    "name": topic.name,
                    "created_us": topic.created_us,
                    "config": topic.config,
                    "partitions": [
                        {
                            "created_us": partition.created_us,
                            "log_start_offset": partition.log_start_offset,
                            "next_offset": partition.next_offset,
                            "last_timestamp_us": partition.last_timestamp_us,
                            "is_follower": partition.is_follower,
                            "producers": [
                                {
                                    "producer": name,
                                    "epoch": producer.epoch,
                                    "last_us": producer.last_us,
                                    "ranges": producer.ranges,
                                }
                                for name, producer in partition.producers.items()
                            ],
                        }
                        for partition in topic.partitions
                    ],
                    "offsets": [
                        {"kind": kind, "group": group, "partition": partition, "offset": offset}
                        for (kind, group), committed in topic.offsets.items()
                        for partition, offset in committed.items()
                    ],
                }
                for topic in self.topics.values()
            ],
            "groups": [
                {
                    "namespace_number": namespace_number,
                    "topic": topic_name,
                    "group": name,
                    "number": group.number,
                    "generation": group.generation,
                    "assignor": group.assignor,
                    "partitions": group.partitions,
                    "members": group.members,
                }
                for (namespace_number, topic_name), groups in self.groups.items()
                for name, group in groups.items()
            ],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Catalog:
        """Reads what `to_json` wrote."""
        catalog = cls()
        for row in data["namespaces"]:
            catalog.apply(ch.NamespacePut(row["number"], row["name"], row["created_us"]))
            catalog.namespaces_by_number[row["number"]].numbers_used = row["numbers_used"]
        for row in data["topics"]:
            partitions = row["partitions"]
            catalog.apply(
                ch.TopicPut(
                    row["topic_id"],
                    row["namespace_number"],
                    row["number"],
                    row["name"],
                    row["created_us"],
                    [partition["created_us"] for partition in partitions],
                    row["config"],
                )
            )
            topic = catalog.topics[row["topic_id"]]
            for state, partition in zip(topic.partitions, partitions, strict=True):
                state.log_start_offset = partition["log_start_offset"]
                state.next_offset = partition["next_offset"]
                state.last_timestamp_us = partition["last_timestamp_us"]
                state.is_follower = partition.get("is_follower", False)
                for known in partition.get("producers", ()):
                    state.producers[known["producer"]] = ProducerState(
                        known["epoch"], known["last_us"], [tuple(r) for r in known["ranges"]]
                    )
            for entry in row["offsets"]:
                committed = topic.offsets.setdefault((entry["kind"], entry["group"]), {})
                committed[entry["partition"]] = entry["offset"]
        for row in data.get("groups", ()):
            catalog.apply(ch.GroupPut(**row))
        catalog.log_epoch = data["log_epoch"]
        catalog.topic_ids_used = data["topic_ids_used"]
        catalog.namespace_numbers_used = data["namespace_numbers_used"]
        return catalog
