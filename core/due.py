"""Things by the time at which something is due for them."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")


class Due(Generic[T]):
    """Things by the time at which something is due for them; forgetting one costs nothing.

    A heap whose forgotten entries are swept once they are the majority, so that long polls answered
    early do not pile up until their deadlines.
    """

    def __init__(self) -> None:
        self._due: dict[T, int] = {}
        self._heap: list[tuple[int, int, T]] = []
        self._count = 0

    def put(self, thing: T, due_us: int) -> None:
        """Something is due at `due_us` (`Now.mono_us`), and no more at any earlier time."""
        self._due[thing] = due_us
        self._count += 1
        heappush(self._heap, (due_us, self._count, thing))
        if len(self._heap) > 2 * len(self._due) + 64:
            due = self._due
            self._heap = [entry for entry in self._heap if due.get(entry[2]) == entry[0]]
            heapify(self._heap)

    def forget(self, thing: T) -> None:
        """Nothing is due any more."""
        self._due.pop(thing, None)

    def take_due(self, now_us: int, count_max: int = 1 << 62) -> list[T]:
        """Removes and returns what is due by now, at most so many."""
        heap = self._heap
        due = self._due
        taken: list[T] = []
        while heap and heap[0][0] <= now_us and len(taken) < count_max:
            at, _, thing = heappop(heap)
            if due.get(thing) == at:
                del due[thing]
                taken.append(thing)
        return taken

    def __len__(self) -> int:
        return len(self._due)
