"""Where the engine keeps its log: the contract that `core.storage.disk_store` and `core.memory`
fulfil.

The engine decides what happens (offsets, names, numbers) and hands each change over in order; the
store makes it durable, keeps records for reading and gives everything back after a restart. Nothing
here blocks but `Work.run`, which a thread calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.core.batch import RecordBatch
    from dragoman.core.catalog import Catalog
    from dragoman.core.change import Change
    from dragoman.core.clock import Now
    from dragoman.core.interface import Flush, Work, WorkLane


class FlushWork(Protocol):
    """One group on its way to the journal.

    Attributes:
        last_sequence: The newest sequence in it.
        ends: The next offset of every partition that it appends to, by (topic id, partition).
    """

    last_sequence: int
    ends: dict[tuple[int, int], int]


class ReadWork(Protocol):
    """A read that may block.

    Attributes:
        batches: After `run`: the batches read, in offset order.
        error: After `run`: the damage met (`StoreDamage`), or None.
    """

    batches: list[RecordBatch]
    error: StoreDamage | None


class ExpiryWork(Protocol):
    """A search for the first record that is not too old, which may block.

    Attributes:
        lane: Where it runs.
        start: After `run`: the log start that retention asks for, or None where that is not known.
    """

    lane: WorkLane
    start: int | None

    def run(self) -> None:
        """Looks."""


class StoreDamage(Exception):
    """Records that were asked for are damaged on disk.

    Attributes:
        first, last: The offsets that cannot be read, inclusive.
        place: File and position, for people.
    """

    def __init__(self, first: int, last: int, place: str) -> None:
        super().__init__(f"offsets {first} to {last} are damaged ({place})")
        self.first = first
        self.last = last
        self.place = place


class StoreFull(Exception):
    """The disk has no room for more records now; nothing was taken."""


class StoreOverloaded(Exception):
    """A budget of memory is spent until the disk has caught up; nothing was taken."""


class Store(Protocol):
    """The log's keeper.

    Attributes:
        catalog: What was recovered; the engine takes it over as its live state.
        revealed_sequence: Everything up to this sequence may be revealed: durable in mode `fsync`,
            written in the relaxed modes.
        failure: Why the store is fenced, or None. A fenced store takes nothing more until restart.
    """

    catalog: Catalog
    revealed_sequence: int
    failure: OSError | None

    def append(self, change: Change) -> int:
        """Takes a change; returns its sequence. The engine has applied it to `catalog` itself."""

    def append_batch(self, topic_id: int, partition: int, batch: RecordBatch) -> int:
        """Takes a placed batch; returns its sequence. Not readable before its flush was taken.

        Batches of one flush that neighbour each other may be joined into one
        (`join.join_batches`).

        Raises:
            StoreFull: The disk is full.
            StoreOverloaded: Too much waits for the disk.
        """

    def check_room(self, nbytes: int) -> None:
        """Refuses, as `append_batch` would, several batches of so many bytes together; once it has
        returned, these are taken.

        Raises:
            StoreFull: The disk is full.
            StoreOverloaded: Too much waits for the disk.
        """

    def take_flush(self, now: Now) -> Flush | None:
        """Everything pending as one group (a `FlushWork`); None where nothing is due or one is
        under way."""

    def flushed(self, work: Flush, error: OSError | None) -> FlushWork | None:
        """The group ended; moves `revealed_sequence` on, or fences the store and returns None."""

    def limit_visible(self, topic_id: int, partition: int, high_watermark: int) -> None:
        """Readers beside the engine see the partition up to here, which may be less than what is
        revealed: replicas hold it back. It holds until the next flush that appends there has ended,
        which shows them all of it."""

    def take_work(self, now: Now) -> list[Work]:
        """Segment writes, checkpoints and deletions that are due, each handed out once."""

    def finished(self, work: Work, error: OSError | None) -> None:
        """A work of `take_work` ended. A `ReadWork` is not handed in here."""

    def read(
        self, topic_id: int, partition: int, offset: int, bytes_max: int
    ) -> list[RecordBatch] | Work:
        """Batches from the one that holds `offset` (or the next after it), to about `bytes_max`
        bytes.

        At least one batch where there is one. Returns a `ReadWork` where reading may block. Does
        not look
        at the high watermark: the caller cuts.

        Raises:
            StoreDamage: The batch at `offset` is damaged.
        """

    def read_since(
        self, topic_id: int, partition: int, timestamp_us: int, bytes_max: int
    ) -> list[RecordBatch] | Work:
        """Batches from the first that holds a record at or after this time; none where all are
        older.

        Exact to the batch; the caller looks inside. Returns a `ReadWork` where looking for it may
        block.
        """

    def size(self, topic_id: int, partition: int) -> tuple[int, int]:
        """(bytes at rest, segments) of a partition."""

    def expired(
        self, topic_id: int, partition: int, *, before_us: int, bytes_max: int
    ) -> int | ExpiryWork | None:
        """The log start that retention asks for, or None where nothing is due.

        It may lie past what is visible or where the log starts already. Returns an `ExpiryWork`,
        which is not handed in to `finished`, where looking may block.

        Args:
            before_us: Records that are older go; 0 for none.
            bytes_max: The oldest closed segments beyond this sum go; 0 for no limit.
        """

    def compact(
        self, topic_id: int, partition: int, *, up_to: int, tombstones_before_us: int
    ) -> bool:
        """Begins to keep only the newest record of each key in a partition's closed segments, if
        that is worth it; what there is to do comes out of `take_work`.

        Args:
            up_to: Only what lies below is touched: the high watermark.
            tombstones_before_us: Tombstones that are older go as well.

        Returns:
            False where it could not be looked at, because another partition is being compacted: ask
            again.
        """

    def overloaded(self) -> bool:
        """Whether tail, pending bytes or journal are above 75 % of their budgets."""

    def begin_close(self, now: Now) -> None:
        """Asks for a last flush and checkpoint."""

    def close(self) -> None:
        """Releases files and the lock; nothing may be under way."""

    def statistics(self) -> Mapping[str, int | float | str]:
        """Counters and gauges by name."""
