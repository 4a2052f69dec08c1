"""A disk in memory that may lose what a real one may lose: the storage floor's `Disk`.

Every operation has a number. At a chosen one the disk can fail (an errno), or stop for good
(`PowerCut`), as if the machine had lost its power in the middle. `crashed` then gives the disk that
a restart would find: what was synced is there; of the rest each write may have arrived whole, in
part (cut at a multiple of 512 bytes) or not at all, and of each directory's unsynced entries some
first ones have.
"""

from __future__ import annotations

import errno
import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dragoman.core.storage.disk import SyncFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

SECTOR = 512


class PowerCut(BaseException):
    """The machine is off; nothing more happens on this disk."""


@dataclass(eq=False)
class Inode:
    """A file: its bytes now, its bytes as synced, and the writes between the two."""

    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    unsynced: list[tuple[int, bytes] | int] = field(default_factory=list)


@dataclass(eq=False)
class Directory:
    """A directory: its entries now, as synced, and the changes between the two."""

    entries: dict[str, Inode | Directory] = field(default_factory=dict)
    synced: dict[str, Inode | Directory] = field(default_factory=dict)
    unsynced: list[tuple[str, Inode | Directory | None]] = field(default_factory=list)


class SimDisk:
    """A `core.storage.disk.Disk` in memory.

    Attributes:
        operations: How many operations there were that change or sync something.
        log: Their names and paths, for the message of a failing test.
        fails: Called with (number, name, path) before each; what it raises is raised.
        bytes_max: Writes that would make all files together larger find the disk full.
    """

    def __init__(self) -> None:
        self.root = Directory()
        self.operations = 0
        self.log: list[str] = []
        self.fails: Callable[[int, str, str], None] | None = None
        self.bytes_max: int | None = None
        self.caches_reads = True
        self._open: dict[int, tuple[Inode, str]] = {}
        self._next_fd = 3
        self._locked: set[int] = set()

    # ---- what tests do to it

    def fail_at(self, number: int, error: int, name: str = "") -> None:
        """From now on the n-th operation (of this name) fails with an errno, once."""
        seen = 0

        def fails(_: int, operation: str, path: str) -> None:
            nonlocal seen
            if name and operation != name:
                return
            seen += 1
            if seen == number:
                kind = SyncFailed if operation.startswith("sync") else OSError
                raise kind(error, f"{operation} {path} was told to fail")

        self.fails = fails

    def cut_power_at(self, number: int) -> None:
        """The n-th operation from now on does not happen, nor does anything after it."""
        first = self.operations

        def fails(at: int, operation: str, path: str) -> None:
            if at > first + number - 1:
                raise PowerCut(f"{operation} {path}")

        self.fails = fails

    def crashed(self, random: Random | None = None) -> SimDisk:
        """The disk after a restart.

        Args:
            random: Chooses what arrived of what was not synced. None: everything did, as after a
                kill of the process alone.
        """
        disk = SimDisk()
        seen: dict[int, Inode | Directory] = {}
        disk.root = _survivor(self.root, random, seen)  # type: ignore[assignment]
        return disk

    @property
    def used(self) -> int:
        """Bytes of all files together."""
        return self._total(self.root)

    def file(self, path: str) -> bytearray:
        """The bytes of a file, to be read and damaged."""
        inode = self._find(path)
        assert isinstance(inode, Inode)
        return inode.data

    def damage(self, path: str, change: Callable[[bytearray], None]) -> None:
        """Changes a file behind everybody's back, as if it had always been so on the medium."""
        inode = self._find(path)
        assert isinstance(inode, Inode)
        change(inode.data)
        inode.synced = bytes(inode.data)
        inode.unsynced.clear()

    # ---- core.storage.disk.Disk

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        parent, name = self._parent(path)
        found = parent.entries.get(name)
        if found is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self._operation("create", path)
            found = Inode()
            parent.entries[name] = found
            parent.unsynced.append((name, found))
        assert isinstance(found, Inode)
        fd = self._next_fd
        self._next_fd += 1
        self._open[fd] = (found, path)
        return fd

    def close(self, fd: int) -> None:
        del self._open[fd]
        self._locked.discard(fd)

    def size(self, fd: int) -> int:
        return len(self._open[fd][0].data)

    def read(self, fd: int, length: int, position: int) -> bytes:
        return bytes(self._open[fd][0].data[position : position + length])

    def read_now(self, fd: int, length: int, position: int) -> bytes | None:
        return self.read(fd, length, position) if self.caches_reads else None

    def write(
        self, fd: int, buffers: Sequence[bytes | bytearray | memoryview], position: int
    ) -> None:
        inode, path = self._open[fd]
        data = b"".join(buffers)
        self._operation("write", path)
        if self.bytes_max is not None:
            growth = max(position + len(data) - len(inode.data), 0)
            if growth and self._total(self.root) + growth > self.bytes_max:
                raise OSError(errno.ENOSPC, "the disk is full", path)
        _put(inode.data, position, data)
        inode.unsynced.append((position, data))

    def truncate(self, fd: int, size: int) -> None:
        inode, path = self._open[fd]
        self._operation("truncate", path)
        del inode.data[size:]
        inode.unsynced.append(size)

    def sync(self, fd: int) -> None:
        inode, path = self._open[fd]
        self._operation("sync", path)
        inode.synced = bytes(inode.data)
        inode.unsynced.clear()

    def rename(self, old: str, new: str) -> None:
        self._operation("rename", new)
        (source, old_name), (target, new_name) = self._parent(old), self._parent(new)
        found = source.entries.pop(old_name)
        target.entries[new_name] = found
        assert source is target
        source.unsynced.append((new_name, found))
        source.unsynced.append((old_name, None))

    def unlink(self, path: str) -> None:
        parent, name = self._parent(path)
        if name in parent.entries:
            self._operation("unlink", path)
            del parent.entries[name]
            parent.unsynced.append((name, None))

    def make_directory(self, path: str) -> None:
        at = self.root
        for name in path.strip("/").split("/"):
            found = at.entries.get(name)
            if found is None:
                self._operation("mkdir", path)
                found = Directory()
                at.entries[name] = found
                at.unsynced.append((name, found))
            assert isinstance(found, Directory)
            at = found

    def remove_directory(self, path: str) -> None:
        parent, name = self._parent(path)
        found = parent.entries.get(name)
        if isinstance(found, Directory) and not found.entries:
            self._operation("rmdir", path)
            del parent.entries[name]
            parent.unsynced.append((name, None))

    def list(self, path: str) -> list[str]:
        found = self._find(path)
        return sorted(found.entries) if isinstance(found, Directory) else []

    def sync_directory(self, path: str) -> None:
        found = self._find(path)
        if not isinstance(found, Directory):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        self._operation("sync directory", path)
        found.synced = dict(found.entries)
        found.unsynced.clear()

    def lock(self, fd: int) -> bool:
        inode, _ = self._open[fd]
        if any(self._open[other][0] is inode for other in self._locked):
            return False
        self._locked.add(fd)
        return True

    # ---- inside

    def _operation(self, name: str, path: str) -> None:
        self.operations += 1
        self.log.append(f"{name} {path}")
        if self.fails is not None:
            self.fails(self.operations, name, path)

    def _find(self, path: str) -> Inode | Directory | None:
        at: Inode | Directory | None = self.root
        for name in path.strip("/").split("/"):
            if name in ("", "."):
                continue
            if not isinstance(at, Directory):
                return None
            at = at.entries.get(name)
        return at

    def _parent(self, path: str) -> tuple[Directory, str]:
        directory, name = posixpath.split(path)
        parent = self._find(directory)
        if not isinstance(parent, Directory):
            raise FileNotFoundError(errno.ENOENT, "no such directory", directory)
        return parent, name

    def _total(self, at: Inode | Directory) -> int:
        if isinstance(at, Inode):
            return len(at.data)
        return sum([self._total(entry) for entry in at.entries.values()])


