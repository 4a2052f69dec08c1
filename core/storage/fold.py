"""What the journal's entries since the last checkpoint mean for the catalog, in little room.

Committed offsets and log ends are overwritten far more often than anything else changes, so between
two changes of another kind only the newest of each is kept. The order that matters is kept: nothing
moves across a change that makes, drops, trims or renames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.change import OffsetPut
from dragoman.core.storage.flush import Appended

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.core.catalog import Catalog
    from dragoman.core.change import Change


class Folding:
    """Journal entries in order, ready to be applied to the previous catalog.

    Attributes:
        steps: How much there is to apply.
    """

    def __init__(self) -> None:
        self._changes: list[Change | Appended] = []
        self._ends: dict[tuple[int, int], Appended] = {}
        self._offsets: dict[tuple[int, str, str, int], OffsetPut] = {}

    @property
    def steps(self) -> int:
        """How much there is to apply."""
        return len(self._changes) + len(self._ends) + len(self._offsets)

    def add(self, folds: Iterable[Change | Appended]) -> None:
        """Takes the entries of the next group."""
        for fold in folds:
            if type(fold) is Appended:
                self._ends[fold.topic_id, fold.partition] = fold
            elif type(fold) is OffsetPut:
                key = (fold.topic_id, fold.kind, fold.group, fold.partition)
                self._offsets[key] = fold
            else:
                self._settle()
                self._changes.append(fold)

    def apply(self, catalog: Catalog) -> None:
        """Applies everything to the catalog and forgets it."""
        self._settle()
        for fold in self._changes:
            apply_fold(catalog, fold)
        self._changes.clear()

    def _settle(self) -> None:
        self._changes.extend(self._ends.values())
        self._changes.extend(self._offsets.values())
        self._ends.clear()
        self._offsets.clear()


def apply_fold(catalog: Catalog, fold: Change | Appended) -> None:
    """Applies one entry of the journal to a catalog."""
    if isinstance(fold, Appended):
        catalog.appended(
            topic_id=fold.topic_id,
            partition=fold.partition,
            next_offset=fold.next_offset,
            timestamp_us=fold.timestamp_us,
        )
    else:
        catalog.apply(fold)
