"""The columnar record batch, in memory and at rest. It knows nothing of files, topics or dialects.

At rest a batch is one run of bytes, all integers little-endian, every part 8-byte aligned::

    batch     := header directory column*
    header    := 72 bytes
         0  u32  magic 0x42475244 ("DRGB")
         4  u16  format, 1
         6  u8   origin (the dialect that wrote it, `Origin`)
         7  u8   number of columns
         8  u32  length of the whole batch, a multiple of 8
        12  u32  CRC32C of bytes 0..12 and 16..length, seeded with the CRC32C of the batch's place
        16  u64  base offset
        24  u32  last offset - base offset
        28  u32  number of records, never 0
        32  i64  base timestamp, microseconds since the Unix epoch
        40  i64  maximum timestamp
        48  u64  base sequence of an idempotent producer
        56  i64  producer epoch
        64  u32  log epoch
        68  u32  flags: 1 the base sequence counts, 2 the producer epoch counts; the rest zero
    directory := (u8 kind, u8 flags, u16 zero, u32 bytes)*, zero-padded to 8; kinds ascend
    column    := its buffers, each zero-padded to 8; `bytes` counts the padding
        variable-length (VALUE, KEY, HEADERS): (n+1) x int32, bitmap if flags & 1, blob
        PRODUCER, a dictionary of k names:      u32 k, u32 zero, (k+1) x int32, blob
        fixed width: ID 16 bytes; TIMESTAMP, PRODUCER_TIMESTAMP, EPOCH i64; SEQUENCE u64;
                     PRODUCER_INDEX, OFFSET_DELTA u32

    place     := u64 topic id, u32 partition, u64 base offset

A column that is missing is constant or derivable: without TIMESTAMP every record has the base
timestamp, without SEQUENCE record i has base sequence + i, without OFFSET_DELTA record i has base
offset + i, without PRODUCER_INDEX every record has the first producer. VALUE is always there. The
seed makes a batch that was moved to another place or file fail its check; zeros never decode as a
batch.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from crc32c import crc32c

from dragoman.core.column import Buffer, Int32s, Int64s, VarColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.byteorder != "little":  # pragma: no cover
    raise ImportError(
        "dragoman stores columns as the machine holds them and needs a little-endian one"
    )

MAGIC = 0x42475244
FORMAT = 1
HEADER = Struct("<IHBBIIQIIqqQqII")
HEADER_BYTES = HEADER.size
_TAIL = Struct("<QIIqqQqII")
_FRONT = Struct("<IHBBI")
_CRC = Struct("<I")
_ENTRY = Struct("<BBHI")
_PLACE = Struct("<QIQ")
_PADDING = tuple(bytes(count) for count in range(8))
_NULLS = 1
_HAS_SEQUENCE = 1
_HAS_EPOCH = 2

BATCH_BYTES_MAX = 32 * 1024 * 1024
"""The largest batch at rest but for a single larger record (STORAGE "The batch")."""


class Origin(IntEnum):
    """The dialect that wrote a batch; a number at rest, so entries are only ever added."""

    NONE = 0
    CURSUS = 1
    V1 = 2
    IGGY = 3
    RUSTLOG = 4
    JSON = 5
    FOREIGN = 255
    """A dialect that was registered from outside this package."""


class ColumnKind(IntEnum):
    """What a column at rest holds."""

    VALUE = 1
    KEY = 2
    HEADERS = 3
    ID = 4
    TIMESTAMP = 5
    PRODUCER_TIMESTAMP = 6
    SEQUENCE = 7
    EPOCH = 8
    PRODUCER = 9
    PRODUCER_INDEX = 10
    OFFSET_DELTA = 11


_VALUE, _KEY, _HEADERS, _ID, _TIMESTAMP, _PRODUCER_TIMESTAMP = map(int, list(ColumnKind)[:6])
_SEQUENCE, _EPOCH, _PRODUCER, _PRODUCER_INDEX, _OFFSET_DELTA = map(int, list(ColumnKind)[6:])


class BatchError(ValueError):
    """The bytes are not an intact batch of this place."""


class Record(NamedTuple):
    """One record as a row, for people, tests and slow paths.

    Attributes:
        headers: The bytes at rest of its headers (`core.header`), or None.
        id: 16 bytes, or None where the dialect has no record ids.
        sequence, epoch: Of an idempotent producer, else None.
    """

    offset: int
    timestamp_us: int
    value: bytes | None
    key: bytes | None
    headers: bytes | None
    id: bytes | None
    producer: bytes | None
    epoch: int | None
    sequence: int | None


class RecordBatch:
    """Records of one partition, held by column.

    A codec builds one with a count and columns; the engine assigns offsets, timestamps and the log
    epoch.

    Attributes:
        count: Number of records, at least 1.
        values, keys, headers: Columns of `count` entries; keys and headers None where no record has
            any.
        ids: 16 bytes a record, joined; or None.
        timestamps: int64 microseconds a record, or None where all equal `base_timestamp_us`.
        producer_timestamps: The producer's own int64 microseconds, or None.
        producers: The distinct producer names; empty where the records have none.
        producer_index: One index into `producers` a record, or None where all have the first.
        producer_epoch, epochs: The epoch of all records, or one int64 a record, or neither.
        base_sequence, sequences: The sequence of the first record, or one uint64 a record, or
            neither.
        offset_deltas: Offset - base offset a record, or None where they are 0, 1, 2, ...
        renderings: What codecs keep of this batch, by dialect; see `codecs.rendering`.
    """

    __slots__ = (
        "base_offset",
        "base_sequence",
        "base_timestamp_us",
        "count",
        "epochs",
        "headers",
        "ids",
        "keys",
        "last_offset_delta",
        "log_epoch",
        "max_timestamp_us",
        "offset_deltas",
        "origin",
        "producer_epoch",
        "producer_index",
        "producer_timestamps",
        "producers",
        "renderings",
        "sequences",
        "timestamps",
        "values",
    )

    def __init__(
        self,
        count: int,
        values: VarColumn,
        *,
        origin: int,
        keys: VarColumn | None = None,
        headers: VarColumn | None = None,
        ids: Buffer | None = None,
        producers: tuple[bytes, ...] = (),
        producer_index: Int32s | None = None,
        producer_epoch: int | None = None,
        epochs: Int64s | None = None,
        base_sequence: int | None = None,
        sequences: Int64s | None = None,
        producer_timestamps: Int64s | None = None,
    ) -> None:
        self.count = count
        self.values = values
        self.keys = keys
        self.headers = headers
        self.ids = ids
        self.timestamps: Int64s | None = None
        self.producer_timestamps = producer_timestamps
        self.producers = producers
        self.producer_index = producer_index
        self.producer_epoch = producer_epoch
        self.epochs = epochs
        self.base_sequence = base_sequence
        self.sequences = sequences
        self.offset_deltas: Int32s | None = None
        self.last_offset_delta = count - 1
        self.base_offset = -1
        self.base_timestamp_us = 0
        self.max_timestamp_us = 0
        self.log_epoch = 0
        self.origin = origin
        self.renderings: dict[str, Any] | None = None

    @property
    def next_offset(self) -> int:
        """The offset after the last record's."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def nbytes(self) -> int:
        """The bytes that the columns hold, for budgets; the batch at rest is a little larger."""
        total = HEADER_BYTES + len(self.values.blob) + 4 * self.count
        if self.keys is not None:
            total += len(self.keys.blob) + 4 * self.count
        if self.headers is not None:
            total += len(self.headers.blob) + 4 * self.count
        if self.ids is not None:
            total += len(self.ids)
        for column in (self.timestamps, self.producer_timestamps, self.sequences, self.epochs):
            if column is not None:
                total += 8 * self.count
        return total

    def place(self, *, base_offset: int, timestamp_us: int, log_epoch: int) -> None:
        """Assigns what the engine decides: the first offset and the append time of every record."""
        self.base_offset = base_offset
        self.base_timestamp_us = self.max_timestamp_us = timestamp_us
        self.log_epoch = log_epoch

    def offset_at(self, index: int) -> int:
        """The offset of record `index`."""
        deltas = self.offset_deltas
        return self.base_offset + (index if deltas is None else deltas[index])

    def index_of(self, offset: int) -> int:
        """The index of the first record at or after `offset`; `count` where there is none."""
        delta = offset - self.base_offset
        deltas = self.offset_deltas
        if deltas is None:
            return min(max(delta, 0), self.count)
        return bisect_left(deltas, delta)

    def timestamp_at(self, index: int) -> int:
        """The append time of record `index` in microseconds."""
        return self.base_timestamp_us if self.timestamps is None else int(self.timestamps[index])

    def producer_at(self, index: int) -> bytes | None:
        """The producer of record `index`, or None."""
        if not self.producers:
            return None
        return self.producers[0 if self.producer_index is None else self.producer_index[index]]

    def epoch_at(self, index: int) -> int | None:
        """The producer epoch of record `index`, or None."""
        return self.producer_epoch if self.epochs is None else int(self.epochs[index])

    def sequence_at(self, index: int) -> int | None:
        """The producer's sequence of record `index`, or None."""
        if self.sequences is not None:
            return int(self.sequences[index])
        return None if self.base_sequence is None else self.base_sequence + index

    def id_at(self, index: int) -> bytes | None:
        """The 16-byte id of record `index`, or None."""
        return None if self.ids is None else bytes(self.ids[16 * index : 16 * index + 16])

    def record(self, index: int) -> Record:
        """Record `index` as a row."""
        return Record(
            offset=self.offset_at(index),
            timestamp_us=self.timestamp_at(index),
            value=self.values[index],
            key=None if self.keys is None else self.keys[index],
            headers=None if self.headers is None else self.headers[index],
            id=self.id_at(index),
            producer=self.producer_at(index),
            epoch=self.epoch_at(index),
            sequence=self.sequence_at(index),
        )

    def records(self, first: int = 0, last: int | None = None) -> Iterator[Record]:
        """Yields records `first` to `last` (exclusive) as rows."""
        for index in range(first, self.count if last is None else last):
            yield self.record(index)


