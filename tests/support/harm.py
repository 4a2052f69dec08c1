"""Damage to the files of a data directory in memory, and what must be said of it.

Each function tries one part of its cases, so that several processes can share them, and returns
how many it tried; what breaks the rule is an AssertionError that names the case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.storage.catalog_file import catalog_sequences
from dragoman.core.storage.error import StorageError
from dragoman.core.storage.group import BLOCK, scan_groups
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.verify import verify
from dragoman.core.storage.walk import Intact, walk
from dragoman.core.store import StoreDamage
from dragoman.simulation.disk import SimDisk
from support.store import Driven, read_all, read_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from dragoman.core.storage.disk_store import DiskStore
    from dragoman.core.storage.group import GroupAt

JOURNAL = "data/journal/0"
SEGMENT = "data/topics/1/0-1/00000000000000000000.log"
SEGMENT_BYTES = 8192
HARMS = ["cut", "zeros", "ones", "garbage", "repeated"]
OPTIONS = {"journal_first_bytes": 64 * 1024, "segment_bytes": SEGMENT_BYTES, "reserve_bytes": 4096}


def options(scale: int) -> dict[str, int]:
    """What fits a segment of so many times 8 KiB."""
    return {
        **OPTIONS,
        "segment_bytes": SEGMENT_BYTES * scale,
        "journal_file_bytes": 64 * 1024 * scale,
        "journal_first_bytes": 64 * 1024 * scale,
    }


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
        data[at:] = (data[max(at - BLOCK, 0) : at] * (size // BLOCK + 2))[:size]


def groups_of(disk: SimDisk) -> list[GroupAt]:
    """The intact groups of the only journal file."""
    fd = disk.open(JOURNAL)
    found = list(scan_groups(disk, fd, 0))
    disk.close(fd)
    return found


def journalled(groups: int = 6) -> tuple[SimDisk, list[bytes]]:
    """A directory whose records are in the journal alone, one group a record."""
    disk = SimDisk()
    driven = Driven(disk, **OPTIONS)
    driven.topic()
    driven.settle()
    for n in range(groups):
        driven.produce([b"%d" % n * 450])
        driven.flush()
    return disk.crashed(), driven.written[1, 0]


def torn_journals(kind: str, part: int, parts: int) -> int:
    """The journal harmed from every byte of its last three groups on: exactly the groups before it
    are replayed, by a second recovery too."""
    base, values = journalled()
    before = bytes(base.file(JOURNAL))
    groups = groups_of(base)
    end = groups[-1].position + groups[-1].length
    cuts = [g.position + at for g in groups[-3:] for at in range(g.length)]
    if kind == "repeated":
        cuts = [g.position for g in groups[-3:]]
    for cut in (mine := [*cuts, end][part::parts]):
        disk = base.crashed()
        harm(disk.file(JOURNAL), cut, kind)
        data = disk.file(JOURNAL)
        ends = [(g.position, g.position + g.length) for g in groups]
        whole = [at for at, to in ends if to <= cut or data[at:to] == before[at:to]]
        expected = values[: len(whole) - 1]  # the first group makes the topic
        for _ in range(2):
            again = Driven(disk, **OPTIONS)
            assert read_all(again.store) == expected, (kind, cut)
            assert again.store.damage == []
            disk = disk.stripped()
    return len(mine)


def written(stop: bool, scale: int = 1) -> tuple[SimDisk, list[bytes]]:
    """A directory with one segment of exactly 8 KiB (times `scale`): stopped in order, or crashed
    while the journal holds the last three batches, too."""
    filler = 8
    while True:
        disk = SimDisk()
        driven = Driven(disk, **options(scale))
        driven.topic()
        driven.advance(2)
        driven.produce([b"x" * filler])
        for n in range(11):
            if n == 8:
                driven.advance(31)
            driven.produce([b"%d" % n * 60 * (n % 4 + 1) * scale, b"second of %d" % n])
            driven.settle()
        missing = SEGMENT_BYTES * scale - len(disk.file(SEGMENT))
        if not missing:
            if stop:
                driven.stop()
            return disk.crashed(), driven.written[1, 0]
        filler += missing


class Batch(NamedTuple):
    """Where one batch lies in the segment, and its offsets."""

    position: int
    end: int
    first: int
    last: int


def batches_of(disk: SimDisk) -> list[Batch]:
    """The batches of the segment."""
    data = bytes(disk.file(SEGMENT))
    found = []
    for piece in walk(lambda n, at: data[at : at + n], len(data), 1, 0, offset=0):
        assert isinstance(piece, Intact)
        base, head = piece.head.base_offset, piece.head
        last = base + head.last_offset_delta
        found.append(Batch(piece.position, piece.position + head.length, base, last))
    return found


def torn_segments(kind: str, part: int, parts: int, scale: int = 1) -> int:
    """A segment harmed from every byte of its last three batches on, which the journal still
    holds: nothing is lost, and a second recovery changes nothing."""
    base, values = written(stop=False, scale=scale)
    first = batches_of(base)[-3].position
    cuts = range(first, SEGMENT_BYTES * scale + 1)[part::parts]
    for cut in cuts:
        disk = base.crashed()
        harm(disk.file(SEGMENT), cut, kind)
        for _ in range(2):
            again = Driven(disk, **options(scale))
            assert again.store.damage == [], (kind, cut)
            assert read_all(again.store) == values, (kind, cut)
            disk = disk.stripped()
    return len(cuts)


def cut_segments(kind: str, part: int, parts: int) -> int:
    """The same where nothing else holds the batches: those before are served, the rest is named by
    its offsets, and nothing is cut away by a second start."""
    base, values = written(stop=True)
    batches = batches_of(base)
    before = bytes(base.file(SEGMENT))
    cuts = range(batches[-3].position, SEGMENT_BYTES)[part::parts]
    for cut in cuts:
        disk = base.crashed()
        harm(disk.file(SEGMENT), cut, kind)
        data = bytes(disk.file(SEGMENT))
        gone = {
            offset
            for batch in batches
            if data[batch.position : batch.end] != before[batch.position : batch.end]
            for offset in range(batch.first, batch.last + 1)
        }
        for _ in range(2):
            named = {
                n for d in verify("data", disk=disk).damage for n in range(d.first, d.last + 1)
            }
            assert named == gone, (kind, cut)
            again = Driven(disk, **OPTIONS)
            assert read_around(again.store, values) == gone, (kind, cut)
            disk = disk.stripped()
        assert bytes(disk.file(SEGMENT)) == data, (kind, cut)
    return len(cuts)


def read_around(store: DiskStore, values: list[bytes]) -> set[int]:
    """Reads all that can be read, which must be right; returns the offsets named as damaged."""
    lost: set[int] = set()
    offset = 0
    while offset < len(values):
        try:
            batches = read_at(store, 1, 0, offset, 1 << 20)
        except StoreDamage as damage:
            lost.update(range(damage.first, damage.last + 1))
            offset = damage.last + 1
            continue
        for batch in batches:
            found = list(batch.values)[batch.index_of(offset) :]
            assert found == values[offset : batch.next_offset], "wrong records were read"
            offset = batch.next_offset
    return lost


def flipped_segments(bits: Sequence[int], scale: int = 1) -> tuple[int, int]:
    """These bits of the segment flipped, each alone: check and reader name exactly the
    batch that it hit. Returns how many were tried, and how many nobody noticed."""
    base, values = written(stop=True, scale=scale)
    batches = batches_of(base)
    warm = Driven(base.crashed(), **options(scale), cold_bytes_max=1)
    assert read_around(warm.store, values) == set()
    assert warm.disk is not None
    silent = 0
    for bit in bits:
        at = bit >> 3
        hit = next(batch for batch in batches if batch.position <= at < batch.end)
        expected = set(range(hit.first, hit.last + 1))
        for disk in (base, warm.disk):
            disk.file(SEGMENT)[at] ^= 1 << (bit & 7)
        damage = verify("data", disk=base).damage
        lost = read_around(warm.store, values)
        if bit % 16 == 0:
            cold = Driven(base.crashed(), **options(scale))
            assert read_around(cold.store, values) == expected, bit
        for disk in (base, warm.disk):
            disk.file(SEGMENT)[at] ^= 1 << (bit & 7)
        silent += not damage or not lost
        assert lost == expected, bit
        assert [(d.path, d.first, d.last) for d in damage] == [(SEGMENT, hit.first, hit.last)], bit
        assert damage[0].position <= at
    return len(bits), silent


def sampled_flips(dice: Random, length: int, count: int) -> Iterator[int]:
    """So many bits of a file of this length, or all."""
    bits = 8 * length
    yield from sorted(dice.sample(range(bits), min(count, bits)))


def flipped_journals(dice: Random, count: int) -> tuple[int, int]:
    """Bits of groups that are needed flipped: the start is refused and names the group, but for
    the last one, which has no witness and counts as torn; padding means nothing."""
    base, values = journalled()
    needed = groups_of(base)[1:]  # the first one made the topic, and a catalog holds that
    end = needed[-1].position + needed[-1].length
    silent = tried = 0
    for bit in sampled_flips(dice, end, count):
        disk = base.crashed()
        disk.file(JOURNAL)[bit >> 3] ^= 1 << (bit & 7)
        at = bit >> 3
        hit = [g for g in needed if g.position <= at < g.position + g.length]
        tried += 1
        problem = ""
        found: list[bytes | None] = []
        try:
            found = read_all(Driven(disk, **OPTIONS).store)
        except StorageError as error:
            problem = str(error)
        if problem:
            assert hit, bit
            assert hit[0] is not needed[-1], bit
            assert f"group {hit[0].number} " in problem, bit
        elif not hit:
            assert found == values, bit
        elif hit[0] is needed[-1]:
            assert found == values[:-1], bit
        else:
            silent += 1
    return tried, silent


def flipped_catalogs(dice: Random, count: int) -> tuple[int, int]:
    """Bits of the newest catalog flipped: it is named, and the one before it gives the same."""
    base, values = written(stop=False)
    newest = catalog_sequences(base, Layout("data"))[0]
    path = f"data/catalog/{newest}.json"
    silent = tried = 0
    for bit in sampled_flips(dice, len(base.file(path)), count):
        disk = base.crashed()
        disk.file(path)[bit >> 3] ^= 1 << (bit & 7)
        named = any(d.path == path for d in verify("data", disk=disk).damage)
        again = Driven(disk, **OPTIONS)
        silent += not named or not any(path[5:] in text for text in again.store.damage)
        assert read_all(again.store) == values, bit
        tried += 1
    return tried, silent
