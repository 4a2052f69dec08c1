"""Reading a data directory beside its server: what Spark, backups and exports go by.

A reader takes no lock. It sees what `visible` allows and not a record more; it finds files by the
newest catalog, and files that were begun since by their names. When the server removed a file under
it, it looks at the catalog again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.batch import decode_batch
from dragoman.core.catalog import Catalog
from dragoman.core.select import select
from dragoman.core.storage.disk import RealDisk
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.recovery import newest_catalog
from dragoman.core.storage.segment import segment_name
from dragoman.core.storage.visible import read_visible
from dragoman.core.storage.walk import Broken, walk
from dragoman.core.store import StoreDamage

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from dragoman.core.batch import RecordBatch
    from dragoman.core.catalog import TopicState
    from dragoman.core.column import Buffer
    from dragoman.core.storage.catalog_file import LogRow
    from dragoman.core.storage.disk import Disk


class OutsidePartition(NamedTuple):
    """What may be read of one partition: from `log_start` up to `high_watermark`, exclusive."""

    topic_id: int
    partition: int
    log_start: int
    high_watermark: int


class _File(NamedTuple):
    """A segment file; `next_offset` and `size` are what the catalog knows of it."""

    base: int
    next_offset: int
    size: int
    name: str


class OutsideLog:
    """A data directory as it stood when `refresh` was last called; made, it is fresh.

    Raises:
        StorageError: It is no data directory, of another format, or has no catalog that verifies.
    """

    def __init__(self, directory: str | os.PathLike[str], *, disk: Disk | None = None) -> None:
        self._disk: Disk = RealDisk() if disk is None else disk
        self._layout = Layout(str(directory))
        self._layout.check_format(self._disk, reading=True)
        self.refresh()

    def refresh(self) -> None:
        """Looks at the catalog and at what is visible again."""
        image, _ = newest_catalog(self._disk, self._layout)
        self.catalog = Catalog.from_json(image.state)
        self._rows = {(row.topic_id, row.partition): row for row in image.logs}
        self._visible = read_visible(self._disk, self._layout)

    def topics(self) -> list[TopicState]:
        """The topics that the newest catalog knows, by id."""
        return [self.catalog.topics[topic_id] for topic_id in sorted(self.catalog.topics)]

    def partitions(self, topic_id: int) -> list[OutsidePartition]:
        """The partitions of a topic with what may be read of each."""
        return [
            OutsidePartition(topic, partition, *self._visible.get((topic, partition), (0, 0)))
            for topic, partition in sorted(self._rows)
            if topic == topic_id
        ]

    def read(
        self, topic_id: int, partition: int, offset: int, *, next_offset: int | None = None
    ) -> Iterator[RecordBatch]:
        """Yields the batches from the one that holds `offset` on.

        Args:
            next_offset: Where to stop, exclusive and never beyond the high watermark. The caller
                cuts the first and the last batch, which may reach further.

        Raises:
            StoreDamage: A batch below the watermark is damaged.
        """
        place = (topic_id, partition)
        start, end = self._visible.get(place, (0, 0))
        end = end if next_offset is None else min(end, next_offset)
        first = offset = max(offset, start)
        while offset < end:
            before = offset
            for batch in self._read_segment(topic_id, partition, offset):
                if batch.base_offset >= end:
                    return
                at = batch.index_of(offset)
                if first < offset > batch.base_offset and at < batch.count:
                    # Compacted batches begin elsewhere than those that were read before them.
                    yield select(batch, range(at, batch.count), batch.next_offset)
                elif at < batch.count:
                    yield batch
                offset = batch.next_offset
            if offset == before:  # the segments are not there yet, or no longer
                known = self._rows.get(place)
                self.refresh()
                if self._rows.get(place) == known:
                    return
                offset = max(offset, self._visible.get(place, (0, 0))[0])

    def _files(self, row: LogRow, directory: str) -> list[_File]:
        """The files of a partition in order: those that the catalog names, and those begun since,
        which have no number because compaction writes only what is older."""
        files = [
            _File(s.base, s.next_offset, s.size, segment_name(s.base, s.number))
            for s in row.segments
        ]
        last = files[-1].base if files else -1
        stems = [name.removesuffix(".log") for name in self._disk.list(directory)]
        bases = sorted([int(stem) for stem in stems if stem.isdecimal()])
        return files + [_File(base, base, 0, segment_name(base)) for base in bases if base > last]

    def _read_segment(self, topic_id: int, partition: int, offset: int) -> Iterator[RecordBatch]:
        """The batches of the one segment that holds `offset`."""
        row = self._rows.get((topic_id, partition))
        if row is None:
            return
        directory = self._layout.partition_directory(topic_id, partition, row.born)
        files = self._files(row, directory)
        at = max([index for index, file in enumerate(files) if file.base <= offset], default=0)
        if at + 1 < len(files) and files[at].next_offset <= offset and files[at].size:
            at += 1
        if at == len(files):
            return
        base, _, recorded, name = files[at]
        path = f"{directory}/{name}"
        try:
            fd = self._disk.open(path, writable=False)
        except FileNotFoundError:
            return

        def read(length: int, position: int) -> Buffer:
            return self._disk.read(fd, length, position)

        try:
            size = self._disk.size(fd)
            for piece in walk(read, size, topic_id, partition, offset=base):
                if not isinstance(piece, Broken):
                    if piece.head.base_offset + piece.head.last_offset_delta >= offset:
                        yield decode_batch(piece.data, topic_id, partition)
                elif piece.position < recorded and (piece.last is None or piece.last >= offset):
                    visible_last = self._visible[topic_id, partition][1] - 1
                    last = visible_last if piece.last is None else piece.last
                    raise StoreDamage(piece.first, last, f"{path} at byte {piece.position}")
                elif piece.last is None:  # the server is writing there
                    return
        finally:
            self._disk.close(fd)
