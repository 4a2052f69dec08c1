"""What readers outside the server may see: one small file, replaced at most once a second.

::

    visible := json "\\n" "crc32c:" 8 hex digits "\\n"
    json := {"log_epoch", "partitions": [[topic id, partition, log start, high watermark], ...]}

The high watermark is exclusive and is the end of what was revealed. The file is replaced whole and
never synced: after a power cut it may be older than the log, which only hides records for a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from dragoman.core.interface import WorkLane
from dragoman.core.storage.catalog_file import CatalogError, with_checksum, without_checksum
from dragoman.core.storage.disk import read_file, replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.layout import Layout

Place = tuple[int, int]
Ends = tuple[int, int]
"""Log start and high watermark of one partition."""


class VisibleState:
    """What the file says; only `VisibleWork` touches it, one at a time."""

    def __init__(self, log_epoch: int) -> None:
        self.log_epoch = log_epoch
        self.ends: dict[Place, Ends] = {}


class VisibleWork:
    """Replaces the file.

    Args:
        updates: What changed since the last one; None where a partition is gone.
    """

    lane = WorkLane.CHECKPOINT

    def __init__(
        self, disk: Disk, layout: Layout, state: VisibleState, updates: Mapping[Place, Ends | None]
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._state = state
        self.updates = updates

    def run(self) -> None:
        """Writes it beside the old one and renames."""
        ends = self._state.ends
        for place, update in self.updates.items():
            if update is None:
                ends.pop(place, None)
            else:
                ends[place] = update
        data = orjson.dumps(
            {
                "log_epoch": self._state.log_epoch,
                "partitions": [[*place, *pair] for place, pair in sorted(ends.items())],
            }
        )
        replace_file(self._disk, self._layout.root, "visible", with_checksum(data), durable=False)


def read_visible(disk: Disk, layout: Layout) -> dict[Place, Ends]:
    """What the file says now; nothing where it is missing or does not verify."""
    try:
        return check_visible(disk, layout)
    except (OSError, CatalogError):
        return {}


def check_visible(disk: Disk, layout: Layout) -> dict[Place, Ends]:
    """What the file says now.

    Raises:
        CatalogError: It does not verify.
        OSError: It is missing, or cannot be read.
    """
    found = orjson.loads(without_checksum(read_file(disk, f"{layout.root}/visible")))
    return {(topic, number): (start, end) for topic, number, start, end in found["partitions"]}