def _padded(parts: list[Buffer], data: Buffer, size: int) -> int:
    """Appends data and its padding to 8; returns both sizes together."""
    parts.append(data)
    if gap := -size & 7:
        parts.append(_PADDING[gap])
        return size + gap
    return size


def _put_variable(parts: list[Buffer], column: VarColumn) -> int:
    offsets = column.offsets
    total = _padded(parts, memoryview(offsets).cast("B"), 4 * len(offsets))
    if column.validity is not None:
        total += _padded(parts, column.validity, len(column.validity))
    return total + _padded(parts, column.blob, len(column.blob))


def _put_fixed(parts: list[Buffer], column: Int32s | Int64s | Buffer) -> int:
    view = memoryview(column).cast("B")
    return _padded(parts, view, len(view))


def place_seed(topic_id: int, partition: int, base_offset: int) -> int:
    """The CRC32C seed of a batch that begins at this place."""
    return int(crc32c(_PLACE.pack(topic_id, partition, base_offset)))


def encode_batch(batch: RecordBatch, topic_id: int, partition: int) -> list[Buffer]:
    """Returns the buffers of the batch at rest, ready for `writev`; their sizes add up to its
    length.

    The batch must have been placed. Columns are not copied: the buffers alias them.
    """
    parts: list[Buffer] = []
    entries: list[bytes] = []
    length = HEADER_BYTES
    for kind, column in ((_VALUE, batch.values), (_KEY, batch.keys), (_HEADERS, batch.headers)):
        if column is not None:
            flags = _NULLS if column.validity is not None else 0
            size = _put_variable(parts, column)
            entries.append(_ENTRY.pack(kind, flags, 0, size))
            length += size
    for kind, fixed in (
        (_ID, batch.ids),
        (_TIMESTAMP, batch.timestamps),
        (_PRODUCER_TIMESTAMP, batch.producer_timestamps),
        (_SEQUENCE, batch.sequences),
        (_EPOCH, batch.epochs),
    ):
        if fixed is not None:
            size = _put_fixed(parts, fixed)
            entries.append(_ENTRY.pack(kind, 0, 0, size))
            length += size
    if batch.producers:
        names = VarColumn.of(batch.producers)
        parts.append(len(batch.producers).to_bytes(8, "little"))
        size = 8 + _put_variable(parts, names)
        entries.append(_ENTRY.pack(_PRODUCER, 0, 0, size))
        length += size
    for kind, fixed in (
        (_PRODUCER_INDEX, batch.producer_index),
        (_OFFSET_DELTA, batch.offset_deltas),
    ):
        if fixed is not None:
            size = _put_fixed(parts, fixed)
            entries.append(_ENTRY.pack(kind, 0, 0, size))
            length += size

    directory = b"".join(entries)
    length += len(directory)
    tail = _TAIL.pack(
        batch.base_offset,
        batch.last_offset_delta,
        batch.count,
        batch.base_timestamp_us,
        batch.max_timestamp_us,
        batch.base_sequence or 0,
        batch.producer_epoch or 0,
        batch.log_epoch,
        (batch.base_sequence is not None and _HAS_SEQUENCE)
        | (batch.producer_epoch is not None and _HAS_EPOCH),
    )
    front = _FRONT.pack(MAGIC, FORMAT, batch.origin, len(entries), length)
    crc = crc32c(front, place_seed(topic_id, partition, batch.base_offset))
    if length <= 16_384:
        body = b"".join((tail, directory, *parts))
        return [front + _CRC.pack(crc32c(body, crc)) + body]
    crc = crc32c(tail + directory, crc)
    for part in parts:
        crc = crc32c(part, crc)
    return [front + _CRC.pack(crc) + tail + directory, *parts]


