"""Building the index of a partition: a reading of its log from its start to its end.

The reading goes in pieces, each in a thread where it may block or is much, so that the loop only
puts into the index what was found. Once all that is visible has been read, the index notes what is
appended from then on beside; the reading ends where that began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.events.cache import again
from dragoman.core.events.index import EventIndex, SnapshotIndex
from dragoman.core.events.job import FLUSHED
from dragoman.core.interface import WorkLane
from dragoman.core.reader import damaged
from dragoman.core.store import StoreDamage
from dragoman.core.waiting import dropped_failure, fenced

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.batch import RecordBatch
    from dragoman.core.directory import Directory
    from dragoman.core.events.cache import IndexCache
    from dragoman.core.events.index import Index, Row
    from dragoman.core.events.job import Jobs, Shared, Steps
    from dragoman.core.interface import Work
    from dragoman.core.partition import Partition
    from dragoman.core.store import ReadWork, Store

CHUNK_BYTES = 1 << 20
"""About what is read at a time."""
RECORDS_HERE_MAX = 512
"""Records of a reading from memory that are looked through on the loop; more go to a thread."""


class IndexWork:
    """A reading and the search for what an index takes of it, in a thread."""

    lane = WorkLane.READ

    def __init__(self, source: list[RecordBatch] | Work, index: Index) -> None:
        self._source = source
        self._index = index
        self.batches: list[RecordBatch] = []
        self.error: StoreDamage | None = None
        self.found: list[Row] = []

    def run(self) -> None:
        """Reads and searches."""
        source = self._source
        if isinstance(source, list):
            self.batches = source
        else:
            source.run()
            read: ReadWork = source  # type: ignore[assignment]
            self.batches, self.error = read.batches, read.error
        for batch in self.batches:
            self.found += self._index.rows(batch)


class IndexLoader:
    """Finds the indexes of partitions, and builds those that are missing.

    Attributes:
        builds: How many were begun since the start.
        records: Read for that since the start.
    """

    def __init__(self, store: Store, directory: Directory, cache: IndexCache, jobs: Jobs) -> None:
        self._store = store
        self._directory = directory
        self._cache = cache
        self._jobs = jobs
        self._under_way: dict[Partition, Shared] = {}
        self.builds = 0
        self.records = 0

    def events(self, partition: Partition) -> Steps[EventIndex]:
        """The index of a partition's streams.

        Raises:
            EngineError: DAMAGED, LIMIT_REACHED, OVERLOADED, UNKNOWN_TOPIC, UNKNOWN_PARTITION,
                STORAGE_FAILED, SHUTTING_DOWN.
        """
        index = yield from self._find(partition, EventIndex)
        assert isinstance(index, EventIndex)
        return index

    def snapshots(self, partition: Partition) -> Steps[SnapshotIndex]:
        """The index of the snapshots in a partition; raises as `events` does."""
        index = yield from self._find(partition, SnapshotIndex)
        assert isinstance(index, SnapshotIndex)
        return index

    def _find(self, partition: Partition, kind: type[EventIndex | SnapshotIndex]) -> Steps[Index]:
        while True:
            check_there(partition)
            index = self._cache.find(partition)
            if index is not None:
                return index
            shared = self._under_way.get(partition)
            if shared is None:
                self.builds += 1
                shared = self._jobs.share(self._build(partition, kind))
                if not shared.done:
                    self._under_way[partition] = shared
            if not shared.done:
                yield shared
            if shared.error is not None:
                raise again(shared.error)

    def _build(self, partition: Partition, kind: type[EventIndex | SnapshotIndex]) -> Steps[None]:
        try:
            index = yield from self._read(
                partition, lambda: kind(partition, self._cache.grown, self._cache.drop)
            )
        except EngineError as error:
            partition.index = None
            if error.code in (ErrorCode.DAMAGED, ErrorCode.LIMIT_REACHED):
                self._cache.refuse(partition, error)
            raise
        finally:
            self._under_way.pop(partition, None)
            self._cache.built(partition)
        late, index.late = index.late, None
        for row in late or ():
            index.add(row)
        self._cache.put(index)

    def _read(self, partition: Partition, new_index: Callable[[], Index]) -> Steps[Index]:
        """Reads the log into a new index, which notes what is appended by the time of the end."""
        index = new_index()
        offset, end = index.log_start, -1
        looked_here = 0
        while True:
            check_there(partition)
            if self._directory.closing:
                # Nobody may wait for it any more, and the last checkpoint waits for its reads.
                raise EngineError(ErrorCode.SHUTTING_DOWN, "the server is shutting down")
            log_start = partition.state.log_start_offset
            if not index.follows(log_start):
                partition.index = None
                index = new_index()
                offset, end = log_start, -1
            if end < 0 and offset >= partition.high_watermark:
                end = partition.state.next_offset
                index.late = []
                partition.index = index
            if 0 <= end <= offset:
                return index
            found = self._at(partition, offset)
            if isinstance(found, list) and not found:
                offset = yield from self._behind(partition, offset)
                continue
            if isinstance(found, list):
                looked_here += sum([batch.count for batch in found])
            if isinstance(found, list) and looked_here <= RECORDS_HERE_MAX:
                batches = found
                rows = [row for batch in found for row in index.rows(batch)]
            else:
                work = IndexWork(found, index)
                batches = yield work
                rows = work.found
                looked_here = 0
                if not batches:
                    offset = yield from self._behind(partition, offset)
                    continue
            for row in rows:
                if end < 0 or row[2] < end:
                    index.add(row)
            self._cache.building(index)
            self.records += sum([batch.count for batch in batches])
            offset = max(offset, batches[-1].next_offset)

    def _at(self, partition: Partition, offset: int) -> list[RecordBatch] | Work:
        try:
            return self._store.read(partition.topic_id, partition.number, offset, CHUNK_BYTES)
        except StoreDamage as damage:
            raise damaged(damage) from None

    def _behind(self, partition: Partition, offset: int) -> Steps[int]:
        """Where to read on where nothing can be read: what is on its way to the disk is waited for,
        and behind what is durable nothing was left by compaction."""
        if offset < partition.state.log_start_offset:
            return partition.state.log_start_offset
        if partition.batch_sequence > self._store.revealed_sequence:
            yield from flushed(self._store)
            return offset
        return partition.state.next_offset


def flushed(store: Store) -> Steps[None]:
    """Waits until a flush has ended.

    Raises:
        EngineError: STORAGE_FAILED.
    """
    if store.failure is None:
        yield FLUSHED
    if store.failure is not None:
        failure = fenced(store.failure)
        raise EngineError(failure.code, failure.detail)


def check_there(partition: Partition) -> None:
    """Refuses a partition that was dropped.

    Raises:
        EngineError: UNKNOWN_TOPIC, UNKNOWN_PARTITION.
    """
    if partition.dropped:
        failure = dropped_failure(partition)
        raise EngineError(failure.code, failure.detail, **failure.facts)
