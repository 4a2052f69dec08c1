"""A store without files: what tests and simulations put under the engine.

It keeps the contract of `core.store` to the letter where the engine could tell the difference:
records cannot be read before their flush was taken, nothing is revealed before its flush has ended,
and `restarted` gives back what was durable and not a record more.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core import change as ch
from dragoman.core.catalog import Catalog
from dragoman.core.compact import Latest, Thinning, is_due
from dragoman.core.cut import first_at_time
from dragoman.core.interface import WorkLane
from dragoman.core.join import can_join, join_batches
from dragoman.core.store import StoreDamage, StoreFull

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.core.batch import RecordBatch
    from dragoman.core.change import Change
    from dragoman.core.clock import Now
    from dragoman.core.interface import Flush, Work

Place = tuple[int, int]
"""Topic id and partition."""

_JOINED_BYTES_MAX = 1 << 20


class Appended(NamedTuple):
    """A batch on its way into the log."""

    place: Place
    batch: RecordBatch


class _Image:
    """The log as far as one point in the sequence: a catalog and the batches of each partition."""

    __slots__ = ("catalog", "logs")

    def __init__(self) -> None:
        self.catalog = Catalog()
        self.logs: dict[Place, list[RecordBatch]] = {}

    def copy(self) -> _Image:
        image = _Image()
        image.catalog = Catalog.from_json(self.catalog.to_json())
        image.logs = {place: list(log) for place, log in self.logs.items()}
        return image

    def fold(self, entry: Change | Appended) -> None:
        """Applies one entry; records of what was dropped or trimmed go with it."""
        if isinstance(entry, Appended):
            place, batch = entry
            if self.catalog.partition(*place) is not None:
                self.logs.setdefault(place, []).append(batch)
                self.catalog.appended(
                    topic_id=place[0],
                    partition=place[1],
                    next_offset=batch.next_offset,
                    timestamp_us=batch.max_timestamp_us,
                )
            return
        self.catalog.apply(entry)
        if isinstance(entry, ch.Trimmed):
            log = self.logs.get((entry.topic_id, entry.partition), [])
            while log and log[0].next_offset <= entry.log_start_offset:
                del log[0]
        elif isinstance(entry, (ch.TopicPut, ch.TopicDropped, ch.NamespaceDropped)):
            for place in [place for place in self.logs if self.catalog.partition(*place) is None]:
                del self.logs[place]


class MemoryFlush:
    """One group: everything that was pending when it was taken."""

    lane = WorkLane.FLUSH
    blocks = True

    def __init__(
        self,
        entries: list[Change | Appended],
        last_sequence: int,
        ends: dict[Place, int],
    ) -> None:
        self.entries = entries
        self.last_sequence = last_sequence
        self.ends = ends

    def run(self) -> None:
        """Nothing to write: memory is as durable as this store gets."""


class MemoryRead:
    """A read that answers later, as a cold read from a disk does."""

    lane = WorkLane.READ

    def __init__(self, batches: list[RecordBatch], error: StoreDamage | None) -> None:
        self._found = batches
        self._damage = error
        self.batches: list[RecordBatch] = []
        self.error: StoreDamage | None = None

    def run(self) -> None:
        """Lets go of what was found."""
        self.batches = self._found
        self.error = self._damage


class MemoryExpiry:
    """A search for what has expired that answers later."""

    lane = WorkLane.READ

    def __init__(self, found: int) -> None:
        self._found = found
        self.start: int | None = None

    def run(self) -> None:
        """Lets go of what was found."""
        self.start = self._found


class MemoryCompact:
    """A pass of compaction over some batches."""

    lane = WorkLane.COMPACT

    def __init__(
        self, place: Place, sources: list[RecordBatch], *, dirty_at: int, tombstones_before_us: int
    ) -> None:
        self.place = place
        self.sources = sources
        self.made: list[RecordBatch] = []
        self.tombstone_us = 0
        self._dirty_at = dirty_at
        self._before_us = tombstones_before_us

    def run(self) -> None:
        """Reads twice and keeps what stays."""
        latest = Latest()
        for batch in self.sources[self._dirty_at :]:
            latest.note(batch)
        end = self.sources[-1].next_offset
        thinning = Thinning(latest, reach=end, tombstones_before_us=self._before_us)
        for thinned in [*map(thinning.add, self.sources), thinning.end(end)]:
            if thinned is not None:
                self.made.append(thinned.batch)
                self.tombstone_us = max(self.tombstone_us, thinned.tombstone_us)

    def take_over(self, log: list[RecordBatch]) -> None:
        """Puts what stays in the place of what was there, less what was trimmed meanwhile."""
        rest = self.sources
        while rest and (not log or rest[0] is not log[0]):
            rest = rest[1:]
        if rest:
            begin = rest[0].base_offset
            log[: len(rest)] = [batch for batch in self.made if batch.next_offset > begin]


class MemoryStore:
    """A `core.store.Store` in memory.

    Attributes:
        catalog, revealed_sequence, failure: As the contract has them.
        blocking_reads: Every read is a `MemoryRead`, so that the way of a cold read is walked.
        damaged: Offset ranges (first, last) that cannot be read, by place.
        visible: What readers beside the engine would see: the high watermark, by place.
    """

    def __init__(
        self,
        *,
        bytes_max: int = 1 << 30,
        blocking_reads: bool = False,
        recovered: _Image | None = None,
    ) -> None:
        self._durable = recovered or _Image()
        self._readable = self._durable.copy()
        self.catalog = self._durable.copy().catalog
        self.revealed_sequence = 0
        self.failure: OSError | None = None
        self.blocking_reads = blocking_reads
        self.damaged: dict[Place, list[tuple[int, int]]] = {}
        self.visible: dict[Place, int] = {}
        self._sequence = 0
        self._bytes = 0
        self._bytes_max = bytes_max
        self._pending: list[Change | Appended] = []
        self._flushing: MemoryFlush | None = None
        self._flushes = 0
        self._compacting: MemoryCompact | None = None
        self._compacting_taken = False
        self._clean: dict[Place, tuple[RecordBatch | None, int]] = {}

    def restarted(self) -> MemoryStore:
        """A store that recovered exactly what this one had made durable."""
        return MemoryStore(
            bytes_max=self._bytes_max,
            blocking_reads=self.blocking_reads,
            recovered=self._durable.copy(),
        )

    def append(self, change: Change) -> int:
        """Takes a change."""
        self._pending.append(change)
        self._sequence += 1
        return self._sequence

    def append_batch(self, topic_id: int, partition: int, batch: RecordBatch) -> int:
        """Takes a placed batch, unless the budget is spent."""
        size = batch.nbytes
        self.check_room(size)
        self._bytes += size
        self._pending.append(Appended((topic_id, partition), batch))
        self._sequence += 1
        return self._sequence

    def check_room(self, nbytes: int) -> None:
        """Refuses what the budget has no room for."""
        if self._bytes + nbytes > self._bytes_max:
            raise StoreFull

    def take_flush(self, now: Now) -> Flush | None:
        """Everything pending, readable from here on; neighbouring batches are joined."""
        if self._flushing is not None or not self._pending or self.failure is not None:
            return None
        entries = _joined(self._pending)
        self._pending = []
        readable = self._readable
        ends: dict[Place, int] = {}
        for entry in entries:
            readable.fold(entry)
            if isinstance(entry, Appended):
                ends[entry.place] = entry.batch.next_offset
        for place in list(ends):
            if readable.catalog.partition(*place) is None:
                del ends[place]
        self._flushing = MemoryFlush(entries, self._sequence, ends)
        return self._flushing

    def flushed(self, work: Flush, error: OSError | None) -> MemoryFlush | None:
        """The group is durable, or the store is fenced."""
        flush = self._flushing
        assert flush is not None
        assert work is flush
        self._flushing = None
        if error is not None:
            self.failure = error
            return None
        for entry in flush.entries:
            self._durable.fold(entry)
        self.revealed_sequence = flush.last_sequence
        self.visible |= flush.ends
        self._flushes += 1
        return flush

    def limit_visible(self, topic_id: int, partition: int, high_watermark: int) -> None:
        """Readers beside the engine see the partition up to here."""
        self.visible[topic_id, partition] = high_watermark

    def take_work(self, now: Now) -> list[Work]:
        """A pass of compaction that was begun: there are no segments and no checkpoints."""
        if self._compacting is None or self._compacting_taken:
            return []
        self._compacting_taken = True
        return [self._compacting]

    def finished(self, work: Work, error: OSError | None) -> None:
        """A pass of compaction ended: what stays takes the place of what was there."""
        done = self._compacting
        assert done is not None
        assert work is done
        self._compacting = None
        self._compacting_taken = False
        for image in (self._durable, self._readable):
            if (log := image.logs.get(done.place)) is not None:
                done.take_over(log)
        self._clean[done.place] = (done.made[-1] if done.made else None, done.tombstone_us)

    def read(
        self, topic_id: int, partition: int, offset: int, bytes_max: int
    ) -> list[RecordBatch] | Work:
        """Batches from the one that holds `offset`, at least one where there is one."""
        log = self._readable.logs.get((topic_id, partition), [])
        found: list[RecordBatch] = []
        damage = None
        at = max(bisect_right(log, offset, key=_base) - 1, 0)
        if at < len(log) and log[at].next_offset <= offset:
            at += 1
        damaged = self.damaged.get((topic_id, partition), ())
        while at < len(log) and (bytes_max > 0 or not found):
            batch = log[at]
            for first, last in damaged:
                if first < batch.next_offset and batch.base_offset <= last:
                    damage = StoreDamage(first, last, "memory")
            if damage is not None:
                break
            found.append(batch)
            bytes_max -= batch.nbytes
            at += 1
        if found:
            damage = None
        if self.blocking_reads:
            return MemoryRead(found, damage)
        if damage is not None:
            raise damage
        return found

    def read_since(
        self, topic_id: int, partition: int, timestamp_us: int, bytes_max: int
    ) -> list[RecordBatch] | Work:
        """Batches from the first that holds a record at or after this time."""
        log = self._readable.logs.get((topic_id, partition), [])
        for batch in log:
            if batch.max_timestamp_us >= timestamp_us:
                return self.read(topic_id, partition, batch.base_offset, bytes_max)
        return []

    def size(self, topic_id: int, partition: int) -> tuple[int, int]:
        """(bytes, 1): a partition in memory is one segment."""
        log = self._readable.logs.get((topic_id, partition), [])
        return sum([batch.nbytes for batch in log]), 1

    def expired(
        self, topic_id: int, partition: int, *, before_us: int, bytes_max: int
    ) -> int | MemoryExpiry | None:
        """By bytes as if each batch but the last were a closed segment."""
        log = self._readable.logs.get((topic_id, partition), [])
        total = sum([batch.nbytes for batch in log])
        start = None
        for batch in log[:-1]:
            if not 0 < bytes_max < total:
                break
            total -= batch.nbytes
            start = batch.next_offset
        if not before_us or not log:
            return start
        young = next((batch for batch in log if batch.max_timestamp_us >= before_us), None)
        by_age = log[-1].next_offset if young is None else first_at_time(young, before_us)
        start = by_age if start is None else max(start, by_age)
        return MemoryExpiry(start) if self.blocking_reads else start

    def compact(
        self, topic_id: int, partition: int, *, up_to: int, tombstones_before_us: int
    ) -> bool:
        """As if each batch but the last were a closed segment."""
        if self._compacting is not None:
            return False
        place = (topic_id, partition)
        closed = self._durable.logs.get(place, [])[:-1]
        sources = [batch for batch in closed if batch.next_offset <= up_to]
        last, tombstone_us = self._clean.get(place, (None, 0))
        dirty_at = next((at for at, batch in enumerate(sources, 1) if batch is last), 0)
        if sources and is_due(
            dirty_bytes=sum([batch.nbytes for batch in sources[dirty_at:]]),
            clean_bytes=sum([batch.nbytes for batch in sources[:dirty_at]]),
            tombstone_us=tombstone_us if dirty_at else 0,
            tombstones_before_us=tombstones_before_us,
        ):
            self._compacting = MemoryCompact(
                place, sources, dirty_at=dirty_at, tombstones_before_us=tombstones_before_us
            )
        return True

    def overloaded(self) -> bool:
        """Whether three quarters of the budget are spent."""
        return 4 * self._bytes > 3 * self._bytes_max

    def begin_close(self, now: Now) -> None:
        """Nothing: every `take_flush` already takes all."""

    def close(self) -> None:
        """Nothing to release."""

    def statistics(self) -> Mapping[str, int | float | str]:
        """Counters and gauges by name."""
        return {
            "store": "memory",
            "store_sequence": self._sequence,
            "store_pending": len(self._pending),
            "store_bytes": self._bytes,
            "store_flushes": self._flushes,
        }


def _base(batch: RecordBatch) -> int:
    return batch.base_offset


def _joined(
    entries: list[Change | Appended],
) -> list[Change | Appended]:
    """The same entries with runs of neighbouring batches of one partition made one batch each."""
    out: list[Change | Appended] = []
    runs: dict[Place, list[RecordBatch]] = {}
    sizes: dict[Place, int] = {}

    def end_runs() -> None:
        for place, run in runs.items():
            out.append(Appended(place, join_batches(run)))
        runs.clear()

    for entry in entries:
        if not isinstance(entry, Appended):
            end_runs()
            out.append(entry)
            continue
        place, batch = entry
        run = runs.get(place)
        if run is not None and can_join(run[-1], batch) and sizes[place] < _JOINED_BYTES_MAX:
            run.append(batch)
            sizes[place] += batch.nbytes
            continue
        if run is not None:
            out.append(Appended(place, join_batches(run)))
        runs[place] = [batch]
        sizes[place] = batch.nbytes
    end_runs()
    return out
