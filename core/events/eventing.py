"""The event store: streams of events in ordinary records, and snapshots of them.

An event is a record with the stream as its key and its version in a header (`core.events.field`),
so that readers of every dialect see it. Where the events of a stream lie, and which version is the
next, an index of the partition says (`core.events.index`). A version is checked and the event
appended within one step, so that of two writers one is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import ByHash
from dragoman.core.column import VarColumn
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.event import (
    AppendEvent,
    EventAppended,
    EventsRead,
    ReadEvents,
    ReadSnapshot,
    ReadVersion,
    SaveSnapshot,
    Snapshot,
    SnapshotRead,
    SnapshotSaved,
    VersionRead,
)
from dragoman.core.events.cache import IndexCache
from dragoman.core.events.field import version_header
from dragoman.core.events.job import Jobs
from dragoman.core.events.load import IndexLoader, flushed
from dragoman.core.events.read import gather, read_at
from dragoman.core.events.snapshot_topic import find_snapshots, new_snapshot_name, snapshot_config
from dragoman.core.replication import check_leader
from dragoman.core.route import route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.event import EventRequest
    from dragoman.core.events.job import Served, Steps
    from dragoman.core.options import EngineOptions
    from dragoman.core.outcome import Client, Outcome
    from dragoman.core.partition import Partition, Topic
    from dragoman.core.produce import Producing
    from dragoman.core.reader import Reader
    from dragoman.core.store import Store
    from dragoman.core.topic import Topics
    from dragoman.core.waiting import Waiting

HELD_BYTES_MAX = 64 * 1024 * 1024
"""What may wait to be written, of all requests together, while indexes are built."""

_TRIES = 3
"""How often two indexes are asked for that push each other out of memory."""


class Eventing:
    """Serves every request of `core.event`.

    Args:
        now: The time of the call that the engine is in.
        revealed_by_refusal: The newest sequence that a refusal may reveal.

    Attributes:
        sequence: Of what the newest refused version was held against.
        appended, conflicts: Events, and versions refused, since the start.
    """

    def __init__(
        self,
        options: EngineOptions,
        store: Store,
        directory: Directory,
        topics: Topics,
        producing: Producing,
        reader: Reader,
        waiting: Waiting,
        now: Callable[[], Now],
        revealed_by_refusal: Callable[[], int],
    ) -> None:
        self._store = store
        self._directory = directory
        self._topics = topics
        self._producing = producing
        self._now = now
        self._cache = IndexCache(options.event_index_bytes_max)
        self._jobs = Jobs(reader, waiting, revealed_by_refusal)
        self._loader = IndexLoader(store, directory, self._cache, self._jobs)
        self._held_bytes = 0
        self.sequence = 0
        self.appended = 0
        self.conflicts = 0
        self._steps: dict[type, Callable[[Any], Served]] = {
            AppendEvent: self._append,
            ReadEvents: self._read,
            ReadVersion: self._read_version,
            SaveSnapshot: self._save_snapshot,
            ReadSnapshot: self._read_snapshot,
        }
        self.handlers = dict.fromkeys(self._steps, self._serve)

    def cancel(self, outcome: Outcome) -> None:
        """Nobody waits for this any more."""
        self._jobs.cancel(outcome)

    def flushed(self) -> None:
        """A flush ended, or the store is fenced."""
        self._jobs.flushed()

    def dropped(self, partition: Partition) -> None:
        """The partition is gone; who waits for its log is told when the reading ends."""
        self._cache.dropped(partition)

    def statistics(self) -> Mapping[str, int]:
        """Counters and gauges by name."""
        return {
            "events_appended": self.appended,
            "event_conflicts": self.conflicts,
            "event_indexes": len(self._cache),
            "event_index_bytes": self._cache.nbytes,
            "event_indexes_built": self._loader.builds,
            "event_indexes_evicted": self._cache.evicted,
            "event_index_records_read": self._loader.records,
        }

    def _serve(self, request: EventRequest, client: Client, now: Now) -> Outcome:
        return self._jobs.serve(self._steps[type(request)](request), client)

    # ------------------------------------------------------------ events

    def _append(self, request: AppendEvent) -> Served:
        partition = self._partition(request)
        current = yield from self._version_for(partition, request.key, request.batch.nbytes)
        if request.version != current + 1:
            self.conflicts += 1
            self.sequence = max(self.sequence, self._revealed(partition))
            raise EngineError(
                ErrorCode.VERSION_CONFLICT,
                f"the stream's version is {current}",
                current=current,
                requested=request.version,
            )
        batch = request.batch
        assert batch.count == 1, "an event is one record"
        fields = None if batch.headers is None else batch.headers[0]
        batch.keys = VarColumn.single(request.key)
        batch.headers = VarColumn.single(version_header(request.version) + (fields or b""))
        offset = partition.state.next_offset
        sequence = self._producing.append(partition, batch, self._now())
        self.appended += 1
        return EventAppended(request.version, offset, partition.number), sequence

    def _read(self, request: ReadEvents) -> Served:
        partition = self._partition(request)
        sequence = self._topic_sequence(partition)
        from_version = request.from_version
        snapshot = None
        if not from_version:
            snapshots = self._snapshots(partition)
            if snapshots is not None:
                snapshot = yield from self._snapshot(snapshots, request.key)
            sequence = max(sequence, self._snapshots_sequence(snapshots))
            from_version = 0 if snapshot is None else snapshot.version + 1
        index = yield from self._loader.events(partition)
        found = index.offsets(request.key, from_version, request.records_max)
        high_watermark = partition.high_watermark
        offsets = [offset for offset in found if offset < high_watermark]
        slices = yield from gather(self._store, partition, offsets, request.bytes_max)
        sequence = max(sequence, partition.start_sequence)
        return EventsRead(partition.number, slices, snapshot), sequence

    def _read_version(self, request: ReadVersion) -> Served:
        partition = self._partition(request)
        version = yield from self._version(partition, request.key)
        return VersionRead(version), self._revealed(partition)

    def _version(self, partition: Partition, key: bytes) -> Steps[int]:
        """Of the newest event of a stream; where deleting records left none of it, of its newest
        snapshot."""
        for _ in range(_TRIES):
            index = yield from self._loader.events(partition)
            version = index.version(key)
            if version or not index.log_start:
                return version
            snapshots = self._snapshots(partition)
            if snapshots is None:
                return 0
            known = yield from self._loader.snapshots(snapshots)
            if partition.index is index:
                # Others may have appended while the snapshots' index was built.
                found = known.find(key)
                return index.version(key) or (found[0] if found is not None else 0)
        raise EngineError(
            ErrorCode.LIMIT_REACHED,
            "event_index_bytes_max is too small for a partition's streams and their snapshots",
        )

    def _version_for(self, partition: Partition, key: bytes, nbytes: int) -> Steps[int]:
        """The same for who writes so many bytes, which wait while an index is built."""
        self._check_writable(partition)
        if self._held_bytes and self._held_bytes + nbytes > HELD_BYTES_MAX:
            raise EngineError(ErrorCode.OVERLOADED, "too much waits for an index of streams")
        self._held_bytes += nbytes
        try:
            current = yield from self._version(partition, key)
        finally:
            self._held_bytes -= nbytes
        self._check_writable(partition)
        return current

    # ------------------------------------------------------------ snapshots

    def _save_snapshot(self, request: SaveSnapshot) -> Served:
        partition = self._partition(request)
        current = yield from self._version_for(partition, request.key, len(request.payload))
        if request.version > current:
            self.sequence = max(self.sequence, self._revealed(partition))
            raise EngineError(
                ErrorCode.SNAPSHOT_TOO_NEW,
                f"the stream's version is {current}",
                current=current,
                requested=request.version,
            )
        batch = RecordBatch(
            1,
            VarColumn.single(request.payload),
            origin=Origin.NONE,
            keys=VarColumn.single(request.key),
            headers=VarColumn.single(version_header(request.version)),
        )
        home = self._snapshots_or_new(partition)
        sequence = self._producing.append(home, batch, self._now())
        return SnapshotSaved(request.version, partition.number), sequence

    def _read_snapshot(self, request: ReadSnapshot) -> Served:
        partition = self._partition(request)
        sequence = self._topic_sequence(partition)
        snapshots = self._snapshots(partition)
        snapshot = None
        if snapshots is not None:
            snapshot = yield from self._snapshot(snapshots, request.key)
        return SnapshotRead(snapshot), max(sequence, self._snapshots_sequence(snapshots))

    def _snapshot(self, snapshots: Partition, key: bytes) -> Steps[Snapshot | None]:
        """The newest snapshot of a stream; one that is on its way to the disk is waited for."""
        while True:
            index = yield from self._loader.snapshots(snapshots)
            found = index.find(key)
            if found is None:
                return None
            version, offset = found
            batches = yield from read_at(self._store, snapshots, offset, 1)
            for batch in batches[:1]:
                at = batch.index_of(offset)
                if at < batch.count and batch.offset_at(at) == offset:
                    return Snapshot(version, batch.values[at] or b"")
            if snapshots.batch_sequence <= self._store.revealed_sequence:
                return None  # deleted meanwhile
            yield from flushed(self._store)

    def _snapshots(self, partition: Partition) -> Partition | None:
        """The partition that holds the snapshots of a partition's streams."""
        topic = find_snapshots(self._directory, partition.topic)
        if topic is None or partition.number >= len(topic.partitions):
            return None
        return topic.partitions[partition.number]

    def _snapshots_or_new(self, partition: Partition) -> Partition:
        """The same, made where it is missing.

        Raises:
            EngineError: INVALID_NAME, LIMIT_REACHED; TOPIC_EXISTS where another one has its name.
        """
        topic = partition.topic
        home = find_snapshots(self._directory, topic)
        if home is None:
            home = self._topics.create_internal(
                topic.namespace,
                new_snapshot_name(topic.state),
                len(topic.partitions),
                snapshot_config(),
                self._now(),
            )
        return self._directory.partition(home, partition.number)

    # ------------------------------------------------------------ both

    def _partition(self, request: EventRequest) -> Partition:
        """Where a stream lives.

        Raises:
            EngineError: UNKNOWN_NAMESPACE, UNKNOWN_TOPIC, NOT_EVENT_SOURCED, MALFORMED,
                NO_PARTITIONS.
        """
        topic: Topic = self._directory.topic(request.namespace, request.topic)
        if not topic.state.config.get("event_sourcing"):
            raise EngineError(
                ErrorCode.NOT_EVENT_SOURCED,
                "the topic was made without event sourcing",
                topic=topic.state.name,
            )
        if not request.key:
            raise EngineError(ErrorCode.MALFORMED, "a stream's key is not empty")
        return route(self._directory, topic, ByHash(request.key_hash))

    def _check_writable(self, partition: Partition) -> None:
        self._directory.check_writable()
        check_leader(partition)

    def _topic_sequence(self, partition: Partition) -> int:
        return max(partition.topic.sequence, partition.start_sequence)

    def _revealed(self, partition: Partition) -> int:
        """What a stream's version reveals: all that was appended to its partition, and deleted."""
        return max(
            self._topic_sequence(partition),
            partition.batch_sequence,
            self._snapshots_sequence(self._snapshots(partition)),
        )

    def _snapshots_sequence(self, snapshots: Partition | None) -> int:
        """What a snapshot reveals, or that there is none: that may have been so for a moment."""
        if snapshots is None:
            return self._directory.sequence
        return max(self._topic_sequence(snapshots), snapshots.batch_sequence)
