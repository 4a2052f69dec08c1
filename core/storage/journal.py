"""The journal's files: which one takes the next group, which are free, what to prepare ahead.

A file `journal/<n>` is written once with zeros and then overwritten in place, from its beginning,
each time its turn comes. So recycling changes no directory entry and a sync commits no metadata.
A file grows by doubling up to `journal_file_bytes`, ahead of need and in a thread; groups are only
ever written where zeros were synced before, and never span two files. A file is free again when a
checkpoint and the one before it both stand beyond everything in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.interface import WorkLane
from dragoman.core.storage.disk import write_zeros
from dragoman.core.storage.group import BLOCK, aligned

if TYPE_CHECKING:
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.layout import Layout
    from dragoman.core.storage.options import StorageOptions

CROWDED_FRACTION = 0.75
"""Above it producers rest."""


class JournalFile:
    """One file.

    Attributes:
        prepared: Bytes that may be written; the file's length.
        position: Where the next group goes while this is the current file.
        last_sequence: The newest sequence that it may hold.
        free: Nothing in it is needed.
    """

    __slots__ = ("fd", "free", "last_sequence", "number", "position", "prepared")

    def __init__(self, number: int, fd: int, prepared: int, last_sequence: int, free: bool) -> None:
        self.number = number
        self.fd = fd
        self.prepared = prepared
        self.position = 0
        self.last_sequence = last_sequence
        self.free = free


class PrepareWork:
    """Makes a journal file, or makes one longer."""

    lane = WorkLane.SEGMENT

    def __init__(
        self, disk: Disk, layout: Layout, number: int, file: JournalFile | None, end: int
    ) -> None:
        self._disk = disk
        self._layout = layout
        self.number = number
        self.file = file
        self.start = file.prepared if file is not None else 0
        self.end = end
        self.fd = file.fd if file is not None else -1

    def run(self) -> None:
        """Writes the zeros and syncs them, and the directory of a new file."""
        if self.fd < 0:
            self.fd = self._disk.open(self._layout.journal_file(self.number), create=True)
            write_zeros(self._disk, self.fd, self.start, self.end)
            self._disk.sync_directory(self._layout.journal)
        else:
            write_zeros(self._disk, self.fd, self.start, self.end)


class Journal:
    """All files of one journal, as the loop sees them; only `PrepareWork` and flushes write.

    Attributes:
        incarnation: This life's number.
        group: The number of the newest group.
        synced_group: The newest group known to be synced.
        exhausted: Every file is needed: only a checkpoint makes room.
    """

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        options: StorageOptions,
        *,
        incarnation: int,
        group: int,
        files: list[JournalFile],
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._options = options
        self.incarnation = incarnation
        self.group = group
        self.synced_group = 0
        self.files = {file.number: file for file in files}
        self.exhausted = False
        self._wanted = 0
        self._preparing: PrepareWork | None = None
        self._current: JournalFile | None = None

    def place(self, length: int) -> JournalFile | None:
        """The file that takes a group of `length` bytes at its `position`, or None for now.

        None: the room is being prepared, or must be (`take_preparation`), or `exhausted`.
        """
        need = aligned(length)
        current = self._current
        if current is not None and current.position + need <= current.prepared:
            self._wanted = 0
            return current
        if current is None or current.position + need > self._options.journal_file_bytes:
            following = self._next_file(need)
            if following is not None:
                following.free = False
                following.position = 0
                self._current = following
                self._wanted = 0
                return following
        self._wanted = need
        return None

    def written(self, file: JournalFile, length: int, last_sequence: int) -> None:
        """A group was handed to the flush that writes it."""
        file.position += aligned(length)
        file.last_sequence = last_sequence

    def free_up_to(self, sequence: int) -> None:
        """Nothing up to `sequence` is needed any more."""
        for file in self.files.values():
            if file is not self._current and file.last_sequence <= sequence:
                file.free = True
        self.exhausted = False

    def take_preparation(self) -> PrepareWork | None:
        """What should be prepared next, if anything; one at a time."""
        if self._preparing is not None:
            return None
        options = self._options
        full = options.journal_file_bytes
        current = self._current
        need = self._wanted
        if current is not None and current.prepared < full:
            short = current.position + need > current.prepared
            fits = current.position + need <= full
            if (need and short and fits) or (not need and 2 * current.position > current.prepared):
                end = max(min(2 * current.prepared, full), current.position + need)
                return self._prepare(current, aligned(end))
        if need or (current is not None and 2 * current.position > full):
            return self._prepare_next(max(need, full if current is not None else 0))
        return None

    def prepared(self, work: PrepareWork, error: OSError | None) -> None:
        """A preparation ended."""
        self._preparing = None
        if error is not None:
            if work.file is None and work.fd >= 0:
                self._disk.close(work.fd)
            return
        if work.file is None:
            self.files[work.number] = JournalFile(work.number, work.fd, work.end, 0, True)
        else:
            work.file.prepared = work.end

    @property
    def used_fraction(self) -> float:
        """How much of the journal's budget is taken."""
        options = self._options
        used = sum(
            [
                file.position if file is self._current else options.journal_file_bytes
                for file in self.files.values()
                if not file.free
            ]
        )
        return used / (options.journal_files_max * options.journal_file_bytes)

    @property
    def is_crowded(self) -> bool:
        """Whether so much is taken that producers rest until a checkpoint has made room."""
        return self.used_fraction > CROWDED_FRACTION

    def close(self) -> None:
        """Closes the files."""
        for file in self.files.values():
            self._disk.close(file.fd)
        self.files.clear()

    def _next_file(self, need: int) -> JournalFile | None:
        for file in self.files.values():
            if file.free and file.prepared >= need:
                if self._preparing is not None and self._preparing.file is file:
                    continue
                return file
        return None

    def _prepare_next(self, need: int) -> PrepareWork | None:
        """Makes one free file at least `need` long, or a new one."""
        options = self._options
        free = [file for file in self.files.values() if file.free]
        if any(file.prepared >= need for file in free):
            return None
        if free:
            return self._prepare(free[0], aligned(need))
        # A start must find room even where a crash left every file needed: one comes on top then.
        if len(self.files) >= options.journal_files_max and self._current is not None:
            self.exhausted = bool(self._wanted)
            return None
        number = max(self.files, default=-1) + 1
        first = options.journal_first_bytes if self._current is None else 0
        end = aligned(max(need, min(first, options.journal_file_bytes), BLOCK))
        self._preparing = PrepareWork(self._disk, self._layout, number, None, end)
        return self._preparing

    def _prepare(self, file: JournalFile, end: int) -> PrepareWork:
        self._preparing = PrepareWork(self._disk, self._layout, file.number, file, end)
        return self._preparing
