"""Which partitions have an index in memory: as many as fit a budget, the ones used last.

An index that makes the sum too large pushes out the others, the longest unused first; so do those
that are being built, of which the one is refused that makes them too large together. One that is
too large alone, or whose partition has damaged records, is not tried again before the partition's
log start has moved: a whole reading in vain for each request would keep everybody from the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.error import EngineError, ErrorCode

if TYPE_CHECKING:
    from dragoman.core.events.index import Index
    from dragoman.core.partition import Partition


class IndexCache:
    """Keeps indexes within a sum of bytes.

    Attributes:
        nbytes: About what those in use take.
        evicted: How many made room for others since the start.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept: dict[Partition, Index] = {}
        self._refused: dict[Partition, tuple[int, EngineError]] = {}
        self._building: dict[Partition, int] = {}
        self._building_bytes = 0
        self.nbytes = 0
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, partition: Partition) -> Index | None:
        """The partition's index, if it is in use and says what the log says.

        Raises:
            EngineError: It could not be built, and nothing has changed since.
        """
        index = self._kept.get(partition)
        log_start = partition.state.log_start_offset
        if index is None:
            refused = self._refused.get(partition)
            if refused is not None:
                if refused[0] == log_start:
                    raise again(refused[1])
                del self._refused[partition]
            return None
        if not index.follows(log_start):
            self.drop(index)
            return None
        del self._kept[partition]
        self._kept[partition] = index
        return index

    def put(self, index: Index) -> None:
        """Takes an index into use, which is complete."""
        self._kept[index.partition] = index
        self.grown(index, index.nbytes)

    def grown(self, index: Index, nbytes: int) -> None:
        """An index in use became larger, or smaller; others make room, in the end it does."""
        self.nbytes += nbytes
        if self._is_over():
            # It is the last to go.
            self._kept[index.partition] = self._kept.pop(index.partition)
            self._make_room(1)
            if self.nbytes > self._bytes_max:
                self._make_room(0)

    def building(self, index: Index) -> None:
        """An index takes what it takes by now while it is being built; those in use make room.

        Raises:
            EngineError: LIMIT_REACHED, it is too large even alone; OVERLOADED, it is so together
                with others that are being built.
        """
        if index.nbytes > self._bytes_max:
            raise EngineError(
                ErrorCode.LIMIT_REACHED,
                f"the index of the partition's streams takes more than event_index_bytes_max, "
                f"{self._bytes_max} bytes",
            )
        partition = index.partition
        self._building_bytes += index.nbytes - self._building.get(partition, 0)
        self._building[partition] = index.nbytes
        self._make_room(0)
        if self._building_bytes > self._bytes_max:
            raise EngineError(ErrorCode.OVERLOADED, "too many indexes of streams are being built")

    def built(self, partition: Partition) -> None:
        """Building the partition's index ended, well or not."""
        self._building_bytes -= self._building.pop(partition, 0)

    def refuse(self, partition: Partition, error: EngineError) -> None:
        """Building the partition's index failed with this, and would again."""
        self._refused[partition] = (partition.state.log_start_offset, error)

    def drop(self, index: Index) -> None:
        """An index goes; the next one who asks builds it anew."""
        partition = index.partition
        if partition.index is index:
            partition.index = None
        if self._kept.get(partition) is index:
            del self._kept[partition]
            self.nbytes -= index.nbytes

    def dropped(self, partition: Partition) -> None:
        """The partition is gone."""
        if partition.index is not None:
            self.drop(partition.index)
        self._refused.pop(partition, None)

    def _is_over(self) -> bool:
        return self.nbytes + self._building_bytes > self._bytes_max

    def _make_room(self, least: int) -> None:
        """Drops those unused longest until the rest fits, but for the `least` used last."""
        while len(self._kept) > least and self._is_over():
            self.evicted += 1
            self.drop(next(iter(self._kept.values())))


def again(error: EngineError) -> EngineError:
    """The same refusal for one more asker."""
    return EngineError(error.code, error.detail, **error.facts)
