"""Which journal descriptors are due a sync, as the durability mode has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.storage.options import Durability

if TYPE_CHECKING:
    from dragoman.core.clock import Now
    from dragoman.core.storage.options import StorageOptions


class DueSync:
    """Remembers what was written and not synced yet; in mode `interval` for its window."""

    def __init__(self, options: StorageOptions) -> None:
        self._options = options
        self._unsynced: dict[int, None] = {}
        self._records = 0
        self._since_us = 0

    def with_group(self, fd: int, records: int, now: Now) -> list[int]:
        """What to sync with a group that goes to `fd`."""
        options = self._options
        if options.durability is Durability.FSYNC:
            return [fd]
        if options.durability is Durability.OS:
            return []
        if not self._unsynced:
            self._since_us = now.mono_us
        self._unsynced[fd] = None
        self._records += records
        waited_us = now.mono_us - self._since_us
        if self._records < options.flush_records and waited_us < 1000 * options.flush_ms:
            return []
        return self._take()

    def alone(self, now: Now, *, hurry: bool) -> list[int]:
        """What to sync although nothing new is pending."""
        if not self._unsynced:
            return []
        waited_us = now.mono_us - self._since_us
        if waited_us < 1000 * self._options.flush_ms and not hurry:
            return []
        return self._take()

    def _take(self) -> list[int]:
        syncs = list(self._unsynced)
        self._unsynced.clear()
        self._records = 0
        return syncs
