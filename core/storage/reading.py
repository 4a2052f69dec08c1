"""Reading batches back from segment files: at once where the page cache has them, else in a thread.

Both ways are the same code over another `Read`. What was decoded is kept, bounded, so that the
renderings which codecs hang on a batch survive between two readers of the same cold range.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

from dragoman.core.batch import decode_batch
from dragoman.core.interface import WorkLane
from dragoman.core.join import gather
from dragoman.core.storage.log import BATCH_OVERHEAD_BYTES
from dragoman.core.storage.segment import build_index, load_index
from dragoman.core.storage.walk import Broken, walk
from dragoman.core.store import StoreDamage

if TYPE_CHECKING:
    from dragoman.core.batch import RecordBatch
    from dragoman.core.column import Buffer
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.files import OpenFiles
    from dragoman.core.storage.log import ColdBatches, PartitionLog
    from dragoman.core.storage.segment import Segment
    from dragoman.core.storage.walk import Read

READ_BYTES_MAX = 1024 * 1024
READ_BYTES_MIN = 64 * 1024


class WouldBlock(Exception):
    """The page cache does not hold what was asked for."""


class ColdCache:
    """Decoded batches of all partitions, first in, first out; shared by all threads."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = Lock()
        self._order: deque[tuple[ColdBatches, int, int]] = deque()
        self.bytes_held = 0

    def get(self, cold: ColdBatches, offset: int, bytes_max: int) -> list[RecordBatch]:
        """The neighbours at hand from the batch that holds `offset` on."""
        found: list[RecordBatch] = []
        if not cold.bases:
            return found
        with self._lock:
            at = bisect_right(cold.bases, offset) - 1
            batch = cold.batches.get(cold.bases[at]) if at >= 0 else None
            while batch is not None and batch.next_offset > offset:
                found.append(batch)
                bytes_max -= batch.nbytes
                if bytes_max <= 0:
                    break
                offset = batch.next_offset
                batch = cold.batches.get(offset)
        return found

    def put(self, cold: ColdBatches, batches: list[RecordBatch]) -> list[RecordBatch]:
        """Keeps batches, small neighbours joined; returns them, or those that were kept before."""
        kept = []
        # Joined before the lock is taken, for which the loop may be waiting.
        batches = gather(batches)
        with self._lock:
            for batch in batches:
                known = cold.batches.get(batch.base_offset)
                if known is not None:
                    kept.append(known if known.next_offset == batch.next_offset else batch)
                    continue
                kept.append(batch)
                size = batch.nbytes + BATCH_OVERHEAD_BYTES
                cold.batches[batch.base_offset] = batch
                insort(cold.bases, batch.base_offset)
                self._order.append((cold, batch.base_offset, size))
                self.bytes_held += size
            while self.bytes_held > self._bytes_max:
                old, base, size = self._order.popleft()
                self.bytes_held -= size
                del old.batches[base]
                del old.bases[bisect_left(old.bases, base)]
        return kept


