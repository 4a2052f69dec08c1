"""Every change of state but the appending of records, as the journal holds it.

A change is one JSON array at rest: its kind, then its fields in order (`encode_change`). The engine
applies a change to its live `Catalog` and gives it to the store in the same call; recovery and
checkpoints apply the same changes, read back from the journal, to the last catalog on disk.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson


class NamespacePut(NamedTuple):
    """A namespace was made or renamed."""

    number: int
    name: str
    created_us: int


class NamespaceDropped(NamedTuple):
    """A namespace was deleted, with all its topics."""

    number: int


class TopicPut(NamedTuple):
    """A topic was made, renamed, configured, or its partition list changed.

    Attributes:
        topic_id: Never reused; names the topic's directory.
        number: What numbering dialects call it within its namespace; never reused there.
        partition_created_us: One time a partition. Fewer than before drops the highest ones.
    """

    topic_id: int
    namespace_number: int
    number: int
    name: str
    created_us: int
    partition_created_us: list[int]
    config: dict[str, int | bool]


class TopicDropped(NamedTuple):
    """A topic was deleted, with its records and committed offsets."""

    topic_id: int


class Trimmed(NamedTuple):
    """Records below `log_start_offset` are gone (retention or a truncate)."""

    topic_id: int
    partition: int
    log_start_offset: int


class OffsetPut(NamedTuple):
    """A committed offset: `kind` is `OffsetKind.value`, `offset` the next one to read."""

    topic_id: int
    kind: str
    group: str
    partition: int
    offset: int


class GroupPut(NamedTuple):
    """A consumer group as it stands since its newest generation; replaces what was known of it.

    Attributes:
        topic: By name: a group may form before its topic exists.
        number: What numbering dialects call it within its topic.
        partitions: How many its generation was dealt.
        members: One `[id, dialect, session timeout in microseconds, bound]` each; a bound member
            lives as long as its connection, so none of them outlives a restart.
    """

    namespace_number: int
    topic: str
    group: str
    number: int
    generation: int
    assignor: str
    partitions: int
    members: list[list[str | int | bool]]


class GroupDropped(NamedTuple):
    """A consumer group was deleted, with its committed offsets."""

    namespace_number: int
    topic: str
    group: str


class ProducerPut(NamedTuple):
    """What an idempotent producer appended last; it follows its batch within the same group.

    Attributes:
        producer: The producer's name, its bytes read as Latin-1.
        base_offset: Of the record with `first_sequence`; the rest follow it.
        timestamp_us: The append time.
    """

    topic_id: int
    partition: int
    producer: str
    epoch: int
    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_us: int


class ProducersExpired(NamedTuple):
    """Producers of a partition that appended nothing since `before_us` are forgotten."""

    topic_id: int
    partition: int
    before_us: int


class RolePut(NamedTuple):
    """A partition became a follower of another server's, or its leader again."""

    topic_id: int
    partition: int
    is_follower: bool


class EpochRaised(NamedTuple):
    """The log epoch, raised at each start that was not clean."""

    log_epoch: int


Change = (
    NamespacePut
    | NamespaceDropped
    | TopicPut
    | TopicDropped
    | Trimmed
    | OffsetPut
    | GroupPut
    | GroupDropped
    | ProducerPut
    | ProducersExpired
    | RolePut
    | EpochRaised
)

_KINDS: dict[str, type[Change]] = {
    "namespace": NamespacePut,
    "namespace-drop": NamespaceDropped,
    "topic": TopicPut,
    "topic-drop": TopicDropped,
    "trim": Trimmed,
    "offset": OffsetPut,
    "group": GroupPut,
    "group-drop": GroupDropped,
    "producer": ProducerPut,
    "producers-expire": ProducersExpired,
    "role": RolePut,
    "epoch": EpochRaised,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode_change(change: Change) -> bytes:
    """Returns the change at rest."""
    return orjson.dumps([_NAMES[type(change)], *change])


def decode_change(data: bytes | memoryview) -> Change:
    """Reads a change at rest.

    Raises:
        ValueError: Not a change that this version knows.
    """
    name, *fields = orjson.loads(data)
    kind = _KINDS.get(name)
    if kind is None or len(fields) != len(kind._fields):
        raise ValueError(f"change {name!r} with {len(fields)} fields is not known to this version")
    return kind(*fields)
