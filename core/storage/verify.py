"""Checking a whole data directory: every batch, catalog and journal group, with no server's help.

It takes no lock and changes nothing, so it runs beside a live server too: what that server removes
or appends meanwhile is not damage, and the check begins again when a new catalog took the place of
the one that it went by.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dragoman.core.batch import BatchError, decode_batch
from dragoman.core.catalog import Catalog
from dragoman.core.storage.catalog_file import CatalogError, catalog_sequences, read_catalog
from dragoman.core.storage.disk import RealDisk
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.replay import plan_replay, scan_journal
from dragoman.core.storage.segment import segment_name
from dragoman.core.storage.walk import Broken, Intact, walk

if TYPE_CHECKING:
    import os

    from dragoman.core.column import Buffer
    from dragoman.core.storage.catalog_file import CatalogImage, LogRow, SegmentRow
    from dragoman.core.storage.disk import Disk

ATTEMPTS = 5
"""How often a live directory may change its catalog before the check gives up."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One place that does not verify.

    Attributes:
        path, position: The file, and the byte where the damage begins.
        topic, partition, first, last: The records that are lost, `last` inclusive; topic is empty
            where it is not a segment.
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
        journal_groups: Groups after that catalog, which a start would replay.
    """

    directory: str
    sequence: int = 0
    clean: bool = False
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    journal_groups: int = 0
    damage: list[Damage] = field(default_factory=list)


def verify(directory: str | os.PathLike[str], *, disk: Disk | None = None) -> Report:
    """Checks everything in a data directory.

    Raises:
        StorageError: It is no data directory, or of a format that this version does not know.
        OSError: The disk failed.
    """
    disk = RealDisk() if disk is None else disk
    layout = Layout(str(directory))
    layout.check_format(disk, reading=True)
    report = Report(layout.root)
    for _ in range(ATTEMPTS):
        report = Report(layout.root)
        image = _catalog(disk, layout, report)
        if image is not None:
            _check_logs(disk, layout, image, report)
            _check_journal(disk, layout, image, report)
        newest = max(catalog_sequences(disk, layout), default=0)
        if newest == report.sequence or (image is not None and not report.damage):
            return report
    return report


def _catalog(disk: Disk, layout: Layout, report: Report) -> CatalogImage | None:
    """The newest catalog that verifies; those that do not are damage."""
    for sequence in catalog_sequences(disk, layout):
        path = f"{layout.catalog}/{sequence}.json"
        try:
            image = read_catalog(disk, layout, sequence)
        except FileNotFoundError:
            continue
        except (CatalogError, KeyError, TypeError, ValueError) as error:
            report.damage.append(Damage(path, 0, str(error)))
            continue
        report.sequence, report.clean = sequence, image.clean
        return image
    if not report.damage and disk.list(layout.topics):
        report.damage.append(Damage(layout.catalog, 0, "there are segments but no catalog"))
    return None


def _check_logs(disk: Disk, layout: Layout, image: CatalogImage, report: Report) -> None:
    catalog = Catalog.from_json(image.state)
    for row in image.logs:
        topic = catalog.topics[row.topic_id]
        directory = layout.partition_directory(row.topic_id, row.partition, row.born)
        start = topic.partitions[row.partition].log_start_offset
        for segment in row.segments:
            if segment[2] > start:
                _check_segment(disk, directory, topic.name, row, segment, report)


def _check_segment(
    disk: Disk, directory: str, topic: str, row: LogRow, segment: SegmentRow, report: Report
) -> None:
    base, recorded, next_offset = segment[:3]
    path = f"{directory}/{segment_name(base, segment.number)}"
    report.segments += 1

    def damaged(position: int, reason: str, first: int, last: int) -> None:
        report.damage.append(Damage(path, position, reason, topic, row.partition, first, last))

    try:
        fd = disk.open(path, writable=False)
    except FileNotFoundError:
        damaged(0, "the file is missing", base, next_offset - 1)
        return

    def read(length: int, position: int) -> Buffer:
        return disk.read(fd, length, position)

    try:
        size = disk.size(fd)
        report.bytes += size
        expected = base
        for piece in walk(read, size, row.topic_id, row.partition, offset=base):
            if piece.position >= recorded:
                break
            if isinstance(piece, Broken):
                last = next_offset - 1 if piece.last is None else piece.last
                damaged(piece.position, piece.reason, piece.first, last)
                expected = last + 1
                continue
            try:
                decode_batch(piece.data, row.topic_id, row.partition)
            except BatchError as error:
                damaged(piece.position, str(error), piece.head.base_offset, _last(piece))
            report.batches += 1
            report.records += piece.head.record_count
            expected = _last(piece) + 1
        if expected < next_offset:
            damaged(size, "the file is cut off", expected, next_offset - 1)
    finally:
        disk.close(fd)


def _last(piece: Intact) -> int:
    return piece.head.base_offset + piece.head.last_offset_delta


def _check_journal(disk: Disk, layout: Layout, image: CatalogImage, report: Report) -> None:
    """Looks for a durable group that is damaged; a live server's unfinished one is not."""
    if image.clean:
        return
    problem = ""
    for _ in range(ATTEMPTS):
        scans = scan_journal(disk, layout, look_inside=True, writable=False)
        for scan in scans:
            disk.close(scan.fd)
        replay = plan_replay(
            [group for scan in scans for group in scan.groups],
            sequence=image.sequence,
            group=image.group,
            incarnation=image.incarnation,
        )
        report.journal_groups = len(replay.groups)
        if not replay.damage:
            return
        problem = replay.damage
    report.damage.append(Damage(layout.journal, 0, problem))
