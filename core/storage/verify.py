"""Checking a whole data directory: every byte of it that means something, with no server's help.

Looked at are the catalogs and what they say of each other's files, every batch of every segment and
its index (`storage.verify_segment`), the journal groups that a start would replay or that the
catalog before the newest needs (`storage.verify_journal`), and `visible`.

It takes no lock and changes nothing, so it runs beside a live server too: what that server removes
or appends meanwhile is not damage, and the check begins again when a new catalog took the place of
the one that it went by.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dragoman.core.batch import place_seed
from dragoman.core.catalog import Catalog
from dragoman.core.storage.catalog_file import CatalogError, catalog_sequences, read_catalog
from dragoman.core.storage.disk import RealDisk, read_file
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.segment import segment_name
from dragoman.core.storage.verify_journal import JournalCheck
from dragoman.core.storage.verify_segment import SegmentCheck
from dragoman.core.storage.visible import check_visible

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from dragoman.core.catalog import PartitionState
    from dragoman.core.column import Buffer
    from dragoman.core.storage.catalog_file import CatalogImage, LogRow, SegmentRow
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.visible import Ends, Place

ATTEMPTS = 5
"""How often a live directory may change its catalog before the check gives up."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One place that does not verify.

    Attributes:
        path, position: The file, and the byte where the damage begins.
        topic, partition, first, last: The records that are lost, `last` inclusive; topic is empty
            where no record is.
    """

    path: str
    position: int
    reason: str
    topic: str = ""
    partition: int = -1
    first: int = -1
    last: int = -1

    def __str__(self) -> str:
        where = f"{self.path} at byte {self.position}: {self.reason}"
        if not self.topic:
            return where
        return f"{self.topic}/{self.partition} offsets {self.first} to {self.last}: {where}"


@dataclass(slots=True)
class Report:
    """What a check found.

    Attributes:
        sequence: Of the catalog that it went by.
        clean: The last stop was an orderly one.
        indexes: Index files that were compared with their segments.
        journal_groups: Groups after that catalog, which a start would replay.
        damage: What is lost, or must be made again.
        remarks: What a crash may leave and a start puts in order.
    """

    directory: str
    sequence: int = 0
    clean: bool = False
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    indexes: int = 0
    journal_groups: int = 0
    damage: list[Damage] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def verify(
    directory: str | os.PathLike[str],
    *,
    disk: Disk | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Checks everything in a data directory.

    Args:
        progress: Told the bytes that are checked, and those that will be.

    Raises:
        StorageError: It is no data directory, or of a format that this version does not know.
        OSError: The disk failed.
    """
    disk = RealDisk() if disk is None else disk
    layout = Layout(str(directory))
    layout.check_format(disk, reading=True)
    report = Report(layout.root)
    for _ in range(ATTEMPTS):
        check = _Check(disk, layout, progress)
        report = check.report
        check.run()
        newest = max(catalog_sequences(disk, layout), default=0)
        if newest == report.sequence or (report.sequence and not report.damage):
            break
    return report


