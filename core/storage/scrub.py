"""The scrub: reads everything at rest again, slowly, to know of damage before a reader meets it.

One piece of one segment at a time, in a thread that reads, never on the loop. The loop's side keeps
the place and the pace: a pass visits every partition as far as it was written when its turn came,
and the next one begins an hour after it at the earliest. Files that retention or a deletion takes
away meanwhile are no damage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.interface import WorkLane
from dragoman.core.storage.verify import Damage
from dragoman.core.storage.walk import Broken, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dragoman.core.catalog import Catalog
    from dragoman.core.clock import Now
    from dragoman.core.column import Buffer
    from dragoman.core.interface import Work
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.log import PartitionLog
    from dragoman.core.storage.segment import Segment

PIECE_BYTES = 1024 * 1024
"""What one work checks, but for the batch or the damage in which it ends."""
WINDOW_BYTES = 256 * 1024
BATCH_COST_BYTES = 4096
"""A batch counts as so much at least: small ones cost the processor more than the disk."""
PIECE_COST_BYTES = 64 * 1024
"""A piece counts as so much at least: it opens a file and wakes a thread."""
PASS_US = 3_600_000_000
"""From the beginning of a pass to the next one's, at least."""
LOOKS_MAX = 256
"""So many partitions with nothing to check are passed over in one turn of the loop."""


class ScrubWork:
    """Checks one piece of a segment.

    Attributes:
        segment: Where it reads.
        size, last: Its written bytes and last offset when the work was made.
        position, offset: Where it begins; after `run`, where the next one does.
        cost: After `run`: what counts for the pace, in bytes.
        broken: After `run`: the damage, each with its last offset.
    """

    lane = WorkLane.READ

    def __init__(
        self, disk: Disk, log: PartitionLog, segment: Segment, position: int, offset: int
    ) -> None:
        self._disk = disk
        self._log = log
        self.segment = segment
        self.path = segment.path
        self.size = segment.size
        self.last = segment.next_offset - 1
        self.position = position
        self.offset = offset
        self.cost = PIECE_COST_BYTES
        self.broken: list[tuple[Broken, int]] = []

    def run(self) -> None:
        """Reads and checks; what the medium gives back no more is damage like any other."""
        try:
            fd = self._disk.open(self.path, writable=False)
        except FileNotFoundError:
            self._broke(self._rest("the file is missing"))
            return
        try:
            self._check(fd)
        except OSError as error:
            self._broke(self._rest(f"it cannot be read: {error}"))
        finally:
            self._disk.close(fd)

    def _check(self, fd: int) -> None:
        bytes_read = 0

        def read(length: int, position: int) -> Buffer:
            nonlocal bytes_read
            data = self._disk.read(fd, length, position)
            bytes_read += len(data)
            return data

        log = self._log
        cost = 0
        for piece in walk(
            read,
            self.size,
            log.topic_id,
            log.partition,
            offset=self.offset,
            at=self.position,
            window=WINDOW_BYTES,
        ):
            if isinstance(piece, Broken):
                self._broke(piece)
                continue
            head = piece.head
            self.position = piece.position + head.length
            self.offset = head.base_offset + head.last_offset_delta + 1
            cost += max(head.length, BATCH_COST_BYTES)
            if cost >= PIECE_BYTES:
                break
        else:
            self.position, self.offset = self.size, self.last + 1
        self.cost = max(self.cost, cost, bytes_read)

    def _rest(self, reason: str) -> Broken:
        return Broken(self.position, self.size, self.offset, None, reason)

    def _broke(self, piece: Broken) -> None:
        last = self.last if piece.last is None else piece.last
        self.broken.append((piece, last))
        self.position, self.offset = piece.end, last + 1


class Scrub:
    """The loop's side: where the scrub is, when it goes on, and what it has found.

    Args:
        bytes_per_s: The pace; 0 for no scrub.
        logs: Every partition's log, as it lives.
        on_damage: Told each damage once.

    Attributes:
        bytes_checked: Since the start, over all passes.
        damaged: Damaged stretches that were named.
    """

    def __init__(
        self,
        disk: Disk,
        bytes_per_s: int,
        logs: Mapping[tuple[int, int], PartitionLog],
        catalog: Catalog,
        on_damage: Callable[[Damage], None],
    ) -> None:
        self._disk = disk
        self._bytes_per_s = bytes_per_s
        self._logs = logs
        self._catalog = catalog
        self._on_damage = on_damage
        self.bytes_checked = 0
        self.damaged = 0
        self._named: set[tuple[str, int]] = set()
        self._queue: list[PartitionLog] = []
        self._log: PartitionLog | None = None
        self._until = 0
        self._segment: Segment | None = None
        self._position = 0
        self._offset = 0
        self._work: ScrubWork | None = None
        self._taken_us = 0
        self._due_us = 0
        self._pass_due_us = 0

    def take(self, now: Now) -> Work | None:
        """The next piece, where none is under way and the pace allows it."""
        if self._work is not None or now.mono_us < self._due_us or not self._bytes_per_s:
            return None
        for _ in range(LOOKS_MAX):
            log = self._log or self._next_log(now)
            if log is None:
                return None
            segment = self._next_segment(log)
            if segment is not None:
                self._taken_us = now.mono_us
                self._work = ScrubWork(self._disk, log, segment, self._position, self._offset)
                return self._work
            self._log = None
        return None

    def owns(self, work: Work) -> bool:
        """Whether this is the piece under way."""
        return work is self._work

    def finished(self, work: Work, error: OSError | None) -> None:
        """The piece was checked, or its file could not be opened: then the next pass tries again.

        An error never fences the log: nothing was written.
        """
        piece, log = self._work, self._log
        assert piece is work
        assert piece is not None
        assert log is not None
        self._work = None
        self._due_us = self._taken_us + piece.cost * 1_000_000 // self._bytes_per_s
        if error is not None:
            self._position, self._offset = piece.size, piece.last + 1
            return
        self.bytes_checked += piece.position - self._position
        self._position, self._offset = piece.position, piece.offset
        for broken, last in piece.broken:
            if not (log.dropped or piece.segment.replaced) and last >= log.log_start:
                self._name(piece.path, log, broken, last)

    def _next_log(self, now: Now) -> PartitionLog | None:
        """Turns to the next partition; None where the next pass is not due yet."""
        if not self._queue:
            if now.mono_us < self._pass_due_us:
                self._due_us = self._pass_due_us
                return None
            self._pass_due_us = now.mono_us + PASS_US
            self._queue = list(self._logs.values())
            if not self._queue:
                return None
        self._log = log = self._queue.pop()
        self._until = log.end
        self._segment = None
        self._offset = 0
        return log

    def _next_segment(self, log: PartitionLog) -> Segment | None:
        """The segment to go on in; None where this partition's turn is over."""
        offset = max(self._offset, log.log_start)
        if log.dropped or offset >= self._until:
            return None
        segment = log.segment_at(offset)
        if segment is not None and segment is not self._segment:
            self._segment = segment
            self._position, self._offset = 0, segment.base
        return segment

    def _name(self, path: str, log: PartitionLog, broken: Broken, last: int) -> None:
        place = (path, broken.position)
        if place in self._named:
            return
        self._named.add(place)
        self.damaged += 1
        topic = self._catalog.topics[log.topic_id].name
        first = max(broken.first, log.log_start)
        self._on_damage(
            Damage(path, broken.position, broken.reason, topic, log.partition, first, last)
        )
