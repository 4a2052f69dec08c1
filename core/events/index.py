"""Where the events and the snapshots of each stream lie: an index of one partition, in memory.

An index says what reading the partition from its log start to its end says, never more: it is
built by such a reading (`core.events.load`) and kept up by what is appended. It can be dropped at
any time and is not at rest anywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from itertools import repeat
from typing import TYPE_CHECKING, Final

from dragoman.core.events.field import version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman.core.batch import RecordBatch
    from dragoman.core.partition import Partition

    Row = tuple[bytes, int, int]
    """What an index takes of a record: key, aggregate version (0 where it has none), offset."""

STREAM_BYTES: Final = 250
"""About what a key takes beside its own bytes: its place in a map, its name, its array."""
EVENT_BYTES: Final = 10
"""About what a further event of a key takes: 8 bytes, and the room that arrays grow by."""


def rows_of(batch: RecordBatch) -> Sequence[Row]:
    """The records of a batch that have a key."""
    keys, headers = batch.keys, batch.headers
    if keys is None:
        return ()
    if batch.count == 1:
        key = keys[0]
        raw = None if headers is None else headers[0]
        return ((key, version_of(raw) if raw else 0, batch.base_offset),) if key else ()
    base, deltas = batch.base_offset, batch.offset_deltas
    offsets = range(base, base + batch.count) if deltas is None else [base + d for d in deltas]
    return [
        (key, version_of(raw) if raw else 0, offset)
        for key, raw, offset in zip(
            keys, repeat(None) if headers is None else headers, offsets, strict=False
        )
        if key
    ]


class Index(ABC):
    """What is known of the keys of one partition.

    Args:
        on_grown: Told how much larger an index became that is in use.
        on_stale: Told that it no longer says what reading the log would say.

    Attributes:
        log_start: The log start that it speaks of.
        nbytes: About what it takes.
        late: What was appended while the log before it is still being read; None otherwise.
    """

    def __init__(
        self,
        partition: Partition,
        on_grown: Callable[[Index, int], None],
        on_stale: Callable[[Index], None],
    ) -> None:
        self.partition = partition
        self.log_start = partition.state.log_start_offset
        self.nbytes = 0
        self.late: list[Row] | None = None
        self._on_grown = on_grown
        self._on_stale = on_stale

    @abstractmethod
    def rows(self, batch: RecordBatch) -> Sequence[Row]:
        """What of a batch concerns this index; runs in any thread."""

    @abstractmethod
    def add(self, row: Row) -> None:
        """Takes a record; they come in the order of their offsets."""

    def note(self, batch: RecordBatch) -> None:
        """A batch was appended behind all else."""
        if not (rows := self.rows(batch)):
            return
        if self.late is not None:
            self.late += rows
        elif self.follows(self.partition.state.log_start_offset):
            before = self.nbytes
            for row in rows:
                self.add(row)
            if self.nbytes != before:
                self._on_grown(self, self.nbytes - before)
        else:
            self._on_stale(self)

    def follows(self, log_start: int) -> bool:
        """The log begins here now: returns whether this still is what reading it would say."""
        self.log_start = log_start
        return True


class EventIndex(Index):
    """The streams of a partition.

    A record is an event of its key where its aggregate version is the stream's next one. The first
    one that is kept of a stream has version 1, or any version once the log no longer begins at
    offset 0: those before it may have been deleted.
    """

    def __init__(
        self,
        partition: Partition,
        on_grown: Callable[[Index, int], None],
        on_stale: Callable[[Index], None],
    ) -> None:
        super().__init__(partition, on_grown, on_stale)
        self._streams: dict[bytes, array[int]] = {}
        """The first version, then the offset of each event."""
        self._stray = -1
        """The newest record that had a version and was no event: once the log begins later, it may
        be one."""

    def __len__(self) -> int:
        return len(self._streams)

    def rows(self, batch: RecordBatch) -> Sequence[Row]:
        """Records with a key and a version."""
        if batch.headers is None:
            return ()
        return [row for row in rows_of(batch) if row[1]]

    def add(self, row: Row) -> None:
        """Takes a record that may be an event."""
        key, version, offset = row
        stream = self._streams.get(key)
        if stream is None or stream[-1] < self.log_start:
            if version != 1 and not self.log_start:
                self._stray = offset
                return
            if stream is None:
                self.nbytes += STREAM_BYTES + len(key)
            self._streams[key] = array("Q", (version, offset))
        elif version == stream[0] + len(stream) - 1:
            stream.append(offset)
            self.nbytes += EVENT_BYTES
        else:
            self._stray = offset

    def follows(self, log_start: int) -> bool:
        """The log begins here now: what was no event may be the first of its key that is kept."""
        moved = log_start != self.log_start
        self.log_start = log_start
        return not moved or self._stray < log_start

    def version(self, key: bytes) -> int:
        """Of the newest event of a stream; 0 where none is kept."""
        stream = self._streams.get(key)
        if stream is None or stream[-1] < self.log_start:
            return 0
        return stream[0] + len(stream) - 2

    def offsets(self, key: bytes, from_version: int, count_max: int) -> Sequence[int]:
        """Where events lie, from a version or the first one that is kept on."""
        stream = self._streams.get(key)
        if stream is None:
            return ()
        first = bisect_left(stream, self.log_start, 1)
        first = max(first, 1 + from_version - stream[0])
        return stream[first : first + count_max]


class SnapshotIndex(Index):
    """The newest snapshot of each key.

    As compaction has it, the newest record of a key counts: where that has no version, or no value,
    there is no snapshot.
    """

    def __init__(
        self,
        partition: Partition,
        on_grown: Callable[[Index, int], None],
        on_stale: Callable[[Index], None],
    ) -> None:
        super().__init__(partition, on_grown, on_stale)
        self._newest: dict[bytes, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._newest)

    def rows(self, batch: RecordBatch) -> Sequence[Row]:
        """Records with a key; one without a value has no version."""
        rows = rows_of(batch)
        if batch.values.validity is None:
            return rows
        return [
            (key, version if batch.values.is_present(batch.index_of(offset)) else 0, offset)
            for key, version, offset in rows
        ]

    def add(self, row: Row) -> None:
        """Takes a record that may be a snapshot."""
        key, version, offset = row
        if not version:
            if self._newest.pop(key, None) is not None:
                self.nbytes -= STREAM_BYTES + len(key)
            return
        if key not in self._newest:
            self.nbytes += STREAM_BYTES + len(key)
        self._newest[key] = (version, offset)

    def find(self, key: bytes) -> tuple[int, int] | None:
        """Version and offset of a stream's snapshot, or None."""
        found = self._newest.get(key)
        return None if found is None or found[1] < self.log_start else found
