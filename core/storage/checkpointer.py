"""When a checkpoint is due, and what it is given; also when `visible` is replaced."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from dragoman.core.change import Trimmed
from dragoman.core.storage.checkpoint import Checkpoint, Doomed, Retired, log_key, log_row
from dragoman.core.storage.disk import is_full
from dragoman.core.storage.fold import Folding
from dragoman.core.storage.group import aligned
from dragoman.core.storage.visible import VisibleState, VisibleWork

if TYPE_CHECKING:
    from dragoman.core.change import Change
    from dragoman.core.clock import Now
    from dragoman.core.interface import Work
    from dragoman.core.storage.checkpoint import CheckpointState, LogKey
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.files import OpenFiles
    from dragoman.core.storage.flush import JournalFlush
    from dragoman.core.storage.journal import Journal
    from dragoman.core.storage.layout import Layout
    from dragoman.core.storage.log import LogTable, PartitionLog
    from dragoman.core.storage.options import StorageOptions
    from dragoman.core.storage.segment import Segment
    from dragoman.core.storage.visible import Ends, Place
    from dragoman.core.storage.writer import SegmentWriter

SPACING_US = 1_000_000
"""Between two checkpoints for the sake of new topics, and between two `visible` files."""
STEPS_MAX = 100_000
"""So many changes in memory make a checkpoint due."""


class Checkpointer:
    """The loop's side of checkpoints.

    Attributes:
        sequence: What the newest catalog on disk holds.
        checkpoints: How many were made.
        ended: The checkpoint of an orderly stop was handed out: nothing may follow it.
    """

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        files: OpenFiles,
        options: StorageOptions,
        state: CheckpointState,
        table: LogTable,
        *,
        group: int,
        incarnation: int,
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._files = files
        self._options = options
        self._state = state
        self._table = table
        self._incarnation = incarnation
        self._group = group
        self.sequence = self._written = state.sequence
        self.checkpoints = 0
        self.ended = False
        self._folding = Folding()
        self._changed: dict[LogKey, PartitionLog] = {}
        self._dropped: list[tuple[int, PartitionLog]] = []
        self._trims: list[tuple[int, PartitionLog, int]] = []
        self._replaced: list[tuple[PartitionLog, list[Segment]]] = []
        self._made_topic = False
        self._journal_bytes = 0
        self._since_us: int | None = None
        self._last_us: int | None = None
        self._visible_us: int | None = None
        self._work: Checkpoint | VisibleWork | None = None
        self._again: Checkpoint | None = None
        self._visible = VisibleState(state.catalog.log_epoch)
        self._watermarks: dict[PartitionLog, int] = {}
        self._updates: dict[Place, Ends | None] = {}
        self._visible_is_due = True
        for log in table.logs.values():
            self.revealed(log, log.end)

    def changed(
        self,
        change: Change,
        sequence: int,
        made: list[PartitionLog],
        dropped: list[PartitionLog],
    ) -> None:
        """A change that concerns files was appended."""
        for log in dropped:
            self._dropped.append((sequence, log))
            self._watermarks.pop(log, None)
            self._updates[log.topic_id, log.partition] = None
        for log in made:
            self._changed[log_key(log)] = log
            self.revealed(log, 0)
            self._made_topic = True
        if isinstance(change, Trimmed):
            trimmed = self._table.logs.get((change.topic_id, change.partition))
            if trimmed is not None:
                self._trims.append((sequence, trimmed, trimmed.log_start))
                self.revealed(trimmed, max(self._watermarks[trimmed], trimmed.log_start))

    def replaced(self, log: PartitionLog, segments: list[Segment]) -> None:
        """Compaction put other segments in the place of these, which lie on disk durably."""
        self._changed[log_key(log)] = log
        self._replaced.append((log, segments))

    def revealed(self, log: PartitionLog, end: int) -> None:
        """Records below `end` may be seen."""
        self._watermarks[log] = end
        self._updates[log.topic_id, log.partition] = (log.log_start, end)

    def written(self, flush: JournalFlush) -> None:
        """The batches of a flush are in the segments."""
        group = flush.group
        assert group is not None
        self._folding.add(group.folds)
        for write in group.writes:
            self._changed[log_key(write.log)] = write.log
        self._written = flush.last_sequence
        self._group = flush.number
        self._journal_bytes += aligned(group.length)

    @property
    def will_free(self) -> bool:
        """Whether a checkpoint is under way, or has something to begin with."""
        return self._work is not None or self._written != self.sequence

    def take(
        self, now: Now, *, writer: SegmentWriter, journal: Journal, stopping: bool
    ) -> Work | None:
        """A checkpoint or a new `visible`, where one is due and none is under way."""
        if self._work is not None:
            return None
        if self._again is not None:
            if not writer.is_full:
                self._work, self._again = self._again, None
            return self._work
        if (self._folding.steps or self._replaced) and self._since_us is None:
            self._since_us = now.mono_us
        if stopping and not self.ended:
            self.ended = True
            self._work = self._checkpoint(now, writer, clean=True)
        elif not self.ended and self._is_due(now, journal):
            self._work = self._checkpoint(now, writer, clean=False)
        elif self._updates or self._visible_is_due:
            last = self._visible_us
            if last is None or stopping or now.mono_us - last >= SPACING_US:
                self._visible_us = now.mono_us
                self._visible_is_due = False
                updates, self._updates = self._updates, {}
                self._work = VisibleWork(self._disk, self._layout, self._visible, updates)
        return self._work

    def finished(
        self, work: Work, error: OSError | None, *, journal: Journal, writer: SegmentWriter
    ) -> OSError | None:
        """The work ended; returns the error that fences the store, if it is one."""
        assert work is self._work
        self._work = None
        if error is not None:
            if not is_full(error):
                return error
            writer.met_full_disk()
            if isinstance(work, Checkpoint):
                self._again = work
            else:
                self._visible_is_due = True
            return None
        if isinstance(work, Checkpoint):
            self.checkpoints += 1
            self.sequence = work.sequence
            journal.free_up_to(work.freed)
            for path in work.paths:
                self._files.release(path)
        return None

    def _is_due(self, now: Now, journal: Journal) -> bool:
        """A quarter of the journal since the last one, so that with the quarter that the previous
        catalog still needs half is in use; or time, or too much in memory. Also where producers
        rest: after a slow checkpoint the journal is crowded with what the previous catalog needs,
        and nothing more would come that makes up a quarter."""
        if self._written == self.sequence and not self._replaced:
            return False
        options = self._options
        quarter = options.journal_files_max * options.journal_file_bytes // 4
        interval_us = round(options.checkpoint_interval_s * 1_000_000)
        spaced = self._last_us is None or now.mono_us - self._last_us >= SPACING_US
        return (
            self._journal_bytes >= quarter
            or journal.exhausted
            or (self._since_us is not None and now.mono_us - self._since_us >= interval_us)
            or (self._made_topic and spaced)
            or self._folding.steps >= STEPS_MAX
            or 4 * self._files.used > 3 * options.open_files_max
            or journal.is_crowded
        )

    def _checkpoint(self, now: Now, writer: SegmentWriter, *, clean: bool) -> Checkpoint:
        sequence = self._written
        doomed: list[Doomed] = []
        later_trims = []
        for at, log, log_start in self._trims:
            if at > sequence:
                later_trims.append((at, log, log_start))
                continue
            gone = log.trimmed(log_start)
            doomed.append(Doomed(log, [segment.path for segment in gone], False))
            self._changed[log_key(log)] = log
        later_drops = []
        for at, log in self._dropped:
            if at > sequence:
                later_drops.append((at, log))
                continue
            doomed.append(Doomed(log, [segment.path for segment in log.segments], True))
            self._changed.pop(log_key(log), None)
        retired = [
            Retired(sequence, number, log.directory, [segment.path for segment in written])
            for log, segments in self._replaced
            for number, written in groupby(segments, attrgetter("number"))
        ]
        self._replaced = []
        updates = [log_row(log) for log in self._changed.values() if log.born <= sequence]
        self._changed = {k: log for k, log in self._changed.items() if log.born > sequence}
        self._trims, self._dropped = later_trims, later_drops
        folding, self._folding = self._folding, Folding()
        paths, directories = writer.take_dirty()
        self._journal_bytes = 0
        self._since_us = None
        self._last_us = now.mono_us
        self._made_topic = bool(self._changed)
        return Checkpoint(
            self._disk,
            self._layout,
            self._files,
            self._state,
            folding,
            sequence=sequence,
            group=self._group,
            incarnation=self._incarnation,
            clean=clean,
            paths=paths,
            directories=directories,
            updates=updates,
            doomed=doomed,
            retired=retired,
        )
