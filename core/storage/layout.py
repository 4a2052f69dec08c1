"""The data directory: its lock, its format number and where everything lies.

::

    LOCK                                 held for the server's life; the holder's pid as text
    FORMAT                               {"format": 1, "oldest_reader": 1}
    journal/<n>                          groups (`storage.journal`)
    topics/<topic>/<partition>-<born>/<base offset>.log     batches (`storage.segment`)
    topics/<topic>/<partition>-<born>/<base offset>-<number>.log     as compaction wrote them
    topics/<topic>/<partition>-<born>/<base offset>….index  a cache, never evidence
    catalog/<sequence>.json              state at a journal sequence (`storage.catalog_file`)
    visible                              what outside readers may see (`storage.visible`)
    reserve                              zeros, given up when the disk is full

Names of topics never become paths: `topic` is its id, never reused, and `born` the journal sequence
that made the partition, so that a partition that was removed and made again has files of its own.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import orjson

from dragoman.core.storage.disk import read_file, replace_file
from dragoman.core.storage.error import StorageError

if TYPE_CHECKING:
    from dragoman.core.storage.disk import Disk

FORMAT = 1
OLDEST_READER = 1


class Layout:
    """The paths of one data directory."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.journal = f"{root}/journal"
        self.topics = f"{root}/topics"
        self.catalog = f"{root}/catalog"
        self.reserve = f"{root}/reserve"

    def journal_file(self, number: int) -> str:
        """The path of a journal file."""
        return f"{self.journal}/{number}"

    def topic_directory(self, topic_id: int) -> str:
        """The directory of a topic."""
        return f"{self.topics}/{topic_id}"

    def partition_directory(self, topic_id: int, partition: int, born: int) -> str:
        """The directory of one life of a partition."""
        return f"{self.topics}/{topic_id}/{partition}-{born}"

    def make(self, disk: Disk) -> None:
        """Makes the directories that are missing, durably.

        Raises:
            StorageError: The directory is of another format, or not one of ours.
        """
        if self.check_ours(disk):
            self._sync_parents(disk)
            text = orjson.dumps({"format": FORMAT, "oldest_reader": OLDEST_READER}) + b"\n"
            replace_file(disk, self.root, "FORMAT", text, durable=True)
        self.check_format(disk)
        for directory in (self.journal, self.topics, self.catalog):
            disk.make_directory(directory)
        disk.sync_directory(self.root)

    def check_ours(self, disk: Disk) -> bool:
        """Makes the directory where it is missing; says whether it is new, so far without a FORMAT.

        Raises:
            StorageError: It holds what is not ours; nothing was touched.
        """
        disk.make_directory(self.root)
        names = [name for name in disk.list(self.root) if name not in ("LOCK", "FORMAT.tmp")]
        if names and "FORMAT" not in names:
            raise StorageError(
                f"{self.root} holds {names[0]!r} but no FORMAT file: it is no data directory"
            )
        return not names

    def _sync_parents(self, disk: Disk) -> None:
        """Makes the entries durable by which a new directory is found."""
        path = self.root
        while path not in (".", "/"):
            path = os.path.dirname(path) or "."
            try:
                disk.sync_directory(path)
            except PermissionError:  # not ours to read, so not made by us either
                return

    def check_format(self, disk: Disk, *, reading: bool = False) -> None:
        """Refuses a directory that this version cannot read, or (unless `reading`) cannot write.

        Raises:
            StorageError: It has no format, or another one.
        """
        try:
            found = orjson.loads(read_file(disk, f"{self.root}/FORMAT"))
            number, oldest = int(found["format"]), int(found["oldest_reader"])
            if not 0 < oldest <= number:
                raise ValueError(number)
        except (FileNotFoundError, NotADirectoryError):
            raise StorageError(f"{self.root} has no FORMAT file: it is no data directory") from None
        except (ValueError, KeyError, TypeError):
            raise StorageError(
                f"{self.root}/FORMAT cannot be read: the directory was damaged or is not ours"
            ) from None
        if oldest > FORMAT or (number > FORMAT and not reading):
            raise StorageError(
                f"{self.root} has format {number}, which this version does not know (it knows "
                f"{FORMAT}): use a newer dragoman"
            )

    def lock(self, disk: Disk) -> int:
        """Takes the directory for this process and returns the descriptor that holds it.

        Raises:
            StorageError: Another process has it.
        """
        path = f"{self.root}/LOCK"
        fd = disk.open(path, create=True)
        if not disk.lock(fd):
            holder = bytes(disk.read(fd, 32, 0)).decode("ascii", "replace").strip() or "unknown"
            disk.close(fd)
            raise StorageError(f"{self.root} is in use by process {holder}")
        disk.truncate(fd, 0)
        disk.write(fd, [f"{os.getpid()}\n".encode()], 0)
        return fd
