"""What a power cut may leave of a disk in memory: every legal state, one after another.

Since its last sync each file has had a history of writes and sizes, and each name in a directory a
history of what it stood for. A power cut leaves of each

- of a name: any version since the directory was synced, whatever became of other names; so a rename
  may have arrived by half, or before the bytes of the file that it moved;
- of a file's size: any version since the file was synced, in order;
- of a file's sectors (512 bytes): each on its own any version since then, in any order, clipped to
  the size that arrived, and zeros where the size arrived without them.

`Wreck.states` yields the telling ones first (nothing, everything, each thing alone missing or alone
there, every torn write), then random ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

T = TypeVar("T")
SECTOR = 512
PAGE = 4096
TEARS_MAX = 24
"""Of a longer write so many places to tear it are taken, evenly spread."""

Fate = tuple[int, int]
"""How many of a file's size changes arrived, and a bit for each of its sectors that did."""


@dataclass(eq=False)
class Inode:
    """A file: its bytes now, its bytes as synced, and the changes between the two.

    A change is (position, bytes) or a new size. After a failed sync it `forgot` what it had not
    written: the bytes now are more than the bytes as synced and the changes since.
    """

    data: bytes | bytearray = b""
    synced: bytes = b""
    unsynced: list[tuple[int, bytes] | int] = field(default_factory=list)
    forgot: bool = False


@dataclass(eq=False)
class Directory:
    """A directory: its entries now, as synced, and the changes between the two."""

    entries: dict[str, Inode | Directory] = field(default_factory=dict)
    synced: dict[str, Inode | Directory] = field(default_factory=dict)
    unsynced: list[tuple[str, Inode | Directory | None]] = field(default_factory=list)


