"""Checkpoints: segments synced, a catalog written, and only then anything freed or removed.

A checkpoint stands for one sequence S, the newest whose batches all segments have been given. Its
catalog is the previous one with the journal's entries up to S folded in, never a copy of the live
state. The steps, each of which must have succeeded before the next::

    fold -> sync dirty segments -> sync directories of new files -> write the catalog, sync, rename,
    sync its directory -> remove catalogs before the previous one -> remove files no longer named

A file that the last catalog names is therefore never removed before a later catalog without it
stands; one that compaction replaced and the previous catalog names, not before two do. If a step
fails the store is fenced and nothing is freed; only a full disk before the catalog stands may be
waited out.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.interface import WorkLane
from dragoman.core.storage.catalog_file import (
    CatalogImage,
    LogRow,
    SegmentRow,
    catalog_sequences,
    write_catalog,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from dragoman.core.catalog import Catalog
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.files import OpenFiles
    from dragoman.core.storage.fold import Folding
    from dragoman.core.storage.layout import Layout
    from dragoman.core.storage.log import PartitionLog

SYNC_THREADS = 8
"""Beyond eight parallel syncs the measured time no longer falls on a small machine."""

LogKey = tuple[int, int, int]
"""Topic id, partition and birth of one partition's life."""


def log_key(log: PartitionLog) -> LogKey:
    """What names one life of a partition."""
    return log.topic_id, log.partition, log.born


def log_row(log: PartitionLog) -> LogRow:
    """A partition's files as a catalog names them."""
    rows = [
        SegmentRow(
            s.base,
            s.size,
            s.next_offset,
            s.max_timestamp_us,
            s.number,
            s.is_clean,
            s.tombstone_us,
        )
        for s in log.segments
        if s.size
    ]
    return LogRow(log.topic_id, log.partition, log.born, rows)


class Doomed(NamedTuple):
    """Files of one log that no catalog names any more; `last` where the whole log goes."""

    log: PartitionLog
    paths: list[str]
    last: bool


class Retired(NamedTuple):
    """Files that a pass of compaction replaced: the catalog of `sequence` is the first without
    them. They are removed once the one before it is gone too, because no replay makes up for
    them; at once where that one does not name them either, since the pass `number` that wrote them
    came later."""

    sequence: int
    number: int
    directory: str
    paths: list[str]


class CheckpointState:
    """What the previous checkpoint left; only checkpoints touch it, one at a time.

    Attributes:
        retired: What the newest catalog does not name any more and the one before it may.
        catalog: The state that the newest catalog file holds.
        rows: The files that it names.
        sequence, previous_sequence: Of the newest catalog file, and of the one before it.
        number, previous_number: No pass after this one wrote a file that they name. Where nothing
            is appended, pass after pass goes into a catalog file of the same sequence.
    """

    def __init__(
        self,
        catalog: Catalog,
        rows: dict[LogKey, LogRow],
        *,
        sequence: int,
        previous_sequence: int,
        number: int,
        retired: list[Retired],
    ) -> None:
        self.number = self.previous_number = number
        self.retired = retired
        self.catalog = catalog
        self.rows = rows
        self.sequence = sequence
        self.previous_sequence = previous_sequence


class Checkpoint:
    """One checkpoint.

    Attributes:
        sequence, group: What it stands for.
        paths: The segments to sync, whose descriptors are held.
        freed: Where the journal may be freed up to, once it ran.
        clean: It ends an orderly stop.
    """

    lane = WorkLane.CHECKPOINT

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        files: OpenFiles,
        state: CheckpointState,
        folding: Folding,
        *,
        sequence: int,
        group: int,
        incarnation: int,
        clean: bool,
        paths: Collection[str],
        directories: Collection[str],
        updates: list[LogRow],
        doomed: list[Doomed],
        retired: list[Retired],
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._files = files
        self._state = state
        self._folding = folding
        self._incarnation = incarnation
        self._directories = directories
        self._updates = updates
        self._doomed = doomed
        self._retired = retired
        self.sequence = sequence
        self.group = group
        self.clean = clean
        self.paths = dict.fromkeys(paths)
        self.freed = 0
        self._stands = False

    def run(self) -> None:
        """Does all steps; run again after a full disk, it goes on from the first."""
        if not self._stands:
            self._fold()
            self._sync()
            self._write()
            self._state.retired += self._retired
            self._stands = True
        self._remove()

    def _fold(self) -> None:
        state = self._state
        self._folding.apply(state.catalog)
        for row in self._updates:
            state.rows[row[:3]] = row
        for doomed in self._doomed:
            if doomed.last:
                state.rows.pop(log_key(doomed.log), None)

    def _sync(self) -> None:
        disk, files = self._disk, self._files

        def sync(path: str) -> None:
            fd = files.acquire(path)
            try:
                disk.sync(fd)
            finally:
                files.release(path)

        if len(self.paths) > 1:
            with ThreadPoolExecutor(min(SYNC_THREADS, len(self.paths))) as pool:
                list(pool.map(sync, self.paths))
        else:
            for path in self.paths:
                sync(path)
        for directory in sorted(self._directories, reverse=True):
            disk.sync_directory(directory)

    def _write(self) -> None:
        state = self._state
        write_catalog(
            self._disk,
            self._layout,
            CatalogImage(
                self.sequence,
                self.group,
                self._incarnation,
                self.clean,
                state.catalog.to_json(),
                list(state.rows.values()),
            ),
        )
        if self.sequence != state.sequence:
            state.previous_sequence, state.sequence = state.sequence, self.sequence
            state.previous_number = state.number
        for row in self._updates:
            state.number = max([state.number, *[segment.number for segment in row.segments]])
        self.freed = state.previous_sequence

    def _remove(self) -> None:
        disk, layout = self._disk, self._layout
        for sequence in catalog_sequences(disk, layout):
            if sequence < self._state.previous_sequence:
                disk.unlink(f"{layout.catalog}/{sequence}.json")
        dropped = {log.directory for log, _, last in self._doomed if last}
        state = self._state
        kept = []
        for retired in state.retired:
            is_unnamed = (
                retired.sequence <= state.previous_sequence
                or retired.number > state.previous_number
                or retired.directory in dropped
            )
            if is_unnamed:
                self._remove_files(retired.paths)
            else:
                kept.append(retired)
        state.retired = kept
        for log, paths, last in self._doomed:
            self._remove_files(paths)
            if last:
                disk.remove_directory(log.directory)
                if log.topic_id not in self._state.catalog.topics:
                    disk.remove_directory(layout.topic_directory(log.topic_id))

    def _remove_files(self, paths: list[str]) -> None:
        for path in paths:
            if path in self.paths:
                # Closed here and not on the loop: the room of a large file takes time to give back.
                del self.paths[path]
                self._files.release(path)
            self._files.forget(path)
            self._disk.unlink(path)
            self._disk.unlink(path.removesuffix(".log") + ".index")
