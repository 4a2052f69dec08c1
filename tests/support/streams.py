"""Streams of events in an engine over a log in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core import calls
from dragoman.core.calls import BatchSlice, CreateTopic, TopicConfig
from dragoman.core.events.field import event_of, version_header
from dragoman.core.route import fnv1a_64
from support.log import Log, batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import Request
    from dragoman.core.outcome import Client, Outcome

TOPIC = "t"
READS_MAX = 1000


def published(*rows: tuple[bytes | None, int], value: bytes | None = b"x") -> RecordBatch:
    """Records as somebody publishes them: key and aggregate version, 0 for none."""
    made = batch(*[value] * len(rows), keys=[key for key, _ in rows])
    headers = [version_header(version) if version else None for _, version in rows]
    made.headers = type(made.values).of(headers)
    return made


def versions(slices: Sequence[BatchSlice]) -> list[int]:
    """The versions of the records in these slices."""
    return [
        event_of(record.headers or b"")[0].aggregate_version
        for piece in slices
        for record in piece.batch.records(*piece[1:])
    ]


class Streams(Log):
    """A log with a topic of streams."""

    def __init__(
        self,
        partitions: int = 1,
        store: Any = None,
        *,
        create: bool = True,
        **options: int,
    ) -> None:
        super().__init__(store, **options)
        if create:
            config = TopicConfig(event_sourcing=True)
            self.ask(CreateTopic(TOPIC, partitions, config=config))

    def ask(self, request: Request, client: Client | None = None) -> Any:
        """The reply, after as many flushes and reads as it needs, which may be many."""
        outcome = self.hand(request, client)
        for _ in range(READS_MAX):
            if outcome.ready:
                break
            self.flush()
            self.work()
        assert outcome.ready, "the outcome never became ready"
        return outcome.reply

    def restarted(self, **options: int) -> Streams:
        """The same log after a crash: with what was durable."""
        return Streams(store=self.store.restarted(), create=False, **options)

    def request(self, kind: type, key: bytes, *rest: Any, **fields: Any) -> Any:
        """A request about a stream."""
        return kind(TOPIC, key, fnv1a_64(key), *rest, **fields)

    def adding(self, key: bytes, version: int, value: bytes = b"x") -> calls.AppendEvent:
        """The request that appends an event."""
        event: calls.AppendEvent = self.request(calls.AppendEvent, key, version, batch(value))
        return event

    def add(self, key: bytes, version: int, value: bytes = b"x") -> Any:
        """The reply once an event is durable."""
        return self.ask(self.adding(key, version, value))

    def begin(self, key: bytes, version: int) -> Outcome:
        """An event on its way."""
        return self.hand(self.adding(key, version))

    def version(self, key: bytes) -> int:
        """The stream's version."""
        reply: calls.VersionRead = self.ask(self.request(calls.ReadVersion, key))
        return reply.version

    def stream(self, key: bytes, from_version: int = 0, **limits: int) -> Any:
        """The reply of a reading of the stream."""
        return self.ask(self.request(calls.ReadEvents, key, from_version, **limits))

    def versions(self, key: bytes, from_version: int = 1) -> list[int]:
        """The versions that a reading of the stream finds."""
        return versions(self.stream(key, from_version).slices)

    def publish(self, *rows: tuple[bytes | None, int], topic: str = TOPIC) -> Any:
        """Publishes records into partition 0."""
        return self.ask(calls.Produce(topic, published(*rows), 0))

    def trim(self, before: int, topic: str = TOPIC) -> None:
        """Deletes the records of partition 0 below an offset."""
        self.ask(calls.DeleteRecords(topic, 0, before))

    def save(self, key: bytes, version: int, payload: bytes = b"state") -> Any:
        """The reply once a snapshot is durable."""
        return self.ask(self.request(calls.SaveSnapshot, key, version, payload))

    def snapshot(self, key: bytes) -> calls.Snapshot | None:
        """The stream's snapshot."""
        reply: calls.SnapshotRead = self.ask(self.request(calls.ReadSnapshot, key))
        return reply.snapshot

    @property
    def statistics(self) -> Any:
        """The engine's counters."""
        return self.engine.statistics()
