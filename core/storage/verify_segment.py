"""Checking one segment file and its index: every byte of every batch, and that they fit together.

The straight way costs about 2 us a batch beside its checksum. Where something is wrong it steps
aside for `storage.walk`, which finds out what, and where the next intact batch stands.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from crc32c import crc32c

from dragoman.core.batch import (
    FORMAT,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    BatchError,
    BatchHead,
    ColumnKind,
    open_columns,
)
from dragoman.core.storage.segment import INDEX_STEP_BYTES, SparseIndex
from dragoman.core.storage.walk import Broken, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.storage.catalog_file import SegmentRow
    from dragoman.core.storage.walk import Read

WINDOW_BYTES = 1024 * 1024
_COLUMN = Struct("<BBHI")
_INT32 = Struct("<i")
_PLACE = Struct("<QIQ")
_VALUE = int(ColumnKind.VALUE)
_VALUE_AT = HEADER_BYTES + _COLUMN.size


class SegmentCheck:
    """One pass over a segment as a catalog names it; `run` does it.

    Args:
        size: The file's length.
        damaged: Told of each damage: position, reason, first and last offset.
        progressed: Told how many bytes were checked since it was last told.

    Attributes:
        batches, records: That are intact.
        sound: Nothing was wrong, so that `index` is what an index of this segment holds.
    """

    def __init__(
        self,
        read: Read,
        row: SegmentRow,
        size: int,
        topic_id: int,
        partition: int,
        *,
        damaged: Callable[[int, str, int, int], None],
        progressed: Callable[[int], None],
    ) -> None:
        self._read = read
        self._row = row
        self._size = min(size, row.size)
        self._topic_id = topic_id
        self._partition = partition
        self._damaged = damaged
        self._progressed = progressed
        self._at = 0
        self._expected = row.base
        self._newest_us = -(1 << 63)
        self.batches = 0
        self.records = 0
        self.sound = True
        self.index = SparseIndex()

    def run(self) -> None:
        """Checks up to the recorded size; what a live server has written since is not looked at."""
        row = self._row
        while self._at < self._size:
            at = self._at
            if not self._go_straight():
                self._step_aside()
            self._progressed(self._at - at)
        if self._expected < row.next_offset:
            self._name(self._size, "the file is cut off", self._expected, row.next_offset - 1)
        elif self.sound:
            self._check_row()
        self.index.covered = row.size

    def is_beginning_of(self, data: bytes, seed: int) -> bool:
        """Whether this is an index of the segment as it is once it has grown further."""
        found = SparseIndex.from_bytes(data, seed)
        own = self.index
        return (
            found is not None
            and found.covered > own.covered
            and found.positions[: len(own.positions)] == own.positions
            and found.bases[: len(own.bases)] == own.bases
        )

    def _check_row(self) -> None:
        row = self._row
        if self._expected != row.next_offset:
            reason = f"it ends before offset {self._expected}, its catalog says {row.next_offset}"
            self._name(self._at, reason, row.base, self._expected - 1)
        elif self._newest_us != row.max_timestamp_us:
            reason = (
                f"its newest record is of {self._newest_us} us, its catalog says "
                f"{row.max_timestamp_us}"
            )
            self._name(0, reason, row.base, row.next_offset - 1)

    def _name(self, position: int, reason: str, first: int, last: int) -> None:
        self.sound = False
        self._damaged(position, reason, first, last)

    def _go_straight(self) -> bool:
        """Goes on through one window; False where it came to a batch that is not as it should
        be."""
        start = self._at
        left = self._size - start
        window = memoryview(self._read(min(WINDOW_BYTES, left), start))
        end = len(window)
        at = 0
        place = self._topic_id, self._partition
        is_fine = True
        while is_fine and at < end:
            if end - at < HEADER_BYTES:
                is_fine = end < left and at > 0
                break
            head = HEADER.unpack_from(window, at)
            magic, form, _, columns, length, crc, base, delta, count = head[:9]
            is_fine = (
                magic == MAGIC
                and form == FORMAT
                and base == self._expected
                and 0 < count <= delta + 1
                and columns > 0
                and length >= HEADER_BYTES + 8 * columns
                and length % 8 == 0
                and head[14] <= 3
                and at + length <= left
            )
            if not is_fine:
                break
            if at + length > end:
                if at:
                    break
                window = memoryview(self._read(length, start))
                end = len(window)
            data = window[at : at + length]
            seed = crc32c(_PLACE.pack(*place, base))
            is_fine = crc32c(data[16:], crc32c(data[:12], seed)) == crc
            if is_fine:
                self._take(start + at, head, data)
                at += length
        self._at = start + at
        return is_fine

    def _take(self, position: int, head: tuple[int, ...], data: memoryview) -> None:
        """An intact batch: whether it fits behind the one before, and what the index has of it."""
        base, delta, count, first_us, last_us = head[6:11]
        if not self._newest_us <= last_us >= first_us:
            self._name(
                position, "its time is before that of the records before", base, base + delta
            )
        if problem := _problem(head, data):
            self._name(position, problem, base, base + delta)
        if last_us > self._newest_us:
            self._newest_us = last_us
        index = self.index
        if not index.positions or position - index.positions[-1] >= INDEX_STEP_BYTES:
            index.times.append(last_us)
            index.positions.append(position)
            index.bases.append(base)
        elif last_us > index.times[-1]:
            index.times[-1] = last_us
        self.batches += 1
        self.records += count
        self._expected = base + delta + 1

    def _step_aside(self) -> None:
        """Names what is wrong, up to the next batch that is intact."""
        row = self._row
        for piece in walk(
            self._read,
            self._size,
            self._topic_id,
            self._partition,
            offset=self._expected,
            at=self._at,
        ):
            if not isinstance(piece, Broken):
                self._at, self._expected = piece.position, piece.head.base_offset
                return
            last = row.next_offset - 1 if piece.last is None else piece.last
            self._name(piece.position, piece.reason, piece.first, last)
            self._expected = max(self._expected, last + 1)
        self._at = self._size


def _problem(head: tuple[int, ...], data: memoryview) -> str:
    """What is wrong with the columns of a batch whose checksum is right, or ""."""
    count = head[8]
    if head[3] == 1:  # values alone, by far the most
        kind, flags, _, size = _COLUMN.unpack_from(data, HEADER_BYTES)
        blob_at = 4 * (count + 1) + 7 & ~7
        if kind == _VALUE and not flags and blob_at <= size == len(data) - _VALUE_AT:
            (first,) = _INT32.unpack_from(data, _VALUE_AT)
            (last,) = _INT32.unpack_from(data, _VALUE_AT + 4 * count)
            if first == 0 <= last <= size - blob_at:
                return ""
    try:
        batch = open_columns(BatchHead(*head[2:]), data)
    except BatchError as error:
        return str(error)
    if batch.timestamps is not None:
        times = list(batch.timestamps)
        if times != sorted(times) or times[-1] > head[10]:
            return "its timestamps are not in order"
    if batch.offset_deltas is not None:
        deltas = list(batch.offset_deltas)
        if deltas != sorted(set(deltas)) or deltas[-1] > head[7]:
            return "its offsets are not in order"
    return ""
