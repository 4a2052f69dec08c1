"""Journal groups: what was written is read back, and nothing else is ever taken for a group."""

from __future__ import annotations

from dragoman.core.change import OffsetPut
from dragoman.core.storage.group import (
    BLOCK,
    HEADER_BYTES,
    BatchEntry,
    ChangeEntry,
    GroupAt,
    aligned,
    batch_entry,
    change_entry,
    encode_group,
    read_entries,
    scan_groups,
)
from dragoman.simulation.disk import SimDisk

CHANGE = OffsetPut(1, "group", "ü", 0, 7)


def encoded(number: int, size: int = 24, *, file: int = 0, incarnation: int = 1) -> bytes:
    body = bytes(range(256)) * (size // 256 + 1)
    parts = [batch_entry(5, 6, size), body[:size], change_entry(10 * number + 1, CHANGE)]
    length = HEADER_BYTES + sum(map(len, parts))
    return b"".join(
        encode_group(
            parts,
            length=length,
            incarnation=incarnation,
            number=number,
            first_sequence=10 * number,
            synced_group=number - 1,
            sequences=2,
            entries=2,
            file=file,
        )
    )


def on_disk(data: bytes) -> tuple[SimDisk, int]:
    disk = SimDisk()
    fd = disk.open("f", create=True)
    disk.write(fd, [data], 0)
    return disk, fd


def scanned(data: bytes, file: int = 0) -> list[GroupAt]:
    disk, fd = on_disk(data)
    return list(scan_groups(disk, fd, file))


def test_groups_of_every_size_come_back_with_their_entries() -> None:
    sizes = [24, 4096, 40_000, 100_000]
    disk, fd = on_disk(b"".join([encoded(n, size) for n, size in enumerate(sizes, 1)]))
    groups = list(scan_groups(disk, fd, 0))
    assert [group.number for group in groups] == [1, 2, 3, 4]
    for group, size in zip(groups, sizes, strict=True):
        batch, change = read_entries(disk, fd, group)
        assert isinstance(batch, BatchEntry)
        assert (batch.topic_id, batch.partition, len(batch.data)) == (5, 6, size)
        assert change == ChangeEntry(10 * group.number + 1, CHANGE)
        assert group.position % BLOCK == 0
        assert group.last_sequence == 10 * group.number + 1


def test_a_group_is_padded_with_zeros_to_whole_blocks() -> None:
    assert len(encoded(1)) == aligned(1) == BLOCK
    assert encoded(1).endswith(bytes(BLOCK - 300))
    assert len(encoded(1, 40_000)) == aligned(40_200)


def test_a_group_is_found_behind_one_that_is_damaged() -> None:
    data = bytearray(encoded(1) + encoded(2))
    data[100] ^= 1
    assert [group.number for group in scanned(bytes(data))] == [2]


def test_no_single_flipped_bit_of_a_group_passes() -> None:
    data = encoded(1)
    length = scanned(data)[0].length
    for bit in range(8 * length):
        flipped = bytearray(data)
        flipped[bit >> 3] ^= 1 << (bit & 7)
        assert scanned(bytes(flipped)) == [], bit


def test_zeros_and_garbage_are_no_group() -> None:
    assert scanned(bytes(8 * BLOCK)) == []
    assert scanned(b"\xff" * 8 * BLOCK) == []
    assert scanned(b"DRGJ" * BLOCK) == []


def test_a_group_copied_into_another_file_is_none() -> None:
    assert scanned(encoded(1, file=3), file=3) != []
    assert scanned(encoded(1, file=3), file=4) == []


def test_a_group_that_the_file_cuts_off_is_none() -> None:
    assert scanned(encoded(1, 40_000)[:-BLOCK]) == []