class _Check:
    """One look at a directory."""

    def __init__(self, disk: Disk, layout: Layout, progress: Callable[[int, int], None]) -> None:
        self._disk = disk
        self._layout = layout
        self._progress = progress
        self._done = self._total = 0
        self._doubted: list[tuple[str, SegmentCheck, int]] = []
        self.report = Report(layout.root)

    def run(self) -> None:
        """Looks at everything; first at what must not be newer than the rest."""
        report = self.report
        visible = self._visible()
        images = self._catalogs()
        if not images:
            if not report.damage and self._disk.list(self._layout.topics):
                self._name(self._layout.catalog, 0, "there are segments but no catalog")
            return
        image = images[0]
        report.sequence, report.clean = image.sequence, image.clean
        catalog = Catalog.from_json(image.state)
        journal = JournalCheck(self._disk, self._layout, self._advance)
        rows = [(row, *self._live(catalog, row, image.sequence)) for row in image.logs]
        self._total = sum([s.size for _, _, segments in rows for s in segments])
        if not image.clean:
            self._total += journal.size()
        for row, state, segments in rows:
            if state is not None:
                self._check_log(catalog.topics[row.topic_id].name, row, segments)
        self._look_again()
        if not image.clean:
            report.journal_groups, catalog = journal.run(images)
            report.damage += [Damage(*found) for found in journal.damage]
        self._check_visible(visible, catalog)
        self._look_for_strangers(images)

    def _name(self, path: str, position: int, reason: str) -> None:
        self.report.damage.append(Damage(path, position, reason))

    def _advance(self, count: int) -> None:
        self._done += count
        self._progress(min(self._done, self._total), self._total)

    # ------------------------------------------------------------ catalogs

    def _catalogs(self) -> list[CatalogImage]:
        """Those that verify, the newest first; the others are damage."""
        images = []
        for sequence in catalog_sequences(self._disk, self._layout):
            try:
                image = read_catalog(self._disk, self._layout, sequence)
                Catalog.from_json(image.state)
            except FileNotFoundError:
                continue
            except (CatalogError, KeyError, TypeError, ValueError) as error:
                self._name(f"{self._layout.catalog}/{sequence}.json", 0, str(error))
                continue
            images.append(image)
        return images

    def _live(
        self, catalog: Catalog, row: LogRow, sequence: int
    ) -> tuple[PartitionState | None, list[SegmentRow]]:
        """A partition's state and the segments that hold something of it; names what does not
        fit."""
        path = f"{self._layout.catalog}/{sequence}.json"
        state = catalog.partition(row.topic_id, row.partition)
        if state is None:
            place = f"partition {row.partition} of topic {row.topic_id}"
            self._name(path, 0, f"it names files of {place}, which does not exist")
            return None, []
        segments = [s for s in row.segments if s.next_offset > state.log_start_offset]
        name = catalog.topics[row.topic_id].name
        expected = min([s.base for s in segments[:1]], default=state.next_offset)
        start = state.log_start_offset
        if expected > start and not (segments and segments[0].number):
            self._lost(path, name, row.partition, start, expected - 1)
        after_compaction = False
        for segment in segments:
            compacted = after_compaction or segment.number > 0
            if segment.base < expected or (segment.base > expected and not compacted):
                self._lost(path, name, row.partition, expected, segment.base - 1)
            expected = segment.next_offset
            after_compaction = segment.number > 0
        if expected < state.next_offset:
            self._lost(path, name, row.partition, expected, state.next_offset - 1)
        return state, segments

    def _lost(self, path: str, topic: str, partition: int, first: int, last: int) -> None:
        reason = "it names no file that holds these" if last >= first else "its files overlap"
        self.report.damage.append(Damage(path, 0, reason, topic, partition, first, last))

    # ------------------------------------------------------------ segments

    def _check_log(self, topic: str, row: LogRow, segments: list[SegmentRow]) -> None:
        directory = self._layout.partition_directory(row.topic_id, row.partition, row.born)
        for segment in segments:
            path = f"{directory}/{segment_name(segment.base, segment.number)}"
            self._check_segment(path, topic, row, segment)

    def _check_segment(self, path: str, topic: str, row: LogRow, segment: SegmentRow) -> None:
        disk, report = self._disk, self.report
        report.segments += 1

        def damaged(position: int, reason: str, first: int, last: int) -> None:
            report.damage.append(Damage(path, position, reason, topic, row.partition, first, last))

        try:
            fd = disk.open(path, writable=False)
        except FileNotFoundError:
            damaged(0, "the file is missing", segment.base, segment.next_offset - 1)
            return

        def read(length: int, position: int) -> Buffer:
            return disk.read(fd, length, position)

        try:
            size = disk.size(fd)
            report.bytes += min(size, segment.size)
            check = SegmentCheck(
                read,
                segment,
                size,
                row.topic_id,
                row.partition,
                damaged=damaged,
                progressed=self._advance,
            )
            check.run()
        finally:
            disk.close(fd)
        if report.clean and size > segment.size:
            report.remarks.append(f"{path} has {size} bytes and {segment.size} were recorded")
        report.batches += check.batches
        report.records += check.records
        seed = place_seed(row.topic_id, row.partition, segment.base)
        if check.sound and self._index_problem(path, check, seed):
            self._doubted.append((path, check, seed))

    # ------------------------------------------------------------ indexes

    def _index_problem(self, path: str, check: SegmentCheck, seed: int) -> Damage | None:
        """What is wrong with the index at rest of a sound segment; it may be missing."""
        path = path.removesuffix(".log") + ".index"
        try:
            data = read_file(self._disk, path)
        except FileNotFoundError:
            return None
        expected = check.index.to_bytes(seed)
        if data == expected or (not self.report.clean and check.is_beginning_of(data, seed)):
            self.report.indexes += 1
            return None
        differs = [at for at, (a, b) in enumerate(zip(data, expected, strict=False)) if a != b]
        position = min(differs[:1], default=min(len(data), len(expected)))
        return Damage(path, position, "the index is not that of its segment; reads make it again")

    def _look_again(self) -> None:
        """A live server may have been writing an index just then, and a crash may leave half of
        one, because it is never synced."""
        for path, check, seed in self._doubted:
            damage = self._index_problem(path, check, seed)
            if damage is not None and self.report.clean:
                self.report.damage.append(damage)
            elif damage is not None:
                self.report.remarks.append(f"{damage}, and a start removes it")

    # ------------------------------------------------------------ the rest

    def _visible(self) -> dict[Place, Ends] | None:
        """What `visible` says; None where it does not verify."""
        try:
            return check_visible(self._disk, self._layout)
        except FileNotFoundError:
            return {}
        except CatalogError:
            return None

    def _check_visible(self, visible: dict[Place, Ends] | None, catalog: Catalog) -> None:
        """After a crash it may be anything, because it is never synced; a start writes it anew."""
        path = f"{self._layout.root}/visible"
        problems = []
        if visible is None:
            problems.append("it does not verify, so that readers outside the server see nothing")
        else:
            for place, (start, watermark) in sorted(visible.items()):
                topic, partition = place
                state = catalog.partition(topic, partition)
                end = watermark if state is None else state.next_offset
                if not start <= watermark <= end:
                    problems.append(
                        f"partition {partition} of topic {topic} from {start} to {watermark} is "
                        f"shown, its log ends at {end}"
                    )
        for problem in problems:
            if self.report.clean:
                self._name(path, 0, problem)
            else:
                self.report.remarks.append(f"{path}: {problem}; a start writes it anew")

    def _look_for_strangers(self, images: list[CatalogImage]) -> None:
        """After an orderly stop every file below `topics` is named by a catalog."""
        if not self.report.clean:
            return
        disk, layout = self._disk, self._layout
        named = {
            f"{layout.partition_directory(row.topic_id, row.partition, row.born)}/"
            f"{segment_name(segment.base, segment.number)}"
            for image in images
            for row in image.logs
            for segment in row.segments
        }
        for topic in disk.list(layout.topics):
            for partition in disk.list(f"{layout.topics}/{topic}"):
                directory = f"{layout.topics}/{topic}/{partition}"
                for name in disk.list(directory):
                    path = f"{directory}/{name}"
                    if path.removesuffix(".index").removesuffix(".log") + ".log" not in named:
                        self.report.remarks.append(f"{path} is named by no catalog")
