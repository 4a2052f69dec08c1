"""Checking the journal: the groups that a start would replay, and those that a start would need
which had to go by the catalog before the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.batch import BatchError, decode_batch
from dragoman.core.catalog import Catalog
from dragoman.core.storage.group import BatchEntry, aligned, read_entries
from dragoman.core.storage.replay import plan_replay, scan_journal

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.storage.catalog_file import CatalogImage
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.group import GroupAt
    from dragoman.core.storage.layout import Layout
    from dragoman.core.storage.replay import Replay

Found = tuple[str, int, str, str, int, int, int]
"""The fields of a `storage.verify.Damage`."""
ATTEMPTS = 5
"""How often a journal is read that a live server writes."""


class JournalCheck:
    """One look at the journal.

    Args:
        progressed: Told how many bytes were checked since it was last told.

    Attributes:
        damage: What was found.
    """

    def __init__(self, disk: Disk, layout: Layout, progressed: Callable[[int], None]) -> None:
        self._disk = disk
        self._layout = layout
        self._progressed = progressed
        self.damage: list[Found] = []

    def size(self) -> int:
        """The bytes of all journal files."""
        scans = scan_journal(self._disk, self._layout, look_inside=False, writable=False)
        for scan in scans:
            self._disk.close(scan.fd)
        return sum([scan.size for scan in scans])

    def run(self, images: list[CatalogImage]) -> tuple[int, Catalog]:
        """Checks it; returns how many groups follow the newest catalog, and where they lead.

        Looks again where something is wrong: a live server may have overwritten what was read.

        Args:
            images: The catalogs that verify, the newest first.
        """
        count = 0
        catalog = Catalog()
        for attempt in range(ATTEMPTS):
            self.damage = []
            catalog = Catalog.from_json(images[0].state)
            count = self._look(images, catalog, is_first=not attempt)
            if not self.damage:
                break
        return count, catalog

    def _look(self, images: list[CatalogImage], catalog: Catalog, *, is_first: bool) -> int:
        scans = scan_journal(self._disk, self._layout, look_inside=True, writable=False)
        try:
            if is_first:
                self._progressed(sum([scan.size for scan in scans]))
            groups = [group for scan in scans for group in scan.groups]
            newest = images[0]
            replay = _replay(groups, newest)
            if replay.damage:
                self._name_after(replay, replay.damage)
            descriptors = {scan.number: scan.fd for scan in scans}
            for group in replay.groups:
                self._check_group(descriptors[group.file], group, catalog)
            if len(images) > 1:
                self._check_chain(groups, images[1], newest)
        finally:
            for scan in scans:
                self._disk.close(scan.fd)
        return len(replay.groups)

    def _check_chain(
        self, groups: list[GroupAt], previous: CatalogImage, newest: CatalogImage
    ) -> None:
        """Were the newest catalog lost, the one before it would have to lead to it."""
        replay = _replay(groups, previous)
        if replay.sequence < newest.sequence:
            self._name_after(
                replay,
                f"the journal from catalog {previous.sequence} on ends at sequence "
                f"{replay.sequence}, before catalog {newest.sequence}, which is whole",
            )

    def _name_after(self, replay: Replay, reason: str) -> None:
        """Names the place where the group should stand that was not found."""
        path, position = self._layout.journal, 0
        if replay.groups:
            last = replay.groups[-1]
            path = self._layout.journal_file(last.file)
            position = last.position + aligned(last.length)
        self.damage.append((path, position, reason, "", -1, -1, -1))

    def _check_group(self, fd: int, group: GroupAt, catalog: Catalog) -> None:
        """Its checksum is right; its entries must be too, and go on where the catalog ends."""
        path = self._layout.journal_file(group.file)
        try:
            for entry in read_entries(self._disk, fd, group):
                if isinstance(entry, BatchEntry):
                    self._check_batch(path, group, entry, catalog)
                else:
                    catalog.apply(entry.change)
        except (ValueError, KeyError, TypeError) as error:
            reason = f"the group cannot be replayed: {type(error).__name__}: {error}"
            self.damage.append((path, group.position, reason, "", -1, -1, -1))

    def _check_batch(self, path: str, group: GroupAt, entry: BatchEntry, catalog: Catalog) -> None:
        state = catalog.partition(entry.topic_id, entry.partition)
        if state is None:  # written to a topic that was dropped in the same group
            return
        topic = catalog.topics[entry.topic_id].name
        expected = state.next_offset
        try:
            batch = decode_batch(entry.data, entry.topic_id, entry.partition)
        except BatchError as error:
            place = topic, entry.partition, expected, expected
            self.damage.append((path, group.position, str(error), *place))
            return
        if batch.base_offset != expected:
            reason = f"offset {batch.base_offset} stands where {expected} belongs"
            place = topic, entry.partition, expected, max(expected, batch.base_offset - 1)
            self.damage.append((path, group.position, reason, *place))
        catalog.appended(
            topic_id=entry.topic_id,
            partition=entry.partition,
            next_offset=batch.next_offset,
            timestamp_us=batch.max_timestamp_us,
        )


def _replay(groups: list[GroupAt], image: CatalogImage) -> Replay:
    return plan_replay(
        groups, sequence=image.sequence, group=image.group, incarnation=image.incarnation
    )