class DirtyFile:
    """A file with unsynced changes, and what may be left of it.

    Attributes:
        nothing, everything: The two ends.
        size_only, data_only: The newest size without any byte; all bytes but no new size.
    """

    def __init__(self, inode: Inode) -> None:
        self._synced = inode.synced
        self._steps: list[tuple[int, int, list[tuple[int, bytes]]]] = []
        cache = bytearray(inode.synced)
        self._pages: list[int] = []
        for change in inode.unsynced:
            if isinstance(change, int):
                shrinks = change < len(cache)
                resize(cache, change)
                self._steps.append((change, change if shrinks else -1, []))
                continue
            position, data = change
            put(cache, position, data)
            sectors = []
            end = position + len(data)
            for at in range(position // SECTOR * SECTOR, end, SECTOR):
                sectors.append((at, bytes(cache[at : at + SECTOR])))
                self._pages.append(at // PAGE)
            self._steps.append((-1 - end, -1, sectors))
        count = len(self._pages)
        changes = len(self._steps)
        self.sectors = count
        self.changes = changes
        self.nothing: Fate = (0, 0)
        self.everything: Fate = (changes, (1 << count) - 1)
        self.size_only: Fate = (changes, 0)
        self.data_only: Fate = (0, (1 << count) - 1)
        now = bytes(inode.data) if not inode.forgot else bytes(cache)
        self._made: dict[Fate, bytes] = {self.everything: now, self.nothing: inode.synced}
        self._same = {now: now, inode.synced: inode.synced}

    def left(self, fate: Fate) -> bytes:
        """The file's bytes after the power cut; one object for all fates that leave the same."""
        made = self._made.get(fate)
        if made is None:
            made = self._leave(*fate)
            made = self._made[fate] = self._same.setdefault(made, made)
        return made

    def tears(self) -> Iterator[Fate]:
        """The newest writes cut at a sector, and the sectors before a cut missing instead."""
        full = self.everything[1]
        count = self.sectors
        step = max(-(-count // TEARS_MAX), 1)
        pages = [at for at in range(count - 1, 0, -1) if self._pages[at] != self._pages[at - 1]]
        for cut in [*pages[:TEARS_MAX], *range(count - 1, 0, -step)]:
            head = (1 << cut) - 1
            for arrived in (self.changes, 0):
                yield arrived, head
                yield arrived, full & ~head

    def random(self, random: Random) -> Fate:
        """Any fate."""
        kind = random.randrange(8)
        if kind < 4:
            return (self.nothing, self.everything, self.size_only, self.data_only)[kind]
        arrived = random.randint(0, self.changes)
        if kind < 6:
            return arrived, random.getrandbits(self.sectors) if self.sectors else 0
        if kind == 6:  # whole pages
            pages = {page: random.getrandbits(1) for page in set(self._pages)}
            return arrived, sum([pages[page] << at for at, page in enumerate(self._pages)])
        return arrived, (1 << random.randint(0, self.sectors)) - 1

    def _leave(self, arrived: int, mask: int) -> bytes:
        data = bytearray(self._synced)
        reach = 1 << 62
        for number, (size, shrunk_to, sectors) in enumerate(self._steps):
            if size >= 0:
                if number < arrived:
                    resize(data, size)
                elif shrunk_to >= 0:
                    # What is written later where the file was cut lies in new blocks, which only a
                    # size that has forgotten the old ones can reach.
                    reach = min(reach, shrunk_to)
                continue
            if number < arrived and len(data) < -1 - size:
                resize(data, -1 - size)
            for at, sector in sectors:
                if mask & 1:
                    end = min(at + len(sector), len(data), reach)
                    if end > at:
                        data[at:end] = sector[: end - at]
                mask >>= 1
        return bytes(data)


class Wreck:
    """What a power cut may leave of a tree, as it stands now.

    Args:
        newest: The file that changed last: its writes are torn in every way.
        minor: Names of files that nobody relies on: what is left of them is left to chance.

    Attributes:
        files: The files with unsynced changes.
        names: (directory, name, what it stood for since the last sync) of each unsynced name.
    """

    def __init__(
        self, root: Directory, newest: Inode | None = None, minor: tuple[str, ...] = ()
    ) -> None:
        self._root = root
        self._minor = minor
        self._minor_files: set[int] = set()
        self.files: list[DirtyFile] = []
        self.names: list[tuple[Directory, str, list[Inode | Directory | None]]] = []
        self._index: dict[int, int] = {}
        self._clean: dict[int, bytes] = {}
        self._seen: set[int] = set()
        self._collect(root)
        self._last = None if newest is None else self._index.get(id(newest))
        self._telling = [at for at in range(len(self.files)) if at not in self._minor_files]

    def states(self, limit: int, random: Random) -> Iterator[Directory]:
        """Up to `limit` different trees that a restart might find."""
        seen: set[tuple[int, ...]] = set()
        for names, fates in self._choices(random, 2 * limit):
            left = [file.left(fate) for file, fate in zip(self.files, fates, strict=True)]
            stands = [v[at] for (_, _, v), at in zip(self.names, names, strict=True)]
            choice = tuple(map(id, [*left, *stands]))
            if choice in seen:
                continue
            seen.add(choice)
            yield self.tree(names, fates)
            if len(seen) >= limit:
                return

    def tree(self, names: list[int], fates: list[Fate]) -> Directory:
        """The tree in which these versions of names and these fates of files arrived."""
        chosen: dict[int, dict[str, Inode | Directory | None]] = {}
        for (directory, name, versions), version in zip(self.names, names, strict=True):
            chosen.setdefault(id(directory), {})[name] = versions[version]
        made: dict[int, Inode | Directory] = {}

        def survivor(at: Inode | Directory) -> Inode | Directory:
            known = made.get(id(at))
            if known is not None:
                return known
            if isinstance(at, Inode):
                index = self._index.get(id(at))
                data = (
                    self._clean[id(at)] if index is None else self.files[index].left(fates[index])
                )
                inode = made[id(at)] = Inode(data, data)
                return inode
            left = made[id(at)] = Directory()
            entries: dict[str, Inode | Directory | None] = dict(at.synced)
            entries.update(chosen.get(id(at), ()))
            left.entries = {n: survivor(e) for n, e in entries.items() if e is not None}
            left.synced = dict(left.entries)
            return left

        tree = survivor(self._root)
        assert isinstance(tree, Directory)
        return tree

    def _collect(self, at: Inode | Directory) -> None:
        if id(at) in self._seen:
            return
        self._seen.add(id(at))
        if isinstance(at, Inode):
            if at.unsynced:
                self._index[id(at)] = len(self.files)
                self.files.append(DirtyFile(at))
            else:  # what a test damaged counts, as if it had been so on the medium
                self._clean[id(at)] = at.synced if at.forgot else bytes(at.data)
            return
        versions: dict[str, list[Inode | Directory | None]] = {}
        for name, entry in at.unsynced:
            versions.setdefault(name, [at.synced.get(name)]).append(entry)
        for name, those in versions.items():
            self.names.append((at, name, those))
        for name, entry in [*at.synced.items(), *at.unsynced]:
            if entry is not None:
                self._collect(entry)
                if name in self._minor and id(entry) in self._index:
                    self._minor_files.add(self._index[id(entry)])

    def _choices(self, random: Random, tries: int) -> Iterator[tuple[list[int], list[Fate]]]:
        files = self.files
        old = [0] * len(self.names)
        new = [len(versions) - 1 for _, _, versions in self.names]
        nothing = [file.nothing for file in files]
        everything = [file.everything for file in files]
        yield new, everything
        yield old, nothing
        yield new, nothing
        yield new, [file.size_only for file in files]
        yield old, everything
        yield new, [file.data_only for file in files]
        for at in self._telling:
            for fate in (files[at].nothing, files[at].size_only, files[at].data_only):
                yield new, _with(everything, at, fate)
            yield new, _with(nothing, at, files[at].everything)
        for at, (_, name, versions) in enumerate(self.names):
            if name in self._minor:
                continue
            for version in range(len(versions)):
                yield _with(new, at, version), everything
                yield _with(old, at, version), everything
        if self._last is not None and self._last not in self._minor_files:
            for fate in files[self._last].tears():
                yield new, _with(everything, self._last, fate)
        for _ in range(tries):
            names = [random.randrange(len(versions)) for _, _, versions in self.names]
            if not random.randrange(3):
                names = new
            yield names, [file.random(random) for file in files]


def _with(choice: list[T], at: int, value: T) -> list[T]:
    changed = choice.copy()
    changed[at] = value
    return changed


def put(data: bytearray, position: int, piece: bytes) -> None:
    """Writes a piece; what lies between the old end and it is zeros."""
    if len(data) < position:
        data.extend(bytes(position - len(data)))
    data[position : position + len(piece)] = piece


def replayed(inode: Inode) -> bytes:
    """What was synced with the changes since."""
    data = bytearray(inode.synced)
    for change in inode.unsynced:
        if isinstance(change, int):
            resize(data, change)
        else:
            put(data, *change)
    return bytes(data)


def resize(data: bytearray, size: int) -> None:
    """Cuts, or adds zeros."""
    if size < len(data):
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))