def collect(
    read: Read, log: PartitionLog, segment: Segment, size: int, offset: int, bytes_max: int
) -> tuple[list[RecordBatch], Broken | None]:
    """Decodes batches of one segment from the one that holds `offset` on.

    Args:
        size: How much of the segment may be read; its index is at hand.

    Returns:
        The batches, at least one unless the second value says what is damaged at `offset`.
    """
    assert segment.index is not None
    position, base = segment.index.locate(offset)
    if offset < base:  # the segment's beginning is damaged: it has no entry, and must be named
        position, base = 0, segment.base
    window = max(READ_BYTES_MIN, min(bytes_max + READ_BYTES_MIN // 8, READ_BYTES_MAX))
    found: list[RecordBatch] = []
    budget = bytes_max
    for piece in walk(
        read, size, log.topic_id, log.partition, offset=base, at=position, window=window
    ):
        if isinstance(piece, Broken):
            if found:
                break
            if piece.last is None or piece.last >= offset:
                return found, piece
            continue
        if piece.head.base_offset + piece.head.last_offset_delta < offset:
            continue
        batch = decode_batch(piece.data, log.topic_id, log.partition)
        found.append(batch)
        budget -= batch.nbytes
        if budget <= 0:
            break
    return found, None


class _ColdRead:
    """What the works that read segments have in common: each a `core.store.ReadWork`.

    Attributes:
        batches, error: As the contract has them, after `run`.
    """

    lane = WorkLane.READ

    def __init__(self, disk: Disk, files: OpenFiles, cold: ColdCache, log: PartitionLog) -> None:
        self._disk = disk
        self._files = files
        self._cold = cold
        self._kept = log.cold
        self._log = log
        self.batches: list[RecordBatch] = []
        self.error: StoreDamage | None = None


class SegmentRead(_ColdRead):
    """One read of one segment."""

    def __init__(
        self,
        disk: Disk,
        files: OpenFiles,
        cold: ColdCache,
        log: PartitionLog,
        segment: Segment,
        offset: int,
        bytes_max: int,
    ) -> None:
        super().__init__(disk, files, cold, log)
        self._offset = offset
        self._bytes_max = bytes_max
        self._look_at(segment)

    def run(self) -> None:
        """Reads and checks. Damage is kept in `error`; a file that is gone is damage, unless the
        partition went with it."""
        while True:
            segment = self._segment
            try:
                fd = self._files.acquire(segment.path)
                break
            except FileNotFoundError:
                log = self._log
                if segment.replaced and (found := log.segment_now(self._offset)) is not segment:
                    if found is None:
                        return
                    self._kept = log.cold
                    self._look_at(found)
                    continue
                if not log.dropped and log.log_start <= self._last:
                    self.error = StoreDamage(self._offset, self._last, f"{segment.path} is missing")
                return
        try:
            self._read_from(fd)
        finally:
            self._files.release(segment.path)

    def _look_at(self, segment: Segment) -> None:
        if segment.index is None and segment.backlog is None:
            segment.backlog = []
        self._segment = segment
        self._size = segment.size
        self._last = segment.next_offset - 1

    def _read_from(self, fd: int) -> None:
        segment, log = self._segment, self._log

        def read(length: int, position: int) -> Buffer:
            return self._disk.read(fd, length, position)

        loaded = None
        if segment.index is None:
            loaded = load_index(self._disk, segment, log.topic_id, log.partition)
            segment.install(
                loaded or build_index(read, segment.base, self._size, log.topic_id, log.partition)
            )
        found, broken = self._collect(read)
        if broken is not None and loaded is not None:  # an index at rest is no evidence
            segment.index = build_index(read, segment.base, self._size, log.topic_id, log.partition)
            found, broken = self._collect(read)
        self.batches = self._cold.put(self._kept, found)
        if broken is not None:
            last = self._last if broken.last is None else broken.last
            place = f"{segment.path} at byte {broken.position}: {broken.reason}"
            self.error = StoreDamage(max(broken.first, log.log_start), last, place)

    def _collect(self, read: Read) -> tuple[list[RecordBatch], Broken | None]:
        segment = self._segment
        assert segment.index is not None
        if not segment.index.positions:
            return [], Broken(0, self._size, segment.base, None, "nothing in it is intact")
        return collect(read, self._log, segment, self._size, self._offset, self._bytes_max)


def read_now(
    disk: Disk, files: OpenFiles, log: PartitionLog, segment: Segment, offset: int, bytes_max: int
) -> list[RecordBatch]:
    """Reads without waiting for a device.

    Raises:
        WouldBlock: It would wait, the index is not at hand, or something is damaged, which a
            `SegmentRead` looks at more closely.
    """
    if segment.index is None or not segment.index.positions:
        raise WouldBlock
    try:
        fd = files.acquire(segment.path)
    except FileNotFoundError:
        raise WouldBlock from None

    def read(length: int, position: int) -> Buffer:
        data = disk.read_now(fd, length, position)
        if data is None:
            raise WouldBlock
        return data

    try:
        found, broken = collect(read, log, segment, segment.size, offset, bytes_max)
    finally:
        files.release(segment.path)
    if broken is not None:
        raise WouldBlock
    return found


class TimeRead(_ColdRead):
    """Looks for the first batch with a record at or after a time.

    Args:
        segments: Where it may be, in order.
        tail: What comes after them, for the case that they hold nothing intact of that time.
    """

    def __init__(
        self,
        disk: Disk,
        files: OpenFiles,
        cold: ColdCache,
        log: PartitionLog,
        segments: list[Segment],
        timestamp_us: int,
        tail: list[RecordBatch],
    ) -> None:
        super().__init__(disk, files, cold, log)
        self._segments = segments
        self._timestamp_us = timestamp_us
        self._tail = tail
        for segment in segments:
            if segment.index is None and segment.backlog is None:
                segment.backlog = []

    def run(self) -> None:
        """Reads one step of the index of the first segment that has it."""
        for segment in self._segments:
            if (batch := self._in_segment(segment)) is not None:
                self.batches = self._cold.put(self._kept, [batch])
                return
        self.batches = self._tail

    def _in_segment(self, segment: Segment) -> RecordBatch | None:
        log = self._log
        while True:
            try:
                return batch_at_time(self._disk, self._files, log, segment, self._timestamp_us)
            except FileNotFoundError:
                now = log.segment_now(segment.base) if segment.replaced else None
                if now is None or now is segment:
                    return None
                self._kept = log.cold
                segment = now


def batch_at_time(
    disk: Disk, files: OpenFiles, log: PartitionLog, segment: Segment, timestamp_us: int
) -> RecordBatch | None:
    """The first intact batch of a segment with a record at or after this time.

    Looks at one step of the index on disk; makes the index first where it is not at hand.
    """
    fd = files.acquire(segment.path)

    def read(length: int, position: int) -> Buffer:
        return disk.read(fd, length, position)

    try:
        if segment.index is None:
            segment.install(
                load_index(disk, segment, log.topic_id, log.partition)
                or build_index(read, segment.base, segment.size, log.topic_id, log.partition)
            )
        assert segment.index is not None
        found = segment.index.locate_time(timestamp_us)
        if found is None:
            return None
        position, base = found
        for piece in walk(
            read,
            segment.size,
            log.topic_id,
            log.partition,
            offset=base,
            at=position,
            window=READ_BYTES_MIN,
        ):
            if not isinstance(piece, Broken) and piece.head.max_timestamp_us >= timestamp_us:
                return decode_batch(piece.data, log.topic_id, log.partition)
    finally:
        files.release(segment.path)
    return None
