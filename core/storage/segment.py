"""One segment file: whole batches at rest, back to back, named by the offset of its first.

::

    segment := batch*                      (`core.batch`; contiguous ranges of offsets)
    index   := u32 magic 0x58475244 ("DRGX"), u32 CRC32C of bytes 8.., seeded with the place of the
               segment's first batch; u64 bytes of the segment that it covers, u64 n,
               n x i64 base offset, n x i64 position, n x i64 newest timestamp before the next entry

An index has an entry for the first batch and then for the first one at least 4 KiB after the last
entry. It is a cache: where it is missing or does not fit, it is made again from the batches.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from crc32c import crc32c

from dragoman.core.batch import place_seed
from dragoman.core.storage.disk import read_file
from dragoman.core.storage.walk import Intact, walk

if TYPE_CHECKING:
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.walk import Read

INDEX_STEP_BYTES = 4096
_INDEX_MAGIC = 0x58475244
_INDEX_HEADER = Struct("<IIQQ")
_INSTALLING = Lock()


class Mark(NamedTuple):
    """Where a batch stands in its segment."""

    base_offset: int
    position: int
    timestamp_us: int
    next_offset: int
    length: int


class SparseIndex:
    """Some of a segment's batches: offset, position and time, all ascending.

    Attributes:
        covered: Bytes of the segment that it knows.
    """

    __slots__ = ("bases", "covered", "positions", "times")

    def __init__(self) -> None:
        self.bases = array("q")
        self.positions = array("q")
        self.times = array("q")
        self.covered = 0

    def add(self, mark: Mark) -> None:
        """Takes the next batch; one that is known already is passed over."""
        if mark.position < self.covered:
            return
        if not self.positions or mark.position - self.positions[-1] >= INDEX_STEP_BYTES:
            self.times.append(mark.timestamp_us)
            self.positions.append(mark.position)
            self.bases.append(mark.base_offset)
        elif mark.timestamp_us > self.times[-1]:
            self.times[-1] = mark.timestamp_us
        self.covered = mark.position + mark.length

    def locate(self, offset: int) -> tuple[int, int]:
        """(position, base offset) of the last entry at or before `offset`."""
        at = max(bisect_right(self.bases, offset) - 1, 0)
        return self.positions[at], self.bases[at]

    def locate_time(self, timestamp_us: int) -> tuple[int, int] | None:
        """(position, base offset) from where to look for a batch at or after this time."""
        at = bisect_left(self.times, timestamp_us)
        if at == len(self.times):
            return None
        return self.positions[at], self.bases[at]

    def to_bytes(self, seed: int) -> bytes:
        """The index at rest."""
        count = len(self.bases)
        columns = (self.bases, self.positions, self.times)
        body = b"".join([column[:count].tobytes() for column in columns])
        tail = _INDEX_HEADER.pack(0, 0, self.covered, count)[8:] + body
        return _INDEX_HEADER.pack(_INDEX_MAGIC, crc32c(tail, seed), 0, 0)[:8] + tail

    @classmethod
    def from_bytes(cls, data: bytes, seed: int, covered: int | None = None) -> SparseIndex | None:
        """Reads an index, where asked for one that covers exactly so many bytes; None where this is
        not one."""
        if len(data) < _INDEX_HEADER.size:
            return None
        magic, crc, found, count = _INDEX_HEADER.unpack_from(data)
        if magic != _INDEX_MAGIC or crc32c(data[8:], seed) != crc:
            return None
        if covered is not None and covered != found:
            return None
        if len(data) != _INDEX_HEADER.size + 24 * count or not count:
            return None
        index = cls()
        at = _INDEX_HEADER.size
        for column in (index.bases, index.positions, index.times):
            column.frombytes(data[at : at + 8 * count])
            at += 8 * count
        index.covered = found
        return index


class Segment:
    """One file, as the loop knows it.

    Attributes:
        size: Bytes that are written; `planned` counts those handed to a write as well.
        next_offset: The offset after its last written batch; `planned_next` as above.
        max_timestamp_us: The newest append time in it.
        sealed: No batch is added any more.
        number: Of the pass of compaction that wrote it; 0 for none.
        is_clean: It holds one record a key at most, together with the clean ones before it.
        tombstone_us: The newest tombstone in it, where it is clean; 0 for none.
        replaced: A pass of compaction wrote others in its place.
        unfit: It could not be read whole, so it is not compacted.
        index: None until a read needs it.
        backlog: Marks that arrived while a thread makes the index.
    """

    __slots__ = (
        "backlog",
        "base",
        "index",
        "is_clean",
        "max_timestamp_us",
        "next_offset",
        "number",
        "path",
        "planned",
        "planned_next",
        "replaced",
        "sealed",
        "size",
        "tombstone_us",
        "unfit",
    )

    def __init__(
        self,
        path: str,
        base: int,
        *,
        size: int = 0,
        next_offset: int = -1,
        max_timestamp_us: int = 0,
        number: int = 0,
    ) -> None:
        self.path = path
        self.base = base
        self.size = self.planned = size
        self.next_offset = self.planned_next = base if next_offset < 0 else next_offset
        self.max_timestamp_us = max_timestamp_us
        self.sealed = number > 0
        self.number = number
        self.is_clean = False
        self.tombstone_us = 0
        self.replaced = False
        self.unfit = False
        self.index: SparseIndex | None = SparseIndex() if size == 0 else None
        self.backlog: list[Mark] | None = None

    @property
    def index_path(self) -> str:
        """Where its index rests once it is closed."""
        return self.path.removesuffix(".log") + ".index"

    def plan(self, length: int, next_offset: int) -> int:
        """Takes room for a batch; returns its position."""
        position = self.planned
        self.planned += length
        self.planned_next = next_offset
        return position

    def install(self, index: SparseIndex) -> None:
        """Puts an index in place that a thread made, unless another one was quicker."""
        with _INSTALLING:
            if self.index is None:
                self.index = index

    def wrote(self, mark: Mark) -> None:
        """A planned batch is in the file."""
        self.size = mark.position + mark.length
        self.next_offset = mark.next_offset
        self.max_timestamp_us = max(self.max_timestamp_us, mark.timestamp_us)
        index = self.index
        if self.backlog is None:
            if index is not None:
                index.add(mark)
            return
        self.backlog.append(mark)
        if index is not None:
            for late in self.backlog:
                index.add(late)
            self.backlog = None


def segment_name(base: int, number: int = 0) -> str:
    """The file name of the segment that begins at this offset, as this pass of compaction wrote
    it."""
    return f"{base:020d}-{number}.log" if number else f"{base:020d}.log"


def load_index(disk: Disk, segment: Segment, topic_id: int, partition: int) -> SparseIndex | None:
    """The index at rest, where it fits the segment."""
    try:
        data = read_file(disk, segment.index_path)
    except OSError:
        return None
    seed = place_seed(topic_id, partition, segment.base)
    return SparseIndex.from_bytes(data, seed, segment.size)


def build_index(read: Read, base: int, size: int, topic_id: int, partition: int) -> SparseIndex:
    """Makes the index of a segment from its batches; damaged stretches have no entries."""
    index = SparseIndex()
    for piece in walk(read, size, topic_id, partition, offset=base):
        if isinstance(piece, Intact):
            head = piece.head
            index.add(
                Mark(
                    head.base_offset,
                    piece.position,
                    head.max_timestamp_us,
                    head.base_offset + head.last_offset_delta + 1,
                    head.length,
                )
            )
    index.covered = size
    return index
