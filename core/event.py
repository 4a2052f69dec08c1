"""The vocabulary of the event store: every request beside its reply.

A topic whose settings say `event_sourcing` holds **streams of events**: a stream is named by a key,
its events are records with that key in the partition of that key, and the n-th has version n. Who
appends says which version the event is to have, so that two writers who read the same state cannot
both go on from it. A **snapshot** is a state of a stream that somebody computed and keeps, so that
readers need not begin with the first event.

These are part of `core.calls`, which lists them among all requests and replies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.core.name import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import BatchSlice, Key


@dataclass(slots=True)
class AppendEvent:
    """Append one event to a stream.

    Attributes:
        key: The stream; not empty.
        key_hash: By which the dialect routes keys: the partition is `key_hash mod n`.
        version: Which the event is to have: one more than the stream's; otherwise VERSION_CONFLICT.
        batch: Exactly one record, with the key; the engine adds the version in the way in which the
            reading dialect finds it (`core.header`).
    """

    topic: Key
    key: bytes
    key_hash: int
    version: int
    batch: RecordBatch
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class EventAppended:
    """Reply of AppendEvent, once the event is durable."""

    version: int
    offset: int
    partition: int


@dataclass(slots=True)
class ReadEvents:
    """Read the events of a stream.

    Attributes:
        from_version: The first one wanted; 0 begins behind the stream's newest snapshot, which is
            then part of the reply, or with the first event where there is none.
        records_max, bytes_max: As in `Fetch`; who got fewer asks again from the next version.
    """

    topic: Key
    key: bytes
    key_hash: int
    from_version: int = 0
    namespace: Key = DEFAULT_NAMESPACE
    records_max: int = 8192
    bytes_max: int = 1 << 20


@dataclass(slots=True)
class Snapshot:
    """A state that somebody keeps of a stream: behind its event of that version."""

    version: int
    payload: bytes


@dataclass(slots=True)
class EventsRead:
    """Reply of ReadEvents: the events in order, as slices of stored batches."""

    partition: int
    slices: list[BatchSlice]
    snapshot: Snapshot | None = None

    @property
    def count(self) -> int:
        """Number of events."""
        return sum([piece.last - piece.first for piece in self.slices])


@dataclass(slots=True)
class ReadVersion:
    """Ask for the version of a stream's newest event."""

    topic: Key
    key: bytes
    key_hash: int
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class VersionRead:
    """Reply of ReadVersion; 0 for a stream without events."""

    version: int


@dataclass(slots=True)
class SaveSnapshot:
    """Keep a state of a stream in the place of the one before.

    Attributes:
        version: Of the last event that the state holds; beyond the stream's is SNAPSHOT_TOO_NEW.
    """

    topic: Key
    key: bytes
    key_hash: int
    version: int
    payload: bytes
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class SnapshotSaved:
    """Reply of SaveSnapshot, once the snapshot is durable."""

    version: int
    partition: int


@dataclass(slots=True)
class ReadSnapshot:
    """Ask for the newest snapshot of a stream."""

    topic: Key
    key: bytes
    key_hash: int
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class SnapshotRead:
    """Reply of ReadSnapshot; None where none was saved."""

    snapshot: Snapshot | None


EventRequest = AppendEvent | ReadEvents | ReadVersion | SaveSnapshot | ReadSnapshot
"""What the event store may be asked."""
EventReply = EventAppended | EventsRead | VersionRead | SnapshotSaved | SnapshotRead
"""What the event store answers."""
