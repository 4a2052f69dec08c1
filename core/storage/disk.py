"""The disk as the storage floor sees it, and the real one.

Everything that touches a file goes through a `Disk` that was passed in, so that a simulated one can
lose, tear and refuse what a real one may lose, tear and refuse. Paths are strings relative to
nothing: the caller joins them. A failed sync raises `SyncFailed`, which is never retried: after it
the kernel may call lost pages clean.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.column import Buffer

_IOV_MAX = 1024
_FULL = (errno.ENOSPC, errno.EDQUOT)
_PADDING = bytes(1024 * 1024)


class SyncFailed(OSError):
    """A sync failed: what was written since the last one may be lost, whatever is read back."""


def is_full(error: OSError) -> bool:
    """Whether a write failed for want of space, so that it may be tried again later."""
    return error.errno in _FULL and not isinstance(error, SyncFailed)


class Disk(Protocol):
    """Files and directories. Every method may raise OSError."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        """Opens a file and returns its descriptor."""

    def close(self, fd: int) -> None:
        """Gives a descriptor back."""

    def size(self, fd: int) -> int:
        """The file's length in bytes."""

    def read(self, fd: int, length: int, position: int) -> Buffer:
        """Reads `length` bytes, fewer only where the file ends."""

    def read_now(self, fd: int, length: int, position: int) -> Buffer | None:
        """Like `read`, or None where that would have to wait for the device."""

    def write(self, fd: int, buffers: Sequence[Buffer], position: int) -> None:
        """Writes all of the buffers, one after the other."""

    def truncate(self, fd: int, size: int) -> None:
        """Cuts the file."""

    def sync(self, fd: int) -> None:
        """Makes the file's bytes and length durable. Raises SyncFailed."""

    def rename(self, old: str, new: str) -> None:
        """Replaces `new` by `old` at once."""

    def unlink(self, path: str) -> None:
        """Removes a file; one that is gone already is no error."""

    def make_directory(self, path: str) -> None:
        """Makes a directory and its parents; one that is there already is no error."""

    def remove_directory(self, path: str) -> None:
        """Removes a directory; one that is gone already, or not empty, is no error."""

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted; none where there is no such directory."""

    def sync_directory(self, path: str) -> None:
        """Makes the directory's entries durable. Raises SyncFailed."""

    def lock(self, fd: int) -> bool:
        """Takes the file's lock for as long as the descriptor is open; False: another has it."""


def write_zeros(disk: Disk, fd: int, start: int, end: int) -> None:
    """Writes zeros over a range and syncs them piece by piece.

    Why: a later overwrite of written blocks commits no metadata, and small pieces never hold up a
    sync of the same file for long.
    """
    at = start
    while at < end:
        size = min(len(_PADDING), end - at)
        disk.write(fd, [memoryview(_PADDING)[:size]], at)
        disk.sync(fd)
        at += size


def replace_file(disk: Disk, directory: str, name: str, data: bytes, *, durable: bool) -> None:
    """Puts a whole file in place of an older one, so that a reader sees one or the other.

    A temporary file that a crash left is not written to: where the disk does not rename in one
    piece, it may be the very file that has its final name too.
    """
    path, temporary = f"{directory}/{name}", f"{directory}/{name}.tmp"
    disk.unlink(temporary)
    fd = disk.open(temporary, create=True)
    try:
        disk.truncate(fd, 0)
        disk.write(fd, [data], 0)
        if durable:
            disk.sync(fd)
    finally:
        disk.close(fd)
    disk.rename(temporary, path)
    if durable:
        disk.sync_directory(directory)


def read_file(disk: Disk, path: str) -> bytes:
    """The bytes of a whole file."""
    fd = disk.open(path, writable=False)
    try:
        return bytes(disk.read(fd, disk.size(fd), 0))
    finally:
        disk.close(fd)


class RealDisk:
    """The operating system's files, on Linux and macOS."""

    def __init__(self) -> None:
        self._reads_now = hasattr(os, "RWF_NOWAIT") and hasattr(os, "preadv")

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        """Opens a file, mode 0640 where it is made."""
        flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
        return os.open(path, flags | (os.O_CREAT if create else 0), 0o640)

    def close(self, fd: int) -> None:
        """Closes the descriptor."""
        os.close(fd)

    def size(self, fd: int) -> int:
        """The file's length."""
        return os.fstat(fd).st_size

    def read(self, fd: int, length: int, position: int) -> Buffer:
        """Reads until `length` bytes are there or the file ends."""
        data = os.pread(fd, length, position)
        if len(data) == length or not data:
            return data
        parts = [data]
        got = len(data)
        while got < length and (data := os.pread(fd, length - got, position + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def read_now(self, fd: int, length: int, position: int) -> Buffer | None:
        """Reads what the page cache holds whole."""
        if not self._reads_now:
            return None
        data = bytearray(length)
        try:
            got = os.preadv(fd, [data], position, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
            self._reads_now = False
            return None
        if got < length and position + got < os.fstat(fd).st_size:
            return None
        return memoryview(data)[:got]

    def write(self, fd: int, buffers: Sequence[Buffer], position: int) -> None:
        """Writes everything; a short write goes on where it stopped."""
        if len(buffers) == 1:
            data = buffers[0]
            done = os.pwrite(fd, data, position)
            if done == len(data):
                return
            buffers, position = [memoryview(data).cast("B")[done:]], position + done
        rest = list(buffers)
        index = 0
        while index < len(rest):
            done = os.pwritev(fd, rest[index : index + _IOV_MAX], position)
            if not done and len(rest[index]):
                raise OSError(errno.EIO, "the disk took no bytes of a write")
            position += done
            while index < len(rest) and done >= len(rest[index]):
                done -= len(rest[index])
                index += 1
            if done:
                rest[index] = memoryview(rest[index]).cast("B")[done:]

    def truncate(self, fd: int, size: int) -> None:
        """Cuts the file."""
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """`fdatasync`, or `F_FULLFSYNC` where only that reaches the medium."""
        try:
            if sys.platform == "darwin":
                fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            else:
                os.fdatasync(fd)
        except OSError as error:
            raise SyncFailed(error.errno, error.strerror) from error

    def rename(self, old: str, new: str) -> None:
        """Replaces `new` by `old`."""
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        """Removes a file if it is there."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def make_directory(self, path: str) -> None:
        """Makes a directory and its parents where they are missing, mode 0750."""
        os.makedirs(path, 0o750, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        """Removes a directory if it is there and empty."""
        try:
            os.rmdir(path)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                raise

    def list(self, path: str) -> list[str]:
        """The names in a directory."""
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def sync_directory(self, path: str) -> None:
        """Makes a directory's entries durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            raise SyncFailed(error.errno, error.strerror) from error
        finally:
            os.close(fd)

    def lock(self, fd: int) -> bool:
        """`flock`, without waiting."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
