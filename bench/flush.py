"""The flush cycle beside bare `fdatasync` on the same disk.

Run as `python bench/flush.py [DIRECTORY]`; the directory decides which disk is measured. A cycle
is what one group costs: `append_batch`, `take_flush`, `run` (one write, one sync) and `flushed`,
called in turn on one thread. "python" is the cycle without the write and the sync. The bare row
writes as many bytes over blocks that were written before, and syncs them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.core import change as ch
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.clock import Now
from dragoman.core.column import VarColumn
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER
from dragoman.core.storage.disk import RealDisk
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.group import aligned
from dragoman.core.storage.options import StorageOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.column import Buffer

CYCLES = 1500
VALUE = b"v" * 100
SHAPES = (
    ("1 record", 1, 1),
    ("64 records, 64 batches", 64, 1),
    ("64 records, 1 batch", 1, 64),
    ("1,000 records, 1 batch", 1, 1000),
    ("64,000 records, 64 batches", 64, 1000),
)


class NoDisk(RealDisk):
    """Takes the journal's writes without doing them, to measure Python alone."""

    def __init__(self) -> None:
        super().__init__()
        self._journal: set[int] = set()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        """Remembers which descriptors are the journal's."""
        fd = super().open(path, create=create, writable=writable)
        self._journal.discard(fd)
        if "/journal/" in path:
            self._journal.add(fd)
        return fd

    def write(self, fd: int, buffers: Sequence[Buffer], position: int) -> None:
        """Writes unless it is the journal."""
        if fd not in self._journal:
            super().write(fd, buffers, position)

    def sync(self, fd: int) -> None:
        """Syncs unless it is the journal."""
        if fd not in self._journal:
            super().sync(fd)


def open_store(directory: str, disk: RealDisk) -> DiskStore:
    """A store with one topic, its journal prepared."""
    store = DiskStore(directory, StorageOptions(journal_first_bytes=64 << 20), disk=disk)
    change = ch.TopicPut(1, DEFAULT_NAMESPACE_NUMBER, 1, "bench", 1, [1], {})
    store.catalog.apply(change)
    store.append(change)
    return store


def cycles(store: DiskStore, batches: int, records: int, count: int) -> list[float]:
    """Seconds of each flush cycle; segment writes happen between them, unmeasured."""
    state = store.catalog.partition(1, 0)
    assert state is not None
    offset = state.next_offset
    blob = VALUE * records
    took = []
    for cycle in range(count):
        now = Now(1_700_000_000_000_000 + cycle, cycle)
        placed = []
        for _ in range(batches):
            values = VarColumn.uniform(blob, len(VALUE), records)
            batch = RecordBatch(records, values, origin=Origin.NONE)
            batch.place(base_offset=offset, timestamp_us=now.wall_us, log_epoch=0)
            offset += records
            placed.append(batch)
        began = perf_counter()
        for batch in placed:
            store.append_batch(1, 0, batch)
        work = store.take_flush(now)
        while work is None:
            settle(store, now)
            work = store.take_flush(now)
        work.run()
        store.flushed(work, None)
        took.append(perf_counter() - began)
        settle(store, now)
    state.next_offset = offset
    return took


def settle(store: DiskStore, now: Now) -> None:
    """Runs what is due in the other lanes."""
    for work in store.take_work(now):
        work.run()
        store.finished(work, None)


def bare(directory: str, size: int, count: int) -> list[float]:
    """Seconds of a write over written blocks with its sync."""
    path = os.path.join(directory, "bare")
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    data = b"x" * size
    span = min(max(1 << 20, 8 * size), 64 << 20) // size * size
    for at in range(0, span, size):
        os.pwrite(fd, data, at)
    os.fsync(fd)
    took = []
    for cycle in range(count):
        began = perf_counter()
        os.pwrite(fd, data, cycle * size % span)
        os.fdatasync(fd)
        took.append(perf_counter() - began)
    os.close(fd)
    os.unlink(path)
    return took


def quantile(values: list[float], part: float) -> float:
    """The value below which so large a part of them lies."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)]


def main() -> None:
    """Prints the table."""
    place = sys.argv[1] if len(sys.argv) > 1 else "."
    print(
        f"{'a group of':30} {'python':>9} {'cycle p50':>10} {'p99':>9} {'bare p50':>9} {'p99':>9}"
    )
    for name, batches, records in SHAPES:
        count = max(CYCLES // max(1, batches * records // 500), 40)
        with tempfile.TemporaryDirectory(dir=place) as directory:
            store = open_store(f"{directory}/python", NoDisk())
            alone = cycles(store, batches, records, count)
            store.close()
            store = open_store(f"{directory}/data", RealDisk())
            real = cycles(store, batches, records, count)
            store.close()
            size = aligned(batches * records * 104 + 200)
            floor = bare(directory, size, count)
        print(
            f"{name:30} {1e6 * median(alone):6.0f} us {1e3 * median(real):7.3f} ms "
            f"{1e3 * quantile(real, 0.99):6.2f} ms {1e3 * median(floor):6.3f} ms "
            f"{1e3 * quantile(floor, 0.99):6.2f} ms"
        )


if __name__ == "__main__":
    main()
