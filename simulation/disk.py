"""A disk in memory that may lose what a real one may lose: the storage floor's `Disk`.

Every operation has a number. At a chosen one the disk can fail (an errno, perhaps after a part of a
write), or stop for good (`PowerCut`), as if the machine had lost its power in the middle. What a
restart finds then: `crashed` after a power cut, chosen at random, `crash_states` many such states
in order (`simulation.wreck` has the rules), `killed` where only the process ended and the page
cache lives on.
"""

from __future__ import annotations

import errno
from functools import lru_cache
from typing import TYPE_CHECKING

from dragoman.core.storage.disk import SyncFailed
from dragoman.simulation.wreck import Directory, Inode, Wreck, put, replayed, resize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random


class PowerCut(BaseException):
    """The machine is off; nothing more happens on this disk."""


class ShortWrite(Exception):
    """Raised by `SimDisk.fails`: a write takes so many bytes and then fails."""

    def __init__(self, taken: int, error: OSError) -> None:
        super().__init__(taken, error)
        self.taken = taken
        self.error = error


class SimDisk:
    """A `core.storage.disk.Disk` in memory.

    Attributes:
        operations: How many operations there were that change or sync something.
        log: Their names and paths, for the message of a failing test.
        fails: Called with (number, name, path) before each; what it raises is raised.
        looks, looks_fail: The same for what only opens, lists or reads.
        bytes_max: Writes that would make all files together larger find the disk full.
    """

    def __init__(self, root: Directory | None = None) -> None:
        self.root = Directory() if root is None else root
        self.operations = 0
        self.log: list[str] = []
        self.fails: Callable[[int, str, str], None] | None = None
        self.looks = 0
        self.looks_fail: Callable[[int, str, str], None] | None = None
        self.bytes_max: int | None = None
        self.caches_reads = True
        self._open: dict[int, tuple[Inode, str, bool]] = {}
        self._next_fd = 3
        self._locked: set[int] = set()
        self._newest: Inode | None = None

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
            random: Chooses what arrived of what was not synced. None: everything did.
        """
        if random is None:
            return SimDisk(self._copy(survives=True))
        wreck = Wreck(self.root)
        names = [random.randrange(len(versions)) for _, _, versions in wreck.names]
        return SimDisk(wreck.tree(names, [file.random(random) for file in wreck.files]))

    def crash_states(
        self, limit: int, random: Random, minor: tuple[str, ...] = ()
    ) -> Iterator[SimDisk]:
        """Up to `limit` disks that a restart after a power cut might find, the telling ones
        first.

        Args:
            minor: Names of files that nobody relies on: what is left of them is left to chance.
        """
        for tree in Wreck(self.root, self._newest, minor).states(limit, random):
            yield SimDisk(tree)

    def killed(self) -> SimDisk:
        """The disk after the process alone was killed: all is there, and still not synced."""
        return SimDisk(self._copy(survives=False))

    def stripped(self) -> SimDisk:
        """The disk after a power cut that took everything that was not synced."""
        wreck = Wreck(self.root)
        return SimDisk(wreck.tree([0] * len(wreck.names), [file.nothing for file in wreck.files]))

    def fingerprint(self, path: str = "", ignored: tuple[str, ...] = ()) -> int:
        """A number that equal trees share within a process.

        Args:
            path: Where the tree begins.
            ignored: Endings of names that do not count.
        """

        def of(at: Inode | Directory) -> object:
            if isinstance(at, Inode):
                return at.data if isinstance(at.data, bytes) else bytes(at.data)
            names = sorted(at.entries)
            return tuple(
                [(name, of(at.entries[name])) for name in names if not name.endswith(ignored)]
            )

        found = self._find(path)
        return 0 if found is None else hash(of(found))

    def has_two_names(self, path: str) -> bool:
        """Whether a file of this directory stands there under two names: a rename by half."""
        found = self._find(path)
        entries = found.entries.values() if isinstance(found, Directory) else ()
        return len(set(map(id, entries))) < len(entries)

    @property
    def used(self) -> int:
        """Bytes of all files together."""
        return self._total(self.root)

    def file(self, path: str) -> bytearray:
        """The bytes of a file, to be read and damaged."""
        inode = self._find(path)
        assert isinstance(inode, Inode)
        return _bytes_of(inode)

    def damage(self, path: str, change: Callable[[bytearray], None]) -> None:
        """Changes a file behind everybody's back, as if it had always been so on the medium."""
        inode = self._find(path)
        assert isinstance(inode, Inode)
        change(_bytes_of(inode))
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
        if not isinstance(found, Inode):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        self._look("open", path)
        fd = self._next_fd
        self._next_fd += 1
        self._open[fd] = (found, path, writable)
        return fd

    def close(self, fd: int) -> None:
        self._file(fd)
        del self._open[fd]
        self._locked.discard(fd)

    def size(self, fd: int) -> int:
        return len(self._file(fd).data)

    def read(self, fd: int, length: int, position: int) -> bytes:
        inode, path, _ = self._opened(fd)
        self._look("read", path)
        return bytes(inode.data[position : position + length])

    def read_now(self, fd: int, length: int, position: int) -> bytes | None:
        return self.read(fd, length, position) if self.caches_reads else None

    def write(
        self, fd: int, buffers: Sequence[bytes | bytearray | memoryview], position: int
    ) -> None:
        inode, path = self._writable(fd)
        data = b"".join(buffers)
        try:
            self._operation("write", path)
            if self.bytes_max is not None:
                growth = max(position + len(data) - len(inode.data), 0)
                if growth and self._total(self.root) + growth > self.bytes_max:
                    raise OSError(errno.ENOSPC, "the disk is full", path)
        except ShortWrite as short:
            self._put(inode, position, data[: short.taken])
            raise short.error from None
        self._put(inode, position, data)

    def truncate(self, fd: int, size: int) -> None:
        inode, path = self._writable(fd)
        self._operation("truncate", path)
        resize(_bytes_of(inode), size)
        inode.unsynced.append(size)
        self._newest = inode

    def sync(self, fd: int) -> None:
        inode, path, _ = self._opened(fd)
        try:
            self._operation("sync", path)
        except OSError:
            # The kernel calls the pages clean: they can be read, but no later sync writes them.
            inode.unsynced.clear()
            inode.forgot = True
            raise
        inode.synced = replayed(inode) if inode.forgot else bytes(inode.data)
        inode.unsynced.clear()

    def rename(self, old: str, new: str) -> None:
        (source, old_name), (target, new_name) = self._parent(old), self._parent(new)
        found = source.entries.get(old_name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", old)
        if isinstance(target.entries.get(new_name), Directory):
            raise IsADirectoryError(errno.EISDIR, "is a directory", new)
        self._operation("rename", new)
        target.entries[new_name] = found
        target.unsynced.append((new_name, found))
        if found is not source.entries.get(old_name) or (source, old_name) != (target, new_name):
            del source.entries[old_name]
            source.unsynced.append((old_name, None))

    def unlink(self, path: str) -> None:
        steps, name = _split(path)
        parent = self._at(steps)
        if parent is None or name not in _directory(parent, path).entries:
            return
        parent = _directory(parent, path)
        if isinstance(parent.entries[name], Directory):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        self._operation("unlink", path)
        del parent.entries[name]
        parent.unsynced.append((name, None))

    def make_directory(self, path: str) -> None:
        at = self.root
        for name in _steps(path):
            found = at.entries.get(name)
            if found is None:
                self._operation("mkdir", path)
                found = Directory()
                at.entries[name] = found
                at.unsynced.append((name, found))
            if not isinstance(found, Directory):
                raise FileExistsError(errno.EEXIST, "is a file", path)
            at = found

    def remove_directory(self, path: str) -> None:
        steps, name = _split(path)
        parent = self._at(steps)
        if parent is None or name not in _directory(parent, path).entries:
            return
        parent = _directory(parent, path)
        if not _directory(parent.entries[name], path).entries:
            self._operation("rmdir", path)
            del parent.entries[name]
            parent.unsynced.append((name, None))

    def list(self, path: str) -> list[str]:
        self._look("list", path)
        found = self._find(path)
        return [] if found is None else sorted(_directory(found, path).entries)

    def sync_directory(self, path: str) -> None:
        found = self._find(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        found = _directory(found, path)
        self._operation("sync directory", path)
        found.synced = dict(found.entries)
        found.unsynced.clear()

    def lock(self, fd: int) -> bool:
        inode = self._file(fd)
        if any(self._open[other][0] is inode for other in self._locked - {fd}):
            return False
        self._locked.add(fd)
        return True

    # ---- inside

    def _copy(self, *, survives: bool) -> Directory:
        """The whole tree as it is now; what `survives` is as good as synced."""
        made: dict[int, Inode | Directory] = {}

        def copy(at: Inode | Directory) -> Inode | Directory:
            known = made.get(id(at))
            if known is not None:
                return known
            if isinstance(at, Inode):
                data = bytes(at.data)
                inode = (
                    Inode(data, data)
                    if survives
                    else Inode(data, at.synced, [*at.unsynced], at.forgot)
                )
                made[id(at)] = inode
                return inode
            left = made[id(at)] = Directory()
            left.entries = {name: copy(entry) for name, entry in at.entries.items()}
            if survives:
                left.synced = dict(left.entries)
            else:
                left.synced = {name: copy(entry) for name, entry in at.synced.items()}
                left.unsynced = [(name, entry and copy(entry)) for name, entry in at.unsynced]
            return left

        root = copy(self.root)
        assert isinstance(root, Directory)
        return root

    def _operation(self, name: str, path: str) -> None:
        self.operations += 1
        self.log.append(f"{name} {path}")
        if self.fails is not None:
            self.fails(self.operations, name, path)

    def _look(self, name: str, path: str) -> None:
        self.looks += 1
        if self.looks_fail is not None:
            self.looks_fail(self.looks, name, path)

    def _put(self, inode: Inode, position: int, data: bytes) -> None:
        if data:
            put(_bytes_of(inode), position, data)
            inode.unsynced.append((position, data))
            self._newest = inode

    def _opened(self, fd: int) -> tuple[Inode, str, bool]:
        found = self._open.get(fd)
        if found is None:
            raise OSError(errno.EBADF, "the descriptor is closed")
        return found

    def _file(self, fd: int) -> Inode:
        return self._opened(fd)[0]

    def _writable(self, fd: int) -> tuple[Inode, str]:
        inode, path, writable = self._opened(fd)
        if not writable:
            raise OSError(errno.EBADF, "the descriptor is for reading", path)
        return inode, path

    def _find(self, path: str) -> Inode | Directory | None:
        return self._at(_steps(path))

    def _at(self, steps: tuple[str, ...]) -> Inode | Directory | None:
        at: Inode | Directory | None = self.root
        for name in steps:
            if not isinstance(at, Directory):
                if at is not None:
                    raise NotADirectoryError(errno.ENOTDIR, "is a file", "/".join(steps))
                return None
            at = at.entries.get(name)
        return at

    def _parent(self, path: str) -> tuple[Directory, str]:
        steps, name = _split(path)
        parent = self._at(steps)
        if parent is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return _directory(parent, path), name

    def _total(self, at: Inode | Directory) -> int:
        if isinstance(at, Inode):
            return len(at.data)
        return sum([self._total(entry) for entry in at.entries.values()])


@lru_cache(4096)
def _steps(path: str) -> tuple[str, ...]:
    return tuple([name for name in path.split("/") if name not in ("", ".")])


@lru_cache(4096)
def _split(path: str) -> tuple[tuple[str, ...], str]:
    steps = _steps(path)
    return steps[:-1], steps[-1]


def _directory(found: Inode | Directory, path: str) -> Directory:
    if isinstance(found, Inode):
        raise NotADirectoryError(errno.ENOTDIR, "is a file", path)
    return found


def _bytes_of(inode: Inode) -> bytearray:
    """The file's bytes, ready to be changed; until then survivors share theirs."""
    data = inode.data
    if isinstance(data, bytes):
        data = inode.data = bytearray(data)
    return data
