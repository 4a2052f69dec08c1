"""Compaction as the loop sees it: one pass at a time, its pace, and how its result is taken over.

The commit is a catalog, not a journal entry: replay builds segments from batches, so an entry that
spoke of rewritten files could not be replayed. In memory the new segments take the place of the old
ones at once; on disk the next catalog names them. The old files stay until no catalog names them
any more, not even the previous one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.compact import is_due
from dragoman.core.storage.compaction import CompactWork, DiscardWork, Pass
from dragoman.core.storage.disk import is_full
from dragoman.core.storage.log import ColdBatches

if TYPE_CHECKING:
    from dragoman.core.clock import Now
    from dragoman.core.interface import Work
    from dragoman.core.storage.checkpointer import Checkpointer
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.layout import Layout
    from dragoman.core.storage.log import PartitionLog
    from dragoman.core.storage.options import StorageOptions
    from dragoman.core.storage.segment import Segment

PIECE_BYTES = 1024 * 1024
"""What one work handles, reading and writing together."""
REST_US = 60_000_000
"""After a full disk nothing is begun for so long."""
NUMBERS = 1_000_000_000
"""More passes than one life of the directory makes."""
EVICTED_MAX = 64
"""So many batches that were compacted leave the memory in one turn of the loop."""


class Compactor:
    """The loop's side.

    Args:
        incarnation: Of the journal, which no two lives of the directory share; files are numbered
            from it, so that no name is ever used twice.

    Attributes:
        passes, given_up: How many ended well, and how many did not.
        records_dropped, bytes_freed: By those that ended well.
    """

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        options: StorageOptions,
        checkpointer: Checkpointer,
        incarnation: int,
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._options = options
        self._checkpointer = checkpointer
        self._number = incarnation * NUMBERS
        self._pass: Pass | None = None
        self._discard: DiscardWork | None = None
        self._work: CompactWork | DiscardWork | None = None
        self._evicting: tuple[PartitionLog, int] | None = None
        self._now_us = 0
        self._stops = False
        self._taken_us = 0
        self._due_us = 0
        self._rest_until_us = 0
        self.passes = 0
        self.given_up = 0
        self.records_dropped = 0
        self.bytes_freed = 0

    def begin(self, log: PartitionLog, *, up_to: int, tombstones_before_us: int) -> bool:
        """Begins a pass where one is due; False where it cannot be looked at now."""
        if self._is_busy or self._now_us < self._rest_until_us:
            return False
        sources = _sources(log, up_to)
        dirty_at = len(sources)
        while dirty_at and not sources[dirty_at - 1].is_clean:
            dirty_at -= 1
        clean = sources[:dirty_at]
        if sources and is_due(
            dirty_bytes=sum([segment.size for segment in sources[dirty_at:]]),
            clean_bytes=sum([segment.size for segment in clean]),
            tombstone_us=max([segment.tombstone_us for segment in clean], default=0),
            tombstones_before_us=tombstones_before_us,
        ):
            self._number += 1
            self._pass = Pass(
                self._disk,
                log,
                sources,
                dirty_at=dirty_at,
                number=self._number,
                segment_bytes=self._options.segment_bytes,
                keys_max=self._options.compact_keys_max,
                tombstones_before_us=tombstones_before_us,
            )
        return True

    def take(self, now: Now, *, stops: bool) -> Work | None:
        """The next steps, where they are due and none are under way.

        Args:
            stops: The disk is full or the server stops: what was begun is removed.
        """
        self._now_us = now.mono_us
        self._stops = stops
        if self._evicting is not None:
            self._evict(*self._evicting)
        if self._work is not None:
            return None
        running = self._pass
        if running is not None and (stops or running.log.dropped):
            self._give_up(running)
        if self._discard is not None:
            self._work, self._discard = self._discard, None
        elif self._pass is not None and now.mono_us >= self._due_us:
            self._taken_us = now.mono_us
            self._work = CompactWork(self._pass, PIECE_BYTES)
        return self._work

    def owns(self, work: Work) -> bool:
        """Whether this is the work under way."""
        return work is self._work

    def finished(self, work: Work, error: OSError | None) -> OSError | None:
        """The work ended; returns the error that fences the store, if it is one."""
        assert work is self._work
        self._work = None
        running = self._pass
        if running is None:  # files were removed; those that were not, the next start removes
            return None
        assert isinstance(work, CompactWork)
        rate = self._options.compact_bytes_per_s
        self._due_us = self._taken_us + work.cost * 1_000_000 // rate
        if error is not None:
            self._give_up(running)
            if not is_full(error):
                return error
            self._rest_until_us = self._now_us + REST_US
        elif work.unfit is not None:
            work.unfit.unfit = True
            self._give_up(running)
        elif work.is_done and not self._stops:
            self._take_over(running)
        return None

    def close(self) -> None:
        """Closes what a pass left open."""
        if self._pass is not None:
            self._pass.close()
        if self._discard is not None:
            self._discard.running.close()

    @property
    def _is_busy(self) -> bool:
        under_way = (self._pass, self._work, self._discard, self._evicting)
        return under_way != (None, None, None, None)

    def _give_up(self, running: Pass) -> None:
        self.given_up += 1
        self._end(running, running.paths)

    def _end(self, running: Pass, unused: list[str]) -> None:
        self._pass = None
        topic = self._layout.topic_directory(running.log.topic_id)
        self._discard = DiscardWork(self._disk, running, unused, topic)

    def _take_over(self, running: Pass) -> None:
        """Puts the new segments in the place of the old ones, less what was trimmed meanwhile."""
        log, sources, segments = running.log, running.sources, running.log.segments
        trimmed = 0
        while trimmed < len(sources) and (not segments or sources[trimmed] is not segments[0]):
            trimmed += 1
        rest = sources[trimmed:]
        if log.dropped or not rest or segments[: len(rest)] != rest:
            self._give_up(running)
            return
        made = [segment for segment in running.made if segment.next_offset > rest[0].base]
        segments[: len(rest)] = made
        for segment in rest:
            segment.replaced = True
        log.cold = ColdBatches()
        log.oldest = (-1, 0)
        self._evicting = (log, rest[-1].next_offset)
        self._checkpointer.replaced(log, rest)
        self.passes += 1
        self.records_dropped += running.dropped
        self.bytes_freed += sum([s.size for s in rest]) - sum([s.size for s in made])
        used = {segment.path for segment in made}
        self._end(running, [path for path in running.paths if path not in used])

    def _evict(self, log: PartitionLog, end: int) -> None:
        """Lets go of what memory holds of the segments that were replaced, a little at a time."""
        for _ in range(EVICTED_MAX):
            if log.gone >= len(log.tail) or log.tail[log.gone].next_offset > end:
                self._evicting = None
                return
            log.evict_first()


def _sources(log: PartitionLog, up_to: int) -> list[Segment]:
    """The closed segments from the first on that are written and visible whole."""
    sources = []
    for segment in log.segments[:-1]:
        whole = 0 < segment.size == segment.planned and segment.next_offset <= up_to
        if not whole or segment.unfit:
            break
        sources.append(segment)
    return sources
