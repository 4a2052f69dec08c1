"""A store driven with keyed records and compaction, and a model that says what may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core import change as ch
from dragoman.core.column import VarColumn
from support.store import Driven, read_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from dragoman.core.storage.disk_store import DiskStore
    from dragoman.simulation.disk import SimDisk

Row = tuple[bytes | None, bytes | None]
"""Key and value."""
FIRST_US = 1_000_000
STEP_US = 1000
"""A driven store stamps offset n with FIRST_US + n * STEP_US, a batch with its first."""


class Keyed:
    """Drives a store and remembers every row that was appended.

    Attributes:
        rows: By partition, in offset order.
        stamps: The time of each row.
        before_us: By partition, the latest time before which tombstones could go.
    """

    def __init__(self, disk: SimDisk, **options: Any) -> None:
        self.driven = Driven(disk, **{"compact_bytes_per_s": 1 << 40, **options})
        self.rows: dict[int, list[Row]] = {}
        self.stamps: dict[int, list[int]] = {}
        self.before_us: dict[int, int] = {}

    @property
    def store(self) -> DiskStore:
        return self.driven.store

    def put(self, rows: Sequence[Row], partition: int = 0, **columns: Any) -> None:
        """Appends one batch; nothing is remembered of what is refused."""
        state = self.store.catalog.partition(1, partition)
        assert state is not None
        stamp = FIRST_US + STEP_US * state.next_offset
        keys = VarColumn.of([key for key, _ in rows])
        values: list[Any] = [value for _, value in rows]
        self.driven.produce(values, partition=partition, keys=keys, **columns)
        self.rows.setdefault(partition, []).extend(rows)
        self.stamps.setdefault(partition, []).extend([stamp] * len(rows))

    def put_random(self, random: Random, partition: int = 0, keys: int = 8) -> None:
        """Appends a few rows, some without key, some without value."""
        rows: list[Row] = []
        for _ in range(random.randint(1, 5)):
            key = b"key-%d" % random.randrange(keys) if random.random() < 0.9 else None
            number = len(self.rows.get(partition, ())) + len(rows)
            value = b"%d." % number * random.randint(1, 40)
            rows.append((key, None if key is not None and random.random() < 0.2 else value))
        self.put(rows, partition)

    def compact(self, partition: int = 0, *, before: int = 0) -> bool:
        """Asks for compaction of what is visible; tombstones before this offset may go."""
        before_us = FIRST_US + STEP_US * before
        self.before_us[partition] = max(self.before_us.get(partition, 0), before_us)
        return self.store.compact(
            1,
            partition,
            up_to=self.driven.revealed.get((1, partition), 0),
            tombstones_before_us=before_us,
        )

    def compact_all(self, partition: int = 0, *, before: int = 0) -> None:
        """Compacts, and lets two checkpoints pass with a change between them."""
        self.driven.settle()
        self.compact(partition, before=before)
        self.driven.advance(31)
        self.driven.change(ch.OffsetPut(1, "group", "g", 0, 1))
        self.driven.advance(31)

    def check(self, store: DiskStore, partition: int = 0) -> dict[int, Row]:
        """What is in the log is what was appended, and what is not may be missing."""
        state = store.catalog.partition(1, partition)
        assert state is not None
        rows = self.rows.get(partition, [])[: state.next_offset]
        assert len(rows) == state.next_offset
        found = read_rows(store, partition)
        assert all(rows[offset] == row for offset, row in found.items())
        newest = {key: offset for offset, (key, _) in enumerate(rows)}
        before_us = self.before_us.get(partition, 0)
        for offset in range(state.log_start_offset, len(rows)):
            if offset in found:
                continue
            key, value = rows[offset]
            assert key is not None, f"record {offset} without a key is gone"
            if value is None and newest[key] == offset:
                assert self.stamps[partition][offset] < before_us, f"tombstone {offset} went early"
            else:
                assert newest[key] > offset, f"the newest of {key!r} at {offset} is gone"
            if value is None:
                older = [at for at in found if at < offset and found[at][0] == key]
                assert not older, f"tombstone {offset} is gone and {older} are there"
        return found


def read_rows(store: DiskStore, partition: int = 0, bytes_max: int = 4096) -> dict[int, Row]:
    """Every row by its offset, from the log's start to its end."""
    state = store.catalog.partition(1, partition)
    assert state is not None
    found: dict[int, Row] = {}
    offset = state.log_start_offset
    while offset < state.next_offset:
        batches = read_at(store, 1, partition, offset, bytes_max)
        assert batches, f"nothing at or after offset {offset} of {state.next_offset}"
        for batch in batches:
            assert batch.next_offset > offset
            for record in batch.records(batch.index_of(offset)):
                found[record.offset] = (record.key, record.value)
            offset = batch.next_offset
    return found
