"""What the journal's entries since the last checkpoint mean for the catalog, in little room.

Committed offsets, log ends, groups and producers change far more often than anything else, so
between two changes of another kind only the newest of each is kept. The order that matters is kept:
nothing moves across a change that makes, drops, trims or renames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.catalog import ProducerState, put_producer
from dragoman.core.change import GroupPut, OffsetPut, ProducerPut
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
        self._groups: dict[tuple[int, str, str], GroupPut] = {}
        self._producers: dict[tuple[int, int, str], ProducerState] = {}

    @property
    def steps(self) -> int:
        """How much there is to apply."""
        newest = len(self._ends) + len(self._offsets) + len(self._groups) + len(self._producers)
        return len(self._changes) + newest

    def add(self, folds: Iterable[Change | Appended]) -> None:
        """Takes the entries of the next group."""
        for fold in folds:
            if type(fold) is Appended:
                self._ends[fold.topic_id, fold.partition] = fold
            elif type(fold) is OffsetPut:
                key = (fold.topic_id, fold.kind, fold.group, fold.partition)
                self._offsets[key] = fold
            elif type(fold) is ProducerPut:
                producer_key = (fold.topic_id, fold.partition, fold.producer)
                put_producer(self._producers, producer_key, fold)
            elif type(fold) is GroupPut:
                self._groups[fold.namespace_number, fold.topic, fold.group] = fold
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
        changes = self._changes
        changes.extend(self._ends.values())
        changes.extend(self._offsets.values())
        changes.extend(self._groups.values())
        for (topic_id, partition, name), state in self._producers.items():
            for first, last, base in state.ranges:
                changes.append(
                    ProducerPut(
                        topic_id, partition, name, state.epoch, first, last, base, state.last_us
                    )
                )
        self._ends.clear()
        self._offsets.clear()
        self._groups.clear()
        self._producers.clear()


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
