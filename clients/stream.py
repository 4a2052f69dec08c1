"""Streams of events as a client uses them: tasks, in the words of programs.

Only Cursus has words for them. A stream is a key of a topic that was made with event sourcing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.clients.task import one
from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.events.field import Event, event_headers, event_of
from dragoman.core.name import split_flat
from dragoman.core.route import fnv1a_64

if TYPE_CHECKING:
    from dragoman.clients.task import Task
    from dragoman.core.calls import EventAppended, Snapshot


class StreamEvent(NamedTuple):
    """One event of a stream."""

    version: int
    value: bytes
    event_type: str
    schema_version: int
    metadata: str
    offset: int


class Stream(NamedTuple):
    """What was read of a stream.

    Attributes:
        events: In the order of their versions, as many as one answer holds; who wants the rest asks
            again from the next version.
        snapshot: The state behind which the events begin, where reading began with it.
    """

    partition: int
    events: list[StreamEvent]
    snapshot: Snapshot | None


def append_event(
    name: str,
    key: bytes,
    version: int,
    value: bytes,
    *,
    event_type: str = "",
    schema_version: int = 0,
    metadata: str = "",
) -> Task[EventAppended]:
    """Appends an event if its version is the stream's next."""
    namespace, topic = split_flat(name)
    headers = event_headers(Event(event_type.encode(), schema_version, 0, metadata.encode()))
    batch = RecordBatch(
        1,
        VarColumn.single(value),
        origin=Origin.NONE,
        headers=None if headers is None else VarColumn.single(headers),
    )
    request = calls.AppendEvent(topic, key, fnv1a_64(key), version, batch, namespace)
    appended: EventAppended = yield from one(request)
    return appended


def read_events(name: str, key: bytes, from_version: int = 0) -> Task[Stream]:
    """Reads events from a version on; 0 begins behind the stream's snapshot, or with the first."""
    namespace, topic = split_flat(name)
    request = calls.ReadEvents(topic, key, fnv1a_64(key), from_version, namespace)
    reply: calls.EventsRead = yield from one(request)
    events = []
    for batch, first, last in reply.slices:
        for record in batch.records(first, last):
            event, _ = event_of(record.headers or b"")
            events.append(
                StreamEvent(
                    event.aggregate_version,
                    record.value or b"",
                    event.event_type.decode(errors="replace"),
                    event.schema_version,
                    event.metadata.decode(errors="replace"),
                    record.offset,
                )
            )
    return Stream(reply.partition, events, reply.snapshot)


def stream_version(name: str, key: bytes) -> Task[int]:
    """The version of a stream's newest event; 0 where it has none."""
    namespace, topic = split_flat(name)
    reply: calls.VersionRead = yield from one(
        calls.ReadVersion(topic, key, fnv1a_64(key), namespace)
    )
    return reply.version


def save_snapshot(name: str, key: bytes, version: int, payload: bytes) -> Task[None]:
    """Keeps a state of a stream behind the event of this version."""
    namespace, topic = split_flat(name)
    yield from one(calls.SaveSnapshot(topic, key, fnv1a_64(key), version, payload, namespace))


def read_snapshot(name: str, key: bytes) -> Task[Snapshot | None]:
    """The newest snapshot of a stream, or None."""
    namespace, topic = split_flat(name)
    reply: calls.SnapshotRead = yield from one(
        calls.ReadSnapshot(topic, key, fnv1a_64(key), namespace)
    )
    return reply.snapshot
