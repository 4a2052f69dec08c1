"""Open segment files: least recently used, and never closed while somebody relies on one.

A descriptor with unsynced writes stays open until its checkpoint, because the kernel reports a
failed write-back once, to the descriptors that are open at that time.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.core.storage.disk import Disk


class OpenFiles:
    """Descriptors by path, shared by all threads.

    Args:
        limit: How many are kept open when nobody uses them; those in use come on top.
    """

    def __init__(self, disk: Disk, limit: int) -> None:
        self._disk = disk
        self._limit = limit
        self._lock = Lock()
        self._used: dict[str, tuple[int, int]] = {}
        self._idle: OrderedDict[str, int] = OrderedDict()
        self._removed: set[str] = set()

    def __len__(self) -> int:
        return len(self._used) + len(self._idle)

    @property
    def used(self) -> int:
        """How many somebody holds."""
        return len(self._used)

    def acquire(self, path: str, *, create: bool = False) -> int:
        """The file's descriptor, which stays open until as many `release` calls."""
        with self._lock:
            found = self._used.get(path)
            if found is not None:
                fd, users = found
                self._used[path] = (fd, users + 1)
                return fd
            idle = self._idle.pop(path, None)
            fd = self._disk.open(path, create=create) if idle is None else idle
            self._used[path] = (fd, 1)
            self._shed()
            return fd

    def release(self, path: str) -> None:
        """Gives one hold back; the least recently used file beyond the limit is closed."""
        with self._lock:
            fd, users = self._used[path]
            if users > 1:
                self._used[path] = (fd, users - 1)
                return
            del self._used[path]
            if path in self._removed:
                self._removed.remove(path)
                self._disk.close(fd)
                return
            self._idle[path] = fd
            self._shed()

    def forget(self, path: str) -> None:
        """Closes a file that is about to be removed, as soon as nobody uses it: an open one would
        keep its room on the disk."""
        with self._lock:
            fd = self._idle.pop(path, None)
            if fd is not None:
                self._disk.close(fd)
            elif path in self._used:
                self._removed.add(path)

    def _shed(self) -> None:
        while self._idle and len(self) > self._limit:
            _, oldest = self._idle.popitem(last=False)
            self._disk.close(oldest)

    def close(self) -> None:
        """Closes everything."""
        with self._lock:
            for fd in [fd for fd, _ in self._used.values()] + list(self._idle.values()):
                self._disk.close(fd)
            self._used.clear()
            self._idle.clear()
