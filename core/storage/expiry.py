"""What retention asks of a log: from where on it is young enough, and small enough.

By bytes whole closed segments go. By age every record goes: the boundary is looked up in memory
where it lies there, else in a thread, and what was found there is remembered, so that a log of
which nothing expires is not read again.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from dragoman.core.cut import first_at_time
from dragoman.core.interface import WorkLane
from dragoman.core.storage.reading import batch_at_time

if TYPE_CHECKING:
    from dragoman.core.batch import RecordBatch
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.files import OpenFiles
    from dragoman.core.storage.log import PartitionLog
    from dragoman.core.storage.segment import Segment


class ExpiryRead:
    """Looks for the first record of a segment that is not older: a `core.store.ExpiryWork`.

    Attributes:
        start: As the contract has it.
    """

    lane = WorkLane.READ

    def __init__(
        self, disk: Disk, files: OpenFiles, log: PartitionLog, segment: Segment, before_us: int
    ) -> None:
        self._disk = disk
        self._files = files
        self._log = log
        self._segment = segment
        self._before_us = before_us
        if segment.index is None and segment.backlog is None:
            segment.backlog = []
        self.start: int | None = None

    def run(self) -> None:
        """Reads one step of the index; a file that went away meanwhile says nothing."""
        log = self._log
        try:
            batch = batch_at_time(self._disk, self._files, log, self._segment, self._before_us)
        except FileNotFoundError:
            return
        if batch is not None:
            self.start = _first_kept(log, batch, self._before_us)


def expired(
    disk: Disk, files: OpenFiles, log: PartitionLog, *, before_us: int, bytes_max: int
) -> int | ExpiryRead | None:
    """The log start that retention asks for; see `core.store.Store.expired`."""
    start = _start_by_bytes(log, bytes_max) if bytes_max else None
    offset, oldest_us = log.oldest
    if not before_us or (offset == log.log_start and oldest_us >= before_us):
        return start
    tail_start = log.tail_start
    for segment in log.segments:
        if segment.base >= tail_start:
            break
        if segment.next_offset > log.log_start and segment.max_timestamp_us >= before_us:
            if start is not None and start >= segment.next_offset:
                return start
            return ExpiryRead(disk, files, log, segment, before_us)
    at = bisect_left(log.tail, before_us, log.gone, key=_newest)
    by_age = log.end if at == len(log.tail) else _first_kept(log, log.tail[at], before_us)
    return by_age if start is None else max(start, by_age)


def _start_by_bytes(log: PartitionLog, bytes_max: int) -> int | None:
    """Whole closed segments go while what is left is still as much as is kept."""
    segments = log.live_segments()
    total = sum([segment.size for segment in segments])
    start = None
    for segment in segments[:-1]:
        if segment.size < segment.planned or total - segment.size < bytes_max:
            break
        total -= segment.size
        start = segment.next_offset
    return start


def _first_kept(log: PartitionLog, batch: RecordBatch, before_us: int) -> int:
    offset = first_at_time(batch, before_us)
    log.oldest = (offset, batch.timestamp_at(min(batch.index_of(offset), batch.count - 1)))
    return offset


def _newest(batch: RecordBatch) -> int:
    return batch.max_timestamp_us
