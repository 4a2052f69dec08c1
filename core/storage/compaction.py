"""One pass of compaction over the closed segments of a partition, in steps that a thread takes.

A pass reads the segments twice (`core.compact`) and writes what stays to files with a number of
their own, which nothing names until the loop puts them in the place of the old ones and a catalog
says so. It syncs what it writes as it goes, and the directory at its end, so that the catalog may
name the files at once. Until then giving up costs nothing: the files are removed, by this process
or by the next start.
"""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING

from dragoman.core.batch import BatchError, decode_batch, encode_batch, place_seed
from dragoman.core.compact import Latest, Thinning
from dragoman.core.interface import WorkLane
from dragoman.core.storage.segment import Mark, Segment, segment_name
from dragoman.core.storage.walk import Broken, walk

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from dragoman.core.batch import RecordBatch
    from dragoman.core.column import Buffer
    from dragoman.core.compact import Thinned
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.log import PartitionLog

WINDOW_BYTES = 256 * 1024
SYNC_BYTES = 4 * 1024 * 1024
"""Written files are synced in pieces, so that no sync of the journal waits for a large one."""
BATCH_COST_BYTES = 4096
"""A batch counts as so much at least: small ones cost the processor more than the disk."""
YIELD_BYTES = 64 * 1024
"""After so much a thread rests for a moment: about half a millisecond of computing. One that does
not lets the interpreter's lock go every 5 ms only, and the loop waits so long at each turn."""
YIELD_S = 0.000_05