class BatchHead(NamedTuple):
    """The fixed header of a batch at rest, read without its columns."""

    origin: int
    columns: int
    length: int
    crc: int
    base_offset: int
    last_offset_delta: int
    record_count: int
    base_timestamp_us: int
    max_timestamp_us: int
    base_sequence: int
    producer_epoch: int
    log_epoch: int
    flags: int


def read_head(data: Buffer, at: int = 0) -> BatchHead:
    """Reads the header of the batch that begins at `at`; checks its form, not its checksum.

    Raises:
        BatchError: These 72 bytes are not a batch header of a format that this server knows.
    """
    if len(data) - at < HEADER_BYTES:
        raise BatchError("a batch header is cut off")
    magic, version, origin, columns, length, crc, *rest = HEADER.unpack_from(data, at)
    if magic != MAGIC:
        raise BatchError("no batch magic")
    if version != FORMAT:
        raise BatchError(f"batch format {version} is not known to this version")
    head = BatchHead(origin, columns, length, crc, *rest)
    if (
        head.flags > 3
        or length % 8
        or length < HEADER_BYTES + 8 * columns
        or not columns
        or not head.record_count
        or head.last_offset_delta < head.record_count - 1
    ):
        raise BatchError("the batch header contradicts itself")
    return head


def decode_batch(data: Buffer, topic_id: int, partition: int, at: int = 0) -> RecordBatch:
    """Returns the batch that begins at `at`, its columns aliasing `data`.

    Raises:
        BatchError: Not an intact batch of this place: wrong magic, length, checksum or column
            layout.
    """
    head = read_head(data, at)
    view = memoryview(data)[at : at + head.length]
    if len(view) < head.length:
        raise BatchError("the batch is cut off")
    if not is_intact(head, view, topic_id, partition):
        raise BatchError("the batch's checksum does not match")
    return open_columns(head, view)


