"""The journal's unit: one group is what one flush writes.

All integers little-endian; a group begins on a 4,096-byte boundary and is zero-padded to the next::

    group  := header entry* padding
    header := 64 bytes
         0  u32  magic 0x4A475244 ("DRGJ")
         4  u32  CRC32C of bytes 8..length, seeded with the CRC32C of the group's place
         8  u64  incarnation: raised at every start, so that nothing of an earlier life continues
        16  u64  group number, dense
        24  u64  first sequence
        32  u64  synced group: the highest one known to be synced when this one was written
        40  u32  number of sequences; sequences are dense
        44  u32  number of entries; batches that were joined are one entry for several sequences
        48  u64  length of header and entries
        56  u32  number of the journal file
        60  u32  zero
    entry  := u32 size of the body, a multiple of 8 | u8 kind | 3 zero bytes | body
    body   := kind 1, a batch:  u64 topic id, u32 partition, u32 zero, the batch at rest
            | kind 2, a change: u64 sequence, the change as JSON (`core.change`), spaces

    place  := u64 incarnation, u32 file, u64 first sequence

Within a group the entries keep the order of their sequences but for batches: those stand wherever
their run of neighbours ended, never on the other side of a change that makes, drops or trims.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from crc32c import crc32c

from dragoman.core.change import decode_change, encode_change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dragoman.core.change import Change
    from dragoman.core.column import Buffer
    from dragoman.core.storage.disk import Disk

BLOCK = 4096
MAGIC = 0x4A475244
HEADER_BYTES = 64
_HEADER = Struct("<IIQQQQIIQII")
_REST = Struct("<QQQQIIQII")
_CHECK = Struct("<II")
_PLACE = Struct("<QIQ")
_BATCH_ENTRY = Struct("<IB3xQII")
_CHANGE_ENTRY = Struct("<IB3xQ")
_ENTRY = Struct("<IB3x")
_MAGIC_BYTES = MAGIC.to_bytes(4, "little")
_BATCH, _CHANGE = 1, 2
_ZEROS = memoryview(bytes(BLOCK))
_CHUNK = 1024 * 1024
_JOINED_MAX = 32 * 1024


class GroupError(ValueError):
    """The bytes are not an intact group."""


class GroupAt(NamedTuple):
    """An intact group and where it stands."""

    file: int
    position: int
    incarnation: int
    number: int
    first_sequence: int
    synced_group: int
    sequences: int
    entries: int
    length: int

    @property
    def last_sequence(self) -> int:
        """The newest sequence in it."""
        return self.first_sequence + self.sequences - 1


class BatchEntry(NamedTuple):
    """A batch as the journal holds it."""

    topic_id: int
    partition: int
    data: memoryview


class ChangeEntry(NamedTuple):
    """A change as the journal holds it."""

    sequence: int
    change: Change


def aligned(length: int) -> int:
    """The bytes that a group of this length takes in its file."""
    return -(-length // BLOCK) * BLOCK


def batch_entry(topic_id: int, partition: int, length: int) -> bytes:
    """What stands before a batch of `length` bytes at rest."""
    return _BATCH_ENTRY.pack(length + 16, _BATCH, topic_id, partition, 0)


def change_entry(sequence: int, change: Change) -> bytes:
    """A change as a whole entry."""
    data = encode_change(change)
    data += b" " * (-len(data) & 7)
    return _CHANGE_ENTRY.pack(len(data) + 8, _CHANGE, sequence) + data


def encode_group(
    parts: Sequence[Buffer],
    *,
    length: int,
    incarnation: int,
    number: int,
    first_sequence: int,
    synced_group: int,
    sequences: int,
    entries: int,
    file: int,
) -> list[Buffer]:
    """Returns the buffers of a whole group, padding included.

    Args:
        parts: The entries' buffers.
        length: Of header and entries together.
    """
    rest = _REST.pack(
        incarnation,
        number,
        first_sequence,
        synced_group,
        sequences,
        entries,
        length,
        file,
        0,
    )
    crc = crc32c(_PLACE.pack(incarnation, file, first_sequence))
    padding = _ZEROS[: -length % BLOCK]
    if length <= _JOINED_MAX:
        body = b"".join((rest, *parts))
        return [b"".join((_CHECK.pack(MAGIC, crc32c(body, crc)), body, padding))]
    crc = crc32c(rest, crc)
    for part in parts:
        crc = crc32c(part, crc)
    return [_CHECK.pack(MAGIC, crc) + rest, *parts, padding]


def read_group(disk: Disk, fd: int, file: int, position: int, size: int) -> GroupAt:
    """Reads and checks the group at `position` of a file of `size` bytes.

    Raises:
        GroupError: There is no intact group of this place.
    """
    header = bytes(disk.read(fd, HEADER_BYTES, position))
    if len(header) < HEADER_BYTES or header[:4] != _MAGIC_BYTES:
        raise GroupError("no group magic")
    _, crc, incarnation, number, first, synced, sequences, entries, length, named, zero = (
        _HEADER.unpack(header)
    )
    if named != file or zero or length < HEADER_BYTES or position + length > size:
        raise GroupError("the group header contradicts itself")
    found = crc32c(header[8:], crc32c(_PLACE.pack(incarnation, file, first)))
    at, end = position + HEADER_BYTES, position + length
    while at < end:
        chunk = disk.read(fd, min(_CHUNK, end - at), at)
        if not chunk:
            raise GroupError("the group is cut off")
        found = crc32c(chunk, found)
        at += len(chunk)
    if found != crc:
        raise GroupError("the group's checksum does not match")
    return GroupAt(file, position, incarnation, number, first, synced, sequences, entries, length)


def scan_groups(disk: Disk, fd: int, file: int) -> Iterator[GroupAt]:
    """Yields every intact group of a journal file, whatever stands between them."""
    size = disk.size(fd)
    at = 0
    while at < size:
        chunk = memoryview(disk.read(fd, min(_CHUNK, size - at), at))
        if not chunk:
            return
        step = 0
        while step < len(chunk):
            if chunk[step : step + 4] != _MAGIC_BYTES:
                step += BLOCK
                continue
            try:
                group = read_group(disk, fd, file, at + step, size)
            except GroupError:
                step += BLOCK
                continue
            yield group
            step += aligned(group.length)
        at += step


def read_entries(disk: Disk, fd: int, group: GroupAt) -> Iterator[BatchEntry | ChangeEntry]:
    """Yields the entries of a group that `read_group` or `scan_groups` found.

    Raises:
        GroupError: Its entries do not fill it, or are of a kind that this version does not know.
    """
    data = memoryview(disk.read(fd, group.length, group.position))
    at = HEADER_BYTES
    for _ in range(group.entries):
        if at + 8 > len(data):
            raise GroupError("the group's entries run past its end")
        size, kind = _ENTRY.unpack_from(data, at)
        if kind == _BATCH:
            _, _, topic_id, partition, _ = _BATCH_ENTRY.unpack_from(data, at)
            yield BatchEntry(topic_id, partition, data[at + 24 : at + 8 + size])
        elif kind == _CHANGE:
            _, _, sequence = _CHANGE_ENTRY.unpack_from(data, at)
            yield ChangeEntry(sequence, decode_change(data[at + 16 : at + 8 + size]))
        else:
            raise GroupError(f"entry kind {kind} is not known to this version")
        at += 8 + size
    if at != group.length:
        raise GroupError("the entries do not fill the group")
