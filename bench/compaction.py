"""What compaction does in a second, and how long it holds up the loop.

Run as `python bench/compaction.py [DIRECTORY] [MIB]`; the directory decides which disk is measured.
A log of keyed records is written and compacted while this thread stands for the event loop: it
wakes every millisecond and takes and hands back the store's work, which runs in threads as a
gateway's does. A stall is by how much it woke late or how long a call of the store took. The first
row is the same loop with nothing to do: what the machine alone does to it.
"""

from __future__ import annotations

import sys
import tempfile
from collections import deque
from queue import SimpleQueue
from random import Random
from threading import Thread
from time import monotonic_ns, perf_counter, sleep
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core import change as ch
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.clock import Now
from dragoman.core.column import VarColumn
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.options import StorageOptions

if TYPE_CHECKING:
    from dragoman.core.interface import Work, WorkLane

VALUE = bytes(range(100))
TURN_S = 0.001
IDLE_S = 3.0
MIB = 1 << 20


class Shape(NamedTuple):
    """A log to compact: how its records come, how many keys there are, and the pace."""

    name: str
    records: int
    keys: int
    bytes_per_s: int


SHAPES = (
    Shape("1,000 a batch, 100,000 keys", 1000, 100_000, 1 << 40),
    Shape("10 a batch, 100,000 keys", 10, 100_000, 1 << 40),
    Shape("1,000 a batch, 400,000 keys", 1000, 400_000, 1 << 40),
    Shape("1,000 a batch, 100,000 keys, default pace", 1000, 100_000, 16 * MIB),
)


class Loop:
    """Stands for the event loop and its threads.

    Attributes:
        stall_s: The longest stall.
    """

    def __init__(self, store: DiskStore) -> None:
        self._store = store
        self._done: deque[tuple[Work, OSError | None]] = deque()
        self._queues: dict[WorkLane, SimpleQueue[Work]] = {}
        self.stall_s = 0.0

    def turn(self) -> None:
        """One turn: late or not, then what the store has for the threads and back."""
        before = perf_counter()
        sleep(TURN_S)
        after = perf_counter()
        store = self._store
        while self._done:
            store.finished(*self._done.popleft())
        for work in store.take_work(now()):
            self._queue(work.lane).put(work)
        self.stall_s = max(self.stall_s, after - before - TURN_S, perf_counter() - after)

    def _queue(self, lane: WorkLane) -> SimpleQueue[Work]:
        queue = self._queues.get(lane)
        if queue is None:
            queue = self._queues[lane] = SimpleQueue()
            Thread(target=self._serve, args=(queue,), daemon=True).start()
        return queue

    def _serve(self, queue: SimpleQueue[Work]) -> None:
        while True:
            work = queue.get()
            try:
                work.run()
            except OSError as error:
                self._done.append((work, error))
            else:
                self._done.append((work, None))
            del work


def now() -> Now:
    """The clocks, of which only the running one matters here."""
    us = monotonic_ns() // 1000
    return Now(us, us)


def fill(store: DiskStore, shape: Shape, nbytes: int) -> int:
    """Appends records until the log is that large; returns how many."""
    random = Random(1)
    state = store.catalog.topics[1].partitions[0]
    while store.size(1, 0)[0] < nbytes:
        for _ in range(max(10_000 // shape.records, 1)):
            base = state.next_offset
            keys = [b"key-%012d" % random.randrange(shape.keys) for _ in range(shape.records)]
            batch = RecordBatch(
                shape.records,
                VarColumn.uniform(VALUE * shape.records, len(VALUE), shape.records),
                origin=Origin.NONE,
                keys=VarColumn.of(keys),
            )
            batch.place(base_offset=base, timestamp_us=1, log_epoch=0)
            store.append_batch(1, 0, batch)
            state.next_offset = batch.next_offset
            if shape.records < 64:  # each batch a flush of its own, so that they are not joined
                settle(store)
        settle(store)
    return state.next_offset


def settle(store: DiskStore) -> None:
    """Flushes and writes segments until nothing is due."""
    while (flush := store.take_flush(now())) is not None:
        flush.run()
        store.flushed(flush, None)
    for work in store.take_work(now()):
        work.run()
        store.finished(work, None)


def measure(directory: str, shape: Shape, nbytes: int) -> None:
    """Fills a log, compacts it and prints a row."""
    options = StorageOptions(compact_bytes_per_s=shape.bytes_per_s, scrub_bytes_per_s=0)
    store = DiskStore(directory, options)
    change = ch.TopicPut(1, DEFAULT_NAMESPACE_NUMBER, 1, "bench", 1, [1], {"compact": True})
    store.catalog.apply(change)
    store.append(change)
    records = fill(store, shape, nbytes)
    loop = Loop(store)
    began = perf_counter()
    while perf_counter() - began < IDLE_S:
        loop.turn()
    idle_s, loop.stall_s = loop.stall_s, 0.0
    before = store.size(1, 0)[0]
    began = perf_counter()
    store.compact(1, 0, up_to=records, tombstones_before_us=0)
    while not store.statistics()["store_compactions"]:
        loop.turn()
    took = perf_counter() - began
    stall_s = loop.stall_s
    left = store.size(1, 0)[0]
    print(
        f"{shape.name:<42} {before / MIB:>5.0f} {left / MIB:>5.0f} {records:>10,} {took:>7.1f} "
        f"{before / took / MIB:>7.1f} {1000 * stall_s:>8.1f} {1000 * idle_s:>8.1f}"
    )


def main() -> None:
    """Prints the table."""
    where = sys.argv[1] if len(sys.argv) > 1 else None
    nbytes = int(sys.argv[2]) * MIB if len(sys.argv) > 2 else 256 * MIB
    print(
        f"{'log':<42} {'MiB':>5} {'left':>5} {'records':>10} {'seconds':>7} {'MiB/s':>7} "
        f"{'stall ms':>8} {'idle ms':>8}"
    )
    for shape in SHAPES:
        with tempfile.TemporaryDirectory(dir=where) as directory:
            measure(directory, shape, nbytes)


if __name__ == "__main__":
    main()
