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


class EpochRaised(NamedTuple):
    """The log epoch, raised at each start that was not clean."""

    log_epoch: int


Change = (
    NamespacePut | NamespaceDropped | TopicPut | TopicDropped | Trimmed | OffsetPut | EpochRaised
)

_KINDS: dict[str, type[Change]] = {
    "namespace": NamespacePut,
    "namespace-drop": NamespaceDropped,
    "topic": TopicPut,
    "topic-drop": TopicDropped,
    "trim": Trimmed,
    "offset": OffsetPut,
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