def _put(data: bytearray, position: int, piece: bytes) -> None:
    if len(data) < position:
        data.extend(bytes(position - len(data)))
    data[position : position + len(piece)] = piece


def _survivor(
    at: Inode | Directory, random: Random | None, seen: dict[int, Inode | Directory]
) -> Inode | Directory:
    """What is left of a file or directory."""
    if id(at) in seen:
        return seen[id(at)]
    left: Inode | Directory
    if isinstance(at, Inode):
        data = bytearray(at.data) if random is None else _surviving_bytes(at, random)
        left = Inode(data, bytes(data))
        seen[id(at)] = left
        return left
    left = Directory()
    seen[id(at)] = left
    entries = dict(at.entries)
    if random is not None:
        entries = dict(at.synced)
        for name, entry in at.unsynced[: random.randint(0, len(at.unsynced))]:
            if entry is None:
                entries.pop(name, None)
            else:
                entries[name] = entry
    left.entries = {name: _survivor(entry, random, seen) for name, entry in entries.items()}
    left.synced = dict(left.entries)
    return left


def _surviving_bytes(inode: Inode, random: Random) -> bytearray:
    data = bytearray(inode.synced)
    for change in inode.unsynced:
        fate = random.randrange(3)
        if isinstance(change, int):
            if fate:
                del data[change:]
            continue
        position, piece = change
        if fate == 0:
            continue
        if fate == 1:
            cut = random.randint(0, len(piece) // SECTOR) * SECTOR
            piece = piece[:cut]
        if piece:
            _put(data, position, piece)
    return data
