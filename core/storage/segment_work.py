"""Writing durable groups to segments: the same buffers as in the journal, in order, without a sync.

Where everything goes is decided on the loop; the thread only writes. A work that met a full disk is
run again unchanged: it writes to the same positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.batch import place_seed
from dragoman.core.interface import WorkLane
from dragoman.core.storage.segment import Mark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.core.column import Buffer
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.files import OpenFiles
    from dragoman.core.storage.flush import JournalFlush
    from dragoman.core.storage.log import PartitionLog
    from dragoman.core.storage.segment import Segment


class SegmentAppend:
    """What one work adds to one segment."""

    __slots__ = ("buffers", "created", "log", "marks", "position", "segment")

    def __init__(self, log: PartitionLog, segment: Segment, position: int, created: bool) -> None:
        self.log = log
        self.segment = segment
        self.position = position
        self.created = created
        self.buffers: list[Buffer] = []
        self.marks: list[Mark] = []


class SegmentWrite:
    """Writes the batches of some groups to their segments.

    Attributes:
        groups: The flushes whose batches it writes.
        appends: One for each segment touched.
        held: Paths whose descriptors the work holds once it ran.
    """

    lane = WorkLane.SEGMENT

    def __init__(
        self,
        disk: Disk,
        files: OpenFiles,
        groups: list[JournalFlush],
        closed: Iterable[tuple[PartitionLog, Segment]],
        segment_bytes: int,
    ) -> None:
        self._disk = disk
        self._files = files
        self.groups = groups
        self._closed = list(closed)
        self.newly_closed: list[tuple[PartitionLog, Segment]] = []
        appends: dict[Segment, SegmentAppend] = {}
        for flush in groups:
            if flush.group is None:
                continue
            for log, batch, buffers, length in flush.group.writes:
                before = log.segments[-1] if log.segments else None
                segment, created = log.segment_for(batch.base_offset, length, segment_bytes)
                if created and before is not None:
                    self.newly_closed.append((log, before))
                position = segment.plan(length, batch.next_offset)
                append = appends.get(segment)
                if append is None:
                    append = SegmentAppend(log, segment, position, created)
                    appends[segment] = append
                append.buffers += buffers
                append.marks.append(
                    Mark(
                        batch.base_offset,
                        position,
                        batch.max_timestamp_us,
                        batch.next_offset,
                        length,
                    )
                )
        self.appends = list(appends.values())
        self.held: list[str] = []

    def run(self) -> None:
        """Writes; every descriptor stays held until the store releases it."""
        for append in self.appends[len(self.held) :]:
            if append.created:
                self._disk.make_directory(append.log.directory)
            path = append.segment.path
            fd = self._files.acquire(path, create=append.created)
            try:
                self._disk.write(fd, append.buffers, append.position)
            except OSError:
                self._files.release(path)
                raise
            self.held.append(path)
        for log, segment in self._closed:
            self._write_index(log, segment)

    def _write_index(self, log: PartitionLog, segment: Segment) -> None:
        """Leaves the index of a closed segment beside it; only a cache, so a failure is none."""
        index = segment.index
        if index is None or log.dropped or segment.replaced:
            return
        data = index.to_bytes(place_seed(log.topic_id, log.partition, segment.base))
        try:
            fd = self._disk.open(segment.index_path, create=True)
            try:
                self._disk.truncate(fd, 0)
                self._disk.write(fd, [data], 0)
            finally:
                self._disk.close(fd)
        except OSError:
            self._disk.unlink(segment.index_path)


class ReserveWork:
    """Keeps, or gives up, the file that leaves room for checkpoints on a full disk."""

    lane = WorkLane.SEGMENT

    def __init__(self, disk: Disk, path: str, size: int, *, give_up: bool) -> None:
        self._disk = disk
        self._path = path
        self._size = size
        self.give_up = give_up

    def run(self) -> None:
        """Removes the file, or fills it. Raises OSError where the disk is still full."""
        if self.give_up:
            self._disk.unlink(self._path)
            return
        fd = self._disk.open(self._path, create=True)
        try:
            at = self._disk.size(fd)
            zeros = bytes(64 * 1024)
            while at < self._size:
                self._disk.write(fd, [zeros[: self._size - at]], at)
                at += len(zeros)
        except OSError:
            self._disk.unlink(self._path)
            raise
        finally:
            self._disk.close(fd)
