"""Driving a store by hand: batches, a clock, and the round of a caller without threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core import change as ch
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.clock import Now
from dragoman.core.column import VarColumn
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.options import StorageOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.interface import Work
    from dragoman.simulation.disk import SimDisk

KIB = 1024
SMALL: dict[str, Any] = {
    "segment_bytes": 4 * KIB,
    "journal_file_bytes": 64 * KIB,
    "journal_first_bytes": 16 * KIB,
    "journal_files_max": 8,
    "reserve_bytes": 8 * KIB,
    "segment_linger_ms": 0,
}
"""Options under which files roll and are recycled within a few hundred records."""


def small_options(**changes: Any) -> StorageOptions:
    """Storage options with small files."""
    return StorageOptions(**{**SMALL, **changes})


class Driven:
    """A DiskStore with a clock, called as a gateway calls it, work running inline.

    Attributes:
        store: The store.
        written: What was appended, by (topic id, partition): the values in offset order.
        revealed: How many of them were revealed.
    """

    def __init__(self, disk: SimDisk | None, directory: str = "data", **options: Any) -> None:
        self.mono_us = 0
        self.disk = disk
        self.store = DiskStore(directory, small_options(**options), disk=disk)
        self.written: dict[tuple[int, int], list[bytes]] = {}
        self.revealed: dict[tuple[int, int], int] = {}

    def now(self) -> Now:
        """A clock that moves by 1 ms a reading."""
        self.mono_us += 1000
        return Now(1_700_000_000_000_000 + self.mono_us, self.mono_us)

    def change(self, change: ch.Change) -> None:
        """Applies a change as the engine does."""
        self.store.catalog.apply(change)
        self.store.append(change)

    def topic(self, topic_id: int = 1, partitions: int = 1) -> None:
        """Makes a topic, or changes its number of partitions."""
        name = f"topic-{topic_id}"
        self.change(
            ch.TopicPut(topic_id, DEFAULT_NAMESPACE_NUMBER, topic_id, name, 1, [1] * partitions, {})
        )

    def produce(
        self, values: Sequence[bytes], topic_id: int = 1, partition: int = 0, **columns: Any
    ) -> None:
        """Appends one batch as the engine does."""
        state = self.store.catalog.partition(topic_id, partition)
        assert state is not None
        batch = RecordBatch(len(values), VarColumn.of(values), origin=Origin.NONE, **columns)
        batch.place(
            base_offset=state.next_offset,
            timestamp_us=1_000_000 + 1000 * state.next_offset,
            log_epoch=self.store.catalog.log_epoch,
        )
        self.store.append_batch(topic_id, partition, batch)
        self.store.catalog.appended(
            topic_id=topic_id,
            partition=partition,
            next_offset=batch.next_offset,
            timestamp_us=batch.max_timestamp_us,
        )
        self.written.setdefault((topic_id, partition), []).extend(values)

    def flush(self) -> bool:
        """One flush, if there is something to flush."""
        work = self.store.take_flush(self.now())
        if work is None:
            return False
        try:
            work.run()
        except OSError as error:
            self.store.flushed(work, error)
            return True
        flush = self.store.flushed(work, None)
        assert flush is not None
        self.revealed.update(flush.ends)
        return True

    def work(self) -> bool:
        """One round of the other lanes."""
        works = self.store.take_work(self.now())
        for work in works:
            try:
                work.run()
            except OSError as error:
                self.store.finished(work, error)
            else:
                self.store.finished(work, None)
        return bool(works)

    def settle(self) -> None:
        """Rounds until nothing is due."""
        while self.flush() | self.work():
            pass

    def advance(self, seconds: float) -> None:
        """Settles, lets time pass, and settles again."""
        self.settle()
        self.mono_us += round(seconds * 1_000_000)
        self.settle()

    def stop(self) -> None:
        """An orderly stop."""
        self.store.begin_close(self.now())
        self.settle()
        self.store.close()


def read_all(
    store: DiskStore, topic_id: int = 1, partition: int = 0, bytes_max: int = 4096
) -> list[bytes | None]:
    """Every value from the log's start to its end; raises what a read raises."""
    state = store.catalog.partition(topic_id, partition)
    assert state is not None
    offset, values = state.log_start_offset, []
    while offset < state.next_offset:
        batches = read_at(store, topic_id, partition, offset, bytes_max)
        assert batches, f"nothing at offset {offset} of {state.next_offset}"
        for batch in batches:
            assert batch.base_offset <= offset < batch.next_offset
            values += [batch.values[i] for i in range(batch.index_of(offset), batch.count)]
            offset = batch.next_offset
    return values


def read_at(
    store: DiskStore, topic_id: int, partition: int, offset: int, bytes_max: int = 4096
) -> list[RecordBatch]:
    """One read, run to its end where it may block."""
    return ended(store.read(topic_id, partition, offset, bytes_max))


def ended(found: list[RecordBatch] | Work) -> list[RecordBatch]:
    """What a read found, run to its end where it may block."""
    if isinstance(found, list):
        return found
    found.run()
    error = found.error  # type: ignore[attr-defined]
    if error is not None:
        raise error
    batches: list[RecordBatch] = found.batches  # type: ignore[attr-defined]
    return batches
