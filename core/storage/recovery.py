"""From a data directory as a stop or a crash left it to a log that can be served.

1. The newest catalog that verifies is the beginning; without any, the directory must be new.
2. Journal groups after it are replayed (`storage.replay`) onto the catalog and the segments. What a
   segment has beyond its recorded size is overwritten by the replay and cut at the end.
3. Files that the result does not name are removed, after a catalog of the result stands.
4. Nothing is appended to a journal file that was replayed: the next group goes to a free one, under
   a new incarnation. After a stop that was not orderly the log epoch is raised.

Every step may be interrupted and run again: nothing that the old catalog names is touched before
the new one stands. Damage inside recorded segments is kept, named and served around, never cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.core import change as ch
from dragoman.core.batch import HEADER_BYTES, BatchError, read_head
from dragoman.core.catalog import Catalog
from dragoman.core.storage.catalog_file import (
    CatalogError,
    CatalogImage,
    catalog_sequences,
    read_catalog,
    write_catalog,
)
from dragoman.core.storage.checkpoint import CheckpointState, Retired, log_key, log_row
from dragoman.core.storage.compact import NUMBERS
from dragoman.core.storage.error import StorageError
from dragoman.core.storage.flush import Appended
from dragoman.core.storage.fold import apply_fold
from dragoman.core.storage.group import BLOCK, BatchEntry, read_entries
from dragoman.core.storage.journal import JournalFile
from dragoman.core.storage.log import LogTable
from dragoman.core.storage.replay import plan_replay, scan_journal
from dragoman.core.storage.segment import Segment, load_index, segment_name

if TYPE_CHECKING:
    from dragoman.core.storage.catalog_file import SegmentRow
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.layout import Layout
    from dragoman.core.storage.log import PartitionLog
    from dragoman.core.storage.options import StorageOptions
    from dragoman.core.storage.replay import JournalScan, Replay


class Recovered(NamedTuple):
    """What a data directory holds, ready to be served.

    Attributes:
        state: The catalog that now stands on disk.
        damage: Sentences that name what was found damaged.
        replayed: Journal groups that were replayed.
    """

    state: CheckpointState
    table: LogTable
    sequence: int
    group: int
    incarnation: int
    files: list[JournalFile]
    damage: list[str]
    replayed: int
    clean: bool


def recover(
    disk: Disk, layout: Layout, options: StorageOptions, *, give_up_from: int | None = None
) -> Recovered:
    """Brings a locked directory of the right format to a state that can be served.

    Args:
        give_up_from: Discard the journal from this sequence on, where it is damaged.

    Raises:
        StorageError: No catalog verifies, or a durable journal group is damaged.
        OSError: The disk failed.
    """
    image, damage = newest_catalog(disk, layout)
    catalog = Catalog.from_json(image.state)
    table = _table_of(layout, image, catalog)
    scans = scan_journal(disk, layout, look_inside=not image.clean)
    try:
        # A process that was killed may have left a file whose entry is not on disk yet.
        disk.sync_directory(layout.journal)
        replay = plan_replay(
            [group for scan in scans for group in scan.groups],
            sequence=image.sequence,
            group=image.group,
            incarnation=image.incarnation,
            give_up_from=give_up_from,
        )
        problem = replay.damage
        newest = max(catalog_sequences(disk, layout), default=0)
        if not problem and give_up_from is None and newest > replay.sequence:
            problem = (
                f"catalog/{newest}.json is damaged and the journal ends at sequence "
                f"{replay.sequence}"
            )
        if problem:
            raise StorageError(
                f"{problem}: restore {layout.root}, or discard what follows with "
                f"`dragoman recover {layout.root} --give-up-from {replay.sequence + 1}`"
            )
        work = _Rebuild(disk, layout, options, catalog, table)
        problems = work.check_recorded(heads=not image.clean)
        work.replay(scans, replay)
        damage += [problem.text for problem in problems if problem.is_felt]
        work.cut()
        if not image.clean:
            catalog.apply(ch.EpochRaised(catalog.log_epoch + 1))
        state = work.write(image, replay)
    except BaseException:
        for scan in scans:
            disk.close(scan.fd)
        raise
    files = _journal_files(scans, image, replay, state)
    return Recovered(
        state,
        table,
        replay.sequence,
        replay.group,
        replay.incarnation + 1,
        files,
        damage,
        len(replay.groups),
        image.clean,
    )


def newest_catalog(disk: Disk, layout: Layout) -> tuple[CatalogImage, list[str]]:
    """The newest catalog that verifies, or that of a new directory; and what was passed over.

    Raises:
        StorageError: There are files but no catalog that verifies.
    """
    damage: list[str] = []
    sequences = catalog_sequences(disk, layout)
    for sequence in sequences:
        try:
            image = read_catalog(disk, layout, sequence)
            return image._replace(clean=image.clean and not damage), damage
        except (CatalogError, KeyError, TypeError, ValueError) as error:
            damage.append(f"catalog/{sequence}.json is damaged: {error}")
    if sequences or disk.list(layout.topics):
        raise StorageError(
            f"{layout.root} holds records but no catalog that verifies: restore it from a backup"
        )
    new = not disk.list(layout.journal)
    return CatalogImage(0, 0, 0, new, Catalog().to_json(), []), damage


def _table_of(layout: Layout, image: CatalogImage, catalog: Catalog) -> LogTable:
    """The logs that a catalog names."""
    table = LogTable(layout)
    for row in image.logs:
        topic = catalog.topics[row.topic_id]
        log = table.add(
            row.topic_id,
            row.partition,
            row.born,
            namespace_number=topic.namespace_number,
            partitions=len(topic.partitions),
        )
        state = topic.partitions[row.partition]
        log.log_start, log.end = state.log_start_offset, state.next_offset
        log.segments += [_segment_of(log.directory, named) for named in row.segments]
    return table


def _segment_of(directory: str, row: SegmentRow) -> Segment:
    segment = Segment(
        f"{directory}/{segment_name(row.base, row.number)}",
        row.base,
        size=row.size,
        next_offset=row.next_offset,
        max_timestamp_us=row.max_timestamp_us,
        number=row.number,
    )
    segment.is_clean, segment.tombstone_us = row.is_clean, row.tombstone_us
    return segment


def _journal_files(
    scans: list[JournalScan], image: CatalogImage, replay: Replay, state: CheckpointState
) -> list[JournalFile]:
    """The files with what they may hold; those that no catalog on disk needs are free."""
    files = []
    for scan in scans:
        newest = max([group.last_sequence for group in scan.groups], default=0)
        if image.clean:  # nobody looked inside: whatever they hold is at or before the catalog
            newest = image.sequence
        newest = min(newest, replay.sequence)
        free = newest <= state.previous_sequence
        files.append(JournalFile(scan.number, scan.fd, scan.size // BLOCK * BLOCK, newest, free))
    return files


def _names(paths: list[str]) -> set[str]:
    """The names of segment files and of their indexes."""
    names = {path.rpartition("/")[2] for path in paths}
    return names | {name.removesuffix(".log") + ".index" for name in names}


class _Problem(NamedTuple):
    """A segment that is not as the catalog has it."""

    log: PartitionLog
    segment: Segment
    text: str

    @property
    def is_felt(self) -> bool:
        """Whether anything is missing: a catalog that is not the newest names what was trimmed or
        dropped after it, and that may be gone."""
        return not self.log.dropped and self.segment.next_offset > self.log.log_start


class _Rebuild:
    """The changes that one recovery makes."""

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        options: StorageOptions,
        catalog: Catalog,
        table: LogTable,
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._options = options
        self._catalog = catalog
        self._table = table
        self._open: dict[str, int] = {}
        self._touched: dict[str, Segment] = {}
        self._directories: set[str] = set()

    def check_recorded(self, *, heads: bool) -> list[_Problem]:
        """Looks at what the catalog names; what is missing or short is sealed and named.

        Args:
            heads: Also look at the first batch of every segment, and remove indexes that a crash
                left torn, since they are never synced.
        """
        disk = self._disk
        damage = []
        for log in self._table.logs.values():
            for segment in log.segments:
                if segment.next_offset <= log.log_start:
                    continue
                try:
                    problem = self._problem(segment, heads=heads)
                except FileNotFoundError:
                    problem = "is missing"
                if problem:
                    segment.sealed = True
                    damage.append(_Problem(log, segment, f"{segment.path} {problem}"))
                elif heads and load_index(disk, segment, log.topic_id, log.partition) is None:
                    disk.unlink(segment.index_path)
        return damage

    def _problem(self, segment: Segment, *, heads: bool) -> str:
        disk = self._disk
        fd = disk.open(segment.path)
        try:
            size = disk.size(fd)
            if size < segment.size:
                return f"has {size} bytes where {segment.size} were recorded"
            if size > segment.size:
                self._touched[segment.path] = segment
            if heads:
                try:
                    head = read_head(disk.read(fd, HEADER_BYTES, 0))
                except BatchError as error:
                    return f"does not begin with a batch: {error}"
                if head.base_offset != segment.base:
                    return f"begins with offset {head.base_offset}"
        finally:
            disk.close(fd)
        return ""

    def replay(self, scans: list[JournalScan], replay: Replay) -> None:
        """Applies the chosen groups to catalog and segments."""
        descriptors = {scan.number: scan.fd for scan in scans}
        for group in replay.groups:
            try:
                entries = list(read_entries(self._disk, descriptors[group.file], group))
            except ValueError as error:
                raise StorageError(
                    f"journal/{group.file} at byte {group.position} cannot be replayed: {error}"
                ) from None
            for entry in entries:
                if isinstance(entry, BatchEntry):
                    self._append(entry)
                else:
                    self._catalog.apply(entry.change)
                    self._table.apply(entry.change, entry.sequence)

    def _append(self, entry: BatchEntry) -> None:
        log = self._table.logs.get((entry.topic_id, entry.partition))
        if log is None:
            return
        head = read_head(entry.data)
        after = head.base_offset + head.last_offset_delta + 1
        segment, created = log.segment_for(
            head.base_offset, head.length, self._options.segment_bytes
        )
        if created:
            self._disk.make_directory(log.directory)
            topic = self._layout.topic_directory(log.topic_id)
            self._directories |= {log.directory, topic, self._layout.topics}
        self._touched[segment.path] = segment
        fd = self._descriptor(segment.path, create=created)
        position = segment.plan(head.length, after)
        self._disk.write(fd, [entry.data], position)
        segment.size = segment.planned
        segment.next_offset = after
        segment.max_timestamp_us = max(segment.max_timestamp_us, head.max_timestamp_us)
        segment.index = None
        log.end = after
        apply_fold(
            self._catalog,
            Appended(entry.topic_id, entry.partition, after, head.max_timestamp_us),
        )

    def _descriptor(self, path: str, *, create: bool = False) -> int:
        fd = self._open.get(path)
        if fd is None:
            if len(self._open) >= self._options.open_files_max:
                self._settle()
            fd = self._open[path] = self._disk.open(path, create=create)
        return fd

    def _settle(self) -> None:
        """Syncs and closes what is open."""
        for path in list(self._open):
            fd = self._open.pop(path)
            try:
                self._disk.sync(fd)
            finally:
                self._disk.close(fd)

    def cut(self) -> None:
        """Cuts what lies beyond the end of the segments, and syncs what was touched.

        The indexes of touched segments go: they may describe a life that was cut short.
        """
        for path, segment in self._touched.items():
            fd = self._descriptor(path)
            if self._disk.size(fd) > segment.size:
                self._disk.truncate(fd, segment.size)
            self._disk.unlink(segment.index_path)
        self._settle()
        for directory in sorted(self._directories, reverse=True):
            self._disk.sync_directory(directory)

    def write(self, image: CatalogImage, replay: Replay) -> CheckpointState:
        """Writes the catalog of the result, then removes what it does not name."""
        rows = {}
        for log in self._table.logs.values():
            log.trimmed(log.log_start)
            rows[log_key(log)] = log_row(log)
        write_catalog(
            self._disk,
            self._layout,
            CatalogImage(
                replay.sequence,
                replay.group,
                replay.incarnation + 1,
                False,
                self._catalog.to_json(),
                list(rows.values()),
            ),
        )
        older = [s for s in catalog_sequences(self._disk, self._layout) if s < replay.sequence]
        previous = image.sequence if image.sequence < replay.sequence else max(older, default=0)
        for sequence in catalog_sequences(self._disk, self._layout):
            if sequence not in (previous, replay.sequence):
                self._disk.unlink(f"{self._layout.catalog}/{sequence}.json")
        retired = self._retired(previous, replay.sequence)
        self._remove_unnamed(retired)
        return CheckpointState(
            self._catalog,
            rows,
            sequence=replay.sequence,
            previous_sequence=previous,
            number=(replay.incarnation + 1) * NUMBERS,
            retired=retired,
        )

    def _retired(self, previous: int, sequence: int) -> list[Retired]:
        """What compaction replaced since the previous catalog, which still names it."""
        try:
            image = read_catalog(self._disk, self._layout, previous)
        except (OSError, CatalogError, KeyError, TypeError, ValueError):
            return []
        retired = []
        for row in image.logs:
            log = self._table.logs.get((row.topic_id, row.partition))
            if log is None or log.born != row.born:
                continue
            named = {(segment.base, segment.number) for segment in log.segments}
            paths = [
                f"{log.directory}/{segment_name(segment.base, segment.number)}"
                for segment in row.segments
                if (segment.base, segment.number) not in named
                and segment.next_offset > log.log_start
            ]
            if paths:
                retired.append(Retired(sequence, 0, log.directory, paths))
        return retired

    def _remove_unnamed(self, retired: list[Retired]) -> None:
        """Removes files below topics/ that no catalog names."""
        disk, layout = self._disk, self._layout
        named: dict[str, set[str]] = {}
        for log in self._table.logs.values():
            named[log.directory] = _names([segment.path for segment in log.segments])
        for found in retired:
            named[found.directory] |= _names(found.paths)
        for topic in disk.list(layout.topics):
            for partition in disk.list(f"{layout.topics}/{topic}"):
                directory = f"{layout.topics}/{topic}/{partition}"
                keep = named.get(directory, set())
                for name in disk.list(directory):
                    if name not in keep:
                        disk.unlink(f"{directory}/{name}")
                if directory not in named:
                    disk.remove_directory(directory)
            disk.remove_directory(f"{layout.topics}/{topic}")
