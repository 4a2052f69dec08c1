"""Damage of every kind to every file: named, never silent, and never more than it is.

`CRASH_FLIP_STEP` sets which bits of a segment are flipped: 1 is all of them.
"""

from __future__ import annotations

import pytest

from dragoman.core.storage.group import BLOCK, GroupAt, aligned, scan_groups
from dragoman.core.storage.verify import verify
from dragoman.core.store import StoreDamage
from dragoman.simulation.disk import SimDisk
from support.effort import effort
from support.store import Driven, read_all, read_at

FLIP_STEP = effort("CRASH_FLIP_STEP", 7)


def journalled(groups: int = 6) -> tuple[SimDisk, list[bytes], list[GroupAt]]:
    """A directory whose records are in the journal alone, one group a record."""
    disk = SimDisk()
    driven = Driven(disk, journal_first_bytes=64 * 1024)
    driven.topic()
    driven.settle()
    for n in range(groups):
        driven.produce([b"%d" % n * 100])
        driven.flush()
    fd = disk.open("data/journal/0")
    found = list(scan_groups(disk, fd, 0))
    disk.close(fd)
    return disk.crashed(None), driven.written[1, 0], found


HARMS = ["cut", "zeros", "ones", "garbage", "repeated"]


def harm(data: bytearray, at: int, kind: str) -> None:
    """Does to a file from `at` on what a torn write may do."""
    size = len(data) - at
    if kind == "cut":
        del data[at:]
    elif kind == "zeros":
        data[at:] = bytes(size)
    elif kind == "ones":
        data[at:] = b"\xff" * size
    elif kind == "garbage":
        data[at:] = (b"\x93DRGJ\x01\x7fDRGB" * (size // 11 + 1))[:size]
    else:
        data[at:] = (data[at - BLOCK : at] * (size // BLOCK + 1))[:size]


@pytest.mark.parametrize("kind", HARMS)
def test_a_tail_torn_at_any_byte_leaves_exactly_the_groups_before_it(kind: str) -> None:
    base, values, groups = journalled()
    before = bytes(base.file("data/journal/0"))
    end = groups[-1].position + groups[-1].length
    cuts = [g.position + at for g in groups[-3:] for at in range(g.length)]
    if kind == "repeated":
        cuts = [g.position for g in groups[-3:]] + [end]
    for cut in [*cuts[:: 1 if kind == "cut" else 3], end]:
        disk = base.crashed(None)
        harm(disk.file("data/journal/0"), cut, kind)
        data = disk.file("data/journal/0")
        ends = [(g.position, g.position + g.length) for g in groups]
        whole = [at for at, to in ends if to <= cut or data[at:to] == before[at:to]]
        expected = values[: len(whole) - 1]  # the first group makes the topic
        again = Driven(disk)
        assert read_all(again.store) == expected, (kind, cut)
        assert again.store.damage == []
        if cut % 5 == 0:
            assert read_all(Driven(disk.crashed(None)).store) == expected


def test_the_padding_of_a_group_means_nothing() -> None:
    base, values, groups = journalled()
    last = groups[-1]
    data = base.file("data/journal/0")
    for at in range(last.position + last.length, last.position + aligned(last.length)):
        data[at] = 0xFF
    assert read_all(Driven(base).store) == values


def segment() -> tuple[SimDisk, list[bytes], str]:
    """A stopped directory with one small segment of a dozen batches."""
    disk = SimDisk()
    driven = Driven(disk, journal_first_bytes=64 * 1024)
    driven.topic()
    for n in range(12):
        driven.produce([b"%d" % n * (n + 1), b"second"])
        driven.settle()
    driven.stop()
    return disk, driven.written[1, 0], "data/topics/1/0-1/00000000000000000000.log"


def test_every_flipped_bit_of_a_segment_is_named_by_the_check() -> None:
    disk, values, path = segment()
    data = disk.file(path)
    assert verify("data", disk=disk).damage == []
    for bit in range(0, 8 * len(data), FLIP_STEP):
        data[bit >> 3] ^= 1 << (bit & 7)
        report = verify("data", disk=disk)
        data[bit >> 3] ^= 1 << (bit & 7)
        assert len(report.damage) == 1, bit
        damage = report.damage[0]
        assert damage.path == path
        assert damage.position <= bit >> 3
        assert 0 <= damage.first <= damage.last < len(values)
        assert report.records + damage.last - damage.first + 1 == len(values)


def test_a_reader_meets_the_damage_where_it_is_and_reads_all_else() -> None:
    disk, values, path = segment()
    data = disk.file(path)
    for bit in range(0, 8 * len(data), 43 * FLIP_STEP):
        data[bit >> 3] ^= 1 << (bit & 7)
        driven = Driven(disk.crashed(None))
        data[bit >> 3] ^= 1 << (bit & 7)
        lost: set[int] = set()
        for offset in range(len(values)):
            try:
                batch = read_at(driven.store, 1, 0, offset, 1)[0]
            except StoreDamage as damage:
                lost.update(range(damage.first, damage.last + 1))
            else:
                assert offset not in lost
                assert batch.values[offset - batch.base_offset] == values[offset]
        assert 1 <= len(lost) <= 4, bit