class Unfit(Exception):
    """A segment cannot be read whole. It stays as it is, for the scrub and for people to see."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment.path)
        self.segment = segment


class _Output:
    """A file that is being written."""

    def __init__(self, disk: Disk, log: PartitionLog, base: int, number: int) -> None:
        self._disk = disk
        self._log = log
        self.segment = Segment(f"{log.directory}/{segment_name(base, number)}", base, number=number)
        self.fd = disk.open(self.segment.path, create=True)
        self._unsynced = 0

    def write(self, thinned: Thinned) -> int:
        """Appends a batch; returns its bytes."""
        log, segment, batch = self._log, self.segment, thinned.batch
        raw = thinned.raw
        buffers: Sequence[Buffer] = (
            encode_batch(batch, log.topic_id, log.partition) if raw is None else [raw]
        )
        length = sum(map(len, buffers))
        position = segment.plan(length, batch.next_offset)
        self._disk.write(self.fd, buffers, position)
        mark = Mark(batch.base_offset, position, batch.max_timestamp_us, batch.next_offset, length)
        segment.wrote(mark)
        segment.tombstone_us = max(segment.tombstone_us, thinned.tombstone_us)
        self._unsynced += length
        if self._unsynced >= SYNC_BYTES:
            self._disk.sync(self.fd)
            self._unsynced = 0
        return length

    def finish(self) -> Segment:
        """Syncs the file and leaves its index beside it; the index is only a cache."""
        disk, log, segment = self._disk, self._log, self.segment
        disk.sync(self.fd)
        segment.sealed = True
        if segment.index is not None:
            seed = place_seed(log.topic_id, log.partition, segment.base)
            fd = disk.open(segment.index_path, create=True)
            try:
                disk.write(fd, [segment.index.to_bytes(seed)], 0)
            finally:
                disk.close(fd)
        return segment


class Pass:
    """One pass; between two steps the loop may look at it, during one only the thread does.

    Args:
        sources: The closed segments from the log's first on.
        dirty_at: The index of the first of them that no pass has been over.
        number: Of the files to be written; never used before in this directory.
        keys_max: So many keys are noted; then the pass ends there.

    Attributes:
        sources: Those that it is over in the end.
        made: The segments that take their place.
        paths: Every file that it began.
        dropped: Records that went.
    """

    def __init__(
        self,
        disk: Disk,
        log: PartitionLog,
        sources: list[Segment],
        *,
        dirty_at: int,
        number: int,
        segment_bytes: int,
        keys_max: int,
        tombstones_before_us: int,
    ) -> None:
        self._disk = disk
        self.log = log
        self.sources = sources
        self._dirty_at = dirty_at
        self._number = number
        self._segment_bytes = segment_bytes
        self._keys_max = keys_max
        self._before_us = tombstones_before_us
        self._reach = sources[-1].next_offset
        self._output: _Output | None = None
        self.made: list[Segment] = []
        self.paths: list[str] = []
        self.dropped = 0
        self._steps = self._all_steps()

    def step(self) -> int:
        """Goes on by about one batch; returns what it cost in bytes, -1 at the end.

        Raises:
            Unfit: A segment is damaged.
            OSError: The disk failed, or is full.
        """
        return next(self._steps, -1)

    def close(self) -> None:
        """Lets go of every descriptor; nothing follows."""
        self._steps.close()
        if self._output is not None:
            self._disk.close(self._output.fd)
            self._output = None

    def _all_steps(self) -> Generator[int]:
        latest = Latest()
        yield from self._note(latest)
        thinning = Thinning(latest, reach=self._reach, tombstones_before_us=self._before_us)
        for segment in self.sources:
            for batch, data, cost in self._batches(segment):
                thinned = thinning.add(batch, data)
                yield cost if thinned is None else cost + self._put(thinned)
        last = thinning.end(self.sources[-1].next_offset)
        if last is not None:
            yield self._put(last)
        self._finish()
        if self.made:
            self._disk.sync_directory(self.log.directory)
        self.dropped = thinning.dropped
        for _ in latest.forget():
            yield 0

    def _note(self, latest: Latest) -> Iterator[int]:
        """The first reading; it ends where the map is full, and so does the pass."""
        for at in range(self._dirty_at, len(self.sources)):
            for batch, _, cost in self._batches(self.sources[at]):
                latest.note(batch)
                yield cost
                if len(latest) >= self._keys_max:
                    self._reach = batch.next_offset
                    del self.sources[at + 1 :]
                    return

    def _batches(self, segment: Segment) -> Iterator[tuple[RecordBatch, Buffer, int]]:
        """Every batch of a segment with its bytes at rest and what reading it cost."""
        log = self.log
        try:
            fd = self._disk.open(segment.path, writable=False)
        except OSError:
            raise Unfit(segment) from None

        def read(length: int, position: int) -> Buffer:
            try:
                return self._disk.read(fd, length, position)
            except OSError:
                raise Unfit(segment) from None

        expected = segment.base
        try:
            for piece in walk(
                read,
                segment.size,
                log.topic_id,
                log.partition,
                offset=segment.base,
                window=WINDOW_BYTES,
            ):
                if isinstance(piece, Broken):
                    raise Unfit(segment)
                try:
                    batch = decode_batch(piece.data, log.topic_id, log.partition)
                except BatchError:
                    raise Unfit(segment) from None
                expected = batch.next_offset
                yield batch, piece.data, max(len(piece.data), BATCH_COST_BYTES)
        finally:
            self._disk.close(fd)
        if expected != segment.next_offset:
            raise Unfit(segment)

    def _put(self, thinned: Thinned) -> int:
        """Writes a batch; a file ends where it is large enough, where the pass has not noted what
        follows, and where batches lie too far apart to touch."""
        batch = thinned.batch
        output = self._output
        if output is not None:
            segment = output.segment
            crosses = segment.base < self._reach <= batch.base_offset
            apart = segment.next_offset != batch.base_offset
            if crosses or apart or segment.size + batch.nbytes > self._segment_bytes:
                self._finish()
                output = None
        if output is None:
            output = self._output = _Output(self._disk, self.log, batch.base_offset, self._number)
            output.segment.is_clean = batch.base_offset < self._reach
            self.paths.append(output.segment.path)
        return output.write(thinned)

    def _finish(self) -> None:
        output = self._output
        if output is None:
            return
        self.made.append(output.finish())
        self._disk.close(output.fd)
        self._output = None


class CompactWork:
    """Some steps of a pass.

    Attributes:
        cost: After `run`: what counts for the pace, in bytes.
        is_done: After `run`: the pass is over.
        unfit: After `run`: the segment that ended it before its time.
    """

    lane = WorkLane.COMPACT

    def __init__(self, running: Pass, bytes_max: int) -> None:
        self._pass = running
        self._bytes_max = bytes_max
        self.cost = 0
        self.is_done = False
        self.unfit: Segment | None = None

    def run(self) -> None:
        """Steps until the budget is spent, and lets the other threads have their turn between."""
        rests_at = YIELD_BYTES
        try:
            while self.cost < self._bytes_max:
                cost = self._pass.step()
                if cost < 0:
                    self.is_done = True
                    return
                self.cost += cost
                if self.cost >= rests_at:
                    rests_at = self.cost + YIELD_BYTES
                    sleep(YIELD_S)
        except Unfit as unfit:
            self.unfit = unfit.segment


class DiscardWork:
    """Removes files that no catalog names.

    Attributes:
        running: The pass that wrote them, which is over.
    """

    lane = WorkLane.COMPACT

    def __init__(self, disk: Disk, running: Pass, paths: Sequence[str], topic: str) -> None:
        self._disk = disk
        self.running = running
        self._paths = paths
        self._topic = topic

    def run(self) -> None:
        """Removes them, and the directories of a partition that went meanwhile."""
        self.running.close()
        for path in self._paths:
            self._disk.unlink(path)
            self._disk.unlink(path.removesuffix(".log") + ".index")
        if self.running.log.dropped:
            self._disk.remove_directory(self.running.log.directory)
            self._disk.remove_directory(self._topic)
