"""The segment lane as the loop sees it: one piece of work at a time, and what a full disk means.

Durable groups wait here for their segments; journal files are prepared in between. When a write
meets a full disk, nothing is lost: the batches stay in memory and in the journal. The reserve file
is given up at once, so that what waits can still be written and a checkpoint can stand; new records
are refused until the reserve could be filled again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from dragoman.core.storage.disk import is_full
from dragoman.core.storage.journal import PrepareWork
from dragoman.core.storage.segment_work import ReserveWork, SegmentWrite

if TYPE_CHECKING:
    from dragoman.core.clock import Now
    from dragoman.core.interface import Work
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.files import OpenFiles
    from dragoman.core.storage.flush import JournalFlush
    from dragoman.core.storage.journal import Journal
    from dragoman.core.storage.layout import Layout
    from dragoman.core.storage.log import PartitionLog
    from dragoman.core.storage.options import StorageOptions
    from dragoman.core.storage.segment import Segment

WRITE_BYTES_MAX = 32 * 1024 * 1024
"""One segment work takes about so much, so that its memory is free again soon."""
LINGER_BYTES_MAX = 1024 * 1024
"""So much is worth a thread's waking at once."""


class SegmentWriter:
    """What waits for segments, and what is on its way.

    Attributes:
        written_sequence: Everything up to here is in the segments' page cache.
        unwritten_bytes: Batches in the journal that are not.
        is_full: The disk is full; records are refused.
    """

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        files: OpenFiles,
        options: StorageOptions,
        journal: Journal,
        sequence: int,
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._files = files
        self._options = options
        self._journal = journal
        self.written_sequence = sequence
        self.unwritten_bytes = 0
        self.is_full = False
        self._queue: deque[JournalFlush] = deque()
        self._queued_bytes = 0
        self._linger_until_us: int | None = None
        self._work: SegmentWrite | PrepareWork | ReserveWork | None = None
        self._again: SegmentWrite | None = None
        self._retry_at_us: int | None = None
        self._refill_at_us = 0
        self._has_reserve = False
        self._written: list[JournalFlush] = []
        self._closed: list[tuple[PartitionLog, Segment]] = []
        self._dirty: dict[str, None] = {}
        self._directories: set[str] = set()

    @property
    def is_idle(self) -> bool:
        """Whether everything that is durable is in the segments."""
        return not self._queue and self._again is None and not isinstance(self._work, SegmentWrite)

    def add(self, flush: JournalFlush) -> list[JournalFlush]:
        """Takes a flush that has ended; returns it where there is nothing to write or wait for."""
        assert flush.group is not None
        if not flush.group.writes and self.is_idle:
            self.written_sequence = flush.last_sequence
            return [flush]
        self._queue.append(flush)
        self._queued_bytes += flush.group.length
        self.unwritten_bytes += sum([write.length for write in flush.group.writes])
        return []

    def take(self, now: Now, *, hurry: bool = False) -> Work | None:
        """The next piece of work that is due, if none is under way; in a hurry nothing lingers."""
        if self._work is not None:
            return None
        self._work = self._next_when_full(now) if self.is_full else self._next(now, hurry)
        return self._work

    def owns(self, work: Work) -> bool:
        """Whether this is the work under way."""
        return work is self._work

    def finished(self, work: Work, error: OSError | None) -> OSError | None:
        """The work ended; returns the error that fences the store, if it is one."""
        assert work is self._work
        self._work = None
        if isinstance(work, PrepareWork):
            self._journal.prepared(work, error)
        if error is not None:
            if not is_full(error):
                return error
            if isinstance(work, SegmentWrite):
                self._again = work
            elif isinstance(work, ReserveWork):  # some file systems need room to remove a file
                self._has_reserve = False
            self.met_full_disk()
            return None
        if isinstance(work, ReserveWork):
            self._has_reserve = not work.give_up
            if not work.give_up:
                self.is_full = False
        elif isinstance(work, SegmentWrite):
            self._wrote(work)
        return None

    def met_full_disk(self) -> None:
        """Some write found no room: records are refused from now on."""
        self.is_full = True
        self._retry_at_us = None

    def take_written(self) -> list[JournalFlush]:
        """The flushes whose batches are in the segments since the last call, in order."""
        written, self._written = self._written, []
        return written

    def take_dirty(self) -> tuple[list[str], set[str]]:
        """Segments to sync, whose descriptors stay held, and directories with new entries."""
        paths, directories = list(self._dirty), self._directories
        self._dirty = {}
        self._directories = set()
        return paths, directories

    def _next(self, now: Now, hurry: bool) -> SegmentWrite | PrepareWork | ReserveWork | None:
        preparation = self._journal.take_preparation()
        if preparation is not None:
            return preparation
        if self._queue:
            return self._take_queued() if hurry or self._is_due(now) else None
        if not self._has_reserve:
            return self._reserve(give_up=False)
        return None

    def _next_when_full(self, now: Now) -> SegmentWrite | ReserveWork | None:
        pause_us = 1000 * self._options.retry_ms
        if self._has_reserve:
            self._retry_at_us = now.mono_us
            self._refill_at_us = now.mono_us + pause_us
            return self._reserve(give_up=True)
        if self._retry_at_us is None:
            self._retry_at_us = now.mono_us + pause_us
        if now.mono_us < self._retry_at_us:
            return None
        if self._again is not None:
            again, self._again = self._again, None
            return again
        if self._queue:
            return self._take_queued()
        if now.mono_us < self._refill_at_us:
            return None
        self._refill_at_us = now.mono_us + pause_us
        return self._reserve(give_up=False)

    def _reserve(self, *, give_up: bool) -> ReserveWork:
        path = self._layout.reserve
        return ReserveWork(self._disk, path, self._options.reserve_bytes, give_up=give_up)

    def _is_due(self, now: Now) -> bool:
        """Whether what is queued has waited, or grown, enough to wake a thread for."""
        if self._queued_bytes >= LINGER_BYTES_MAX:
            return True
        if self._linger_until_us is None:
            self._linger_until_us = now.mono_us + 1000 * self._options.segment_linger_ms
        return now.mono_us >= self._linger_until_us

    def _take_queued(self) -> SegmentWrite:
        self._linger_until_us = None
        groups: list[JournalFlush] = []
        total = 0
        while self._queue and total < WRITE_BYTES_MAX:
            flush = self._queue.popleft()
            groups.append(flush)
            assert flush.group is not None
            total += flush.group.length
        self._queued_bytes -= total
        closed, self._closed = self._closed, []
        return SegmentWrite(self._disk, self._files, groups, closed, self._options.segment_bytes)

    def _wrote(self, work: SegmentWrite) -> None:
        for append in work.appends:
            segment = append.segment
            for mark in append.marks:
                segment.wrote(mark)
            if append.created:
                log = append.log
                topic = self._layout.topic_directory(log.topic_id)
                self._directories |= {log.directory, topic, self._layout.topics}
        for path in work.held:
            if path in self._dirty:
                self._files.release(path)
            else:
                self._dirty[path] = None
        for flush in work.groups:
            assert flush.group is not None
            for write in flush.group.writes:
                write.log.unwritten -= write.length
                self.unwritten_bytes -= write.length
        self._closed += work.newly_closed
        self._written += work.groups
        self.written_sequence = work.groups[-1].last_sequence