def is_intact(head: BatchHead, view: Buffer, topic_id: int, partition: int) -> bool:
    """Whether a whole batch at rest, whose header was read, belongs to this place and has its
    checksum."""
    seed = place_seed(topic_id, partition, head.base_offset)
    data = memoryview(view)
    return bool(crc32c(data[16 : head.length], crc32c(data[:12], seed)) == head.crc)


def open_columns(head: BatchHead, view: memoryview) -> RecordBatch:
    """Returns the batch of a header and bytes that are known to be intact.

    Raises:
        BatchError: The column layout contradicts itself.
    """
    found: dict[int, tuple[int, memoryview]] = {}
    at = HEADER_BYTES + 8 * head.columns
    for index in range(head.columns):
        kind, flags, _, size = _ENTRY.unpack_from(view, HEADER_BYTES + 8 * index)
        if size % 8 or at + size > head.length:
            raise BatchError("a column runs past the batch's end")
        found[kind] = (flags, view[at : at + size])
        at += size
    if at != head.length or ColumnKind.VALUE not in found:
        raise BatchError("the columns do not fill the batch")
    count = head.record_count

    def variable(kind: ColumnKind) -> VarColumn | None:
        if kind not in found:
            return None
        flags, body = found[kind]
        return _get_variable(body, count, bool(flags & _NULLS))

    def fixed(kind: ColumnKind, code: Literal["B", "I", "q", "Q"], width: int) -> memoryview | None:
        if kind not in found:
            return None
        body = found[kind][1]
        if len(body) < count * width:
            raise BatchError(f"column {kind.name} is too short")
        return body[: count * width].cast(code)

    values = variable(ColumnKind.VALUE)
    assert values is not None
    batch = RecordBatch(
        count,
        values,
        origin=head.origin,
        keys=variable(ColumnKind.KEY),
        headers=variable(ColumnKind.HEADERS),
        ids=fixed(ColumnKind.ID, "B", 16),
        producers=_get_producers(found[ColumnKind.PRODUCER][1])
        if ColumnKind.PRODUCER in found
        else (),
        producer_index=fixed(ColumnKind.PRODUCER_INDEX, "I", 4),
        producer_epoch=head.producer_epoch if head.flags & _HAS_EPOCH else None,
        epochs=fixed(ColumnKind.EPOCH, "q", 8),
        base_sequence=head.base_sequence if head.flags & _HAS_SEQUENCE else None,
        sequences=fixed(ColumnKind.SEQUENCE, "Q", 8),
        producer_timestamps=fixed(ColumnKind.PRODUCER_TIMESTAMP, "q", 8),
    )
    batch.timestamps = fixed(ColumnKind.TIMESTAMP, "q", 8)
    batch.offset_deltas = fixed(ColumnKind.OFFSET_DELTA, "I", 4)
    batch.last_offset_delta = head.last_offset_delta
    batch.base_offset = head.base_offset
    batch.base_timestamp_us = head.base_timestamp_us
    batch.max_timestamp_us = head.max_timestamp_us
    batch.log_epoch = head.log_epoch
    return batch


def _get_variable(body: memoryview, count: int, nulls: bool) -> VarColumn:
    at = 4 * (count + 1)
    if at > len(body):
        raise BatchError("a column's offsets are cut off")
    offsets = body[:at].cast("i")
    at += -at & 7
    validity = None
    if nulls:
        size = (count + 7) // 8
        validity = body[at : at + size]
        at += size + (-size & 7)
    end = offsets[count]
    if offsets[0] != 0 or end < 0 or at + end > len(body):
        raise BatchError("a column's offsets run past its blob")
    return VarColumn(body[at : at + end], offsets, validity)


def _get_producers(body: memoryview) -> tuple[bytes, ...]:
    count = int.from_bytes(body[:8], "little")
    if not 0 < count < len(body):
        raise BatchError("the producer dictionary's size is not possible")
    return tuple(name or b"" for name in _get_variable(body[8:], count, False))
