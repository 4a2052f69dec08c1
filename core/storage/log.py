"""One partition's log as the loop knows it: recent batches in memory, the rest in segments.

A batch enters the tail when its flush is taken and stays at least until a segment holds it; after
that it is a cache, evicted oldest first when all tails together pass their budget.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core import change as ch
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.join import GATHERED_BATCHES_MIN, gather
from dragoman.core.storage.segment import Segment, segment_name

if TYPE_CHECKING:
    from dragoman.core.change import Change
    from dragoman.core.storage.layout import Layout

BATCH_OVERHEAD_BYTES = 512
"""What a batch in memory costs beside its columns."""


_EVICTED = RecordBatch(1, VarColumn.single(b""), origin=Origin.NONE)
"""Stands in the tail where a batch was, until the list is shortened."""


class ColdBatches:
    """Batches that were read back from some segments, by base offset; `bases` has the keys sorted.

    Segments that take the place of others begin with a new one, so that what a thread still reads
    from the old ones is never taken for theirs.
    """

    __slots__ = ("bases", "batches")

    def __init__(self) -> None:
        self.batches: dict[int, RecordBatch] = {}
        self.bases: list[int] = []


class PartitionLog:
    """One life of one partition.

    Attributes:
        born: The journal sequence that made it.
        log_start: Records below are gone.
        end: The offset after the last batch whose flush was taken.
        segments: In offset order; the last may still grow.
        bases, tail: The batches in memory, contiguous up to `end`; those before `gone` were
            evicted.
        unwritten: Bytes at rest on their way to a segment.
        cold: Batches read back from the segments as they are now.
        oldest: Offset and time of a record; all before it were older when retention looked.
        dropped: The partition was removed.
    """

    __slots__ = (
        "bases",
        "born",
        "cold",
        "directory",
        "dropped",
        "end",
        "gone",
        "log_start",
        "oldest",
        "partition",
        "segments",
        "tail",
        "topic_id",
        "unwritten",
    )

    def __init__(self, topic_id: int, partition: int, born: int, directory: str) -> None:
        self.topic_id = topic_id
        self.partition = partition
        self.born = born
        self.directory = directory
        self.log_start = 0
        self.end = 0
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self.tail: list[RecordBatch] = []
        self.gone = 0
        self.unwritten = 0
        self.cold = ColdBatches()
        self.oldest = (-1, 0)
        self.dropped = False

    @property
    def tail_start(self) -> int:
        """The first offset in memory; `end` where there is none."""
        return self.bases[self.gone] if self.gone < len(self.bases) else self.end

    def in_tail(self, offset: int, bytes_max: int) -> list[RecordBatch]:
        """Batches from the one that holds `offset` on; `offset` is at or after `tail_start`.

        Small neighbours are joined here, for this reader and all that follow.
        """
        tail = self.tail
        at = max(bisect_right(self.bases, offset) - 1, self.gone)
        if tail[at].next_offset <= offset:
            at += 1
            if at == len(tail):
                return []
        stop = at + 1
        budget = bytes_max - tail[at].nbytes
        while budget > 0 and stop < len(tail):
            budget -= tail[stop].nbytes
            stop += 1
        found = tail[at:stop]
        if stop - at >= GATHERED_BATCHES_MIN:
            gathered = gather(found)
            if len(gathered) < len(found):
                tail[at:stop] = found = gathered
                self.bases[at:stop] = [batch.base_offset for batch in gathered]
        return found

    def forget_tail(self) -> None:
        """Lets go of everything in memory."""
        del self.bases[:], self.tail[:]
        self.gone = 0

    def evict_first(self) -> None:
        """Lets go of the oldest batch in memory."""
        gone = self.gone
        self.tail[gone] = _EVICTED
        self.gone = gone = gone + 1
        if gone > 64 and 2 * gone > len(self.tail):
            del self.tail[:gone]
            del self.bases[:gone]
            self.gone = 0

    def segment_for(self, base: int, length: int, segment_bytes: int) -> tuple[Segment, bool]:
        """The segment that takes the batch at `base`, and whether it is a new one."""
        if self.segments:
            last = self.segments[-1]
            if (
                not last.sealed
                and last.planned_next == base
                and (last.planned + length <= segment_bytes or not last.planned)
            ):
                return last, False
        segment = Segment(f"{self.directory}/{segment_name(base)}", base)
        self.segments.append(segment)
        return segment, True

    def segment_at(self, offset: int) -> Segment | None:
        """The first written segment that holds `offset` or something after it."""
        return self._segment_in(self.segments, offset)

    def segment_now(self, offset: int) -> Segment | None:
        """As `segment_at`, for a thread, beside which the loop may change the list."""
        return self._segment_in(self.segments.copy(), offset)

    @staticmethod
    def _segment_in(segments: list[Segment], offset: int) -> Segment | None:
        at = max(bisect_right(segments, offset, key=_base) - 1, 0)
        while at < len(segments):
            if segments[at].next_offset > offset and segments[at].size:
                return segments[at]
            at += 1
        return None

    def segments_since(self, timestamp_us: int) -> list[Segment]:
        """Those before what is in memory that may hold a record at or after this time."""
        return [
            segment
            for segment in self.segments
            if segment.base < self.tail_start
            and segment.next_offset > self.log_start
            and segment.size
            and segment.max_timestamp_us >= timestamp_us
        ]

    def live_segments(self) -> list[Segment]:
        """Those that still hold a record at or after the log's start."""
        start = self.log_start
        return [segment for segment in self.segments if segment.planned_next > start]

    def trimmed(self, log_start: int) -> list[Segment]:
        """Takes out the written segments that lie below `log_start`, and returns them."""
        segments = self.segments
        count = 0
        while count < len(segments):
            segment = segments[count]
            if segment.planned_next > log_start or segment.planned > segment.size:
                break
            count += 1
        gone = segments[:count]
        del segments[:count]
        return gone

    def seal_below(self, log_start: int) -> None:
        """Closes the last segment where all of it lies below `log_start`, so that its file can
        go."""
        if self.segments and self.segments[-1].planned_next <= log_start:
            self.segments[-1].sealed = True

    def tail_at_time(self, timestamp_us: int) -> int:
        """The first batch in memory with a record at or after this time, else the log's end."""
        at = bisect_left(self.tail, timestamp_us, self.gone, key=_newest)
        return self.bases[at] if at < len(self.bases) else self.end


def _base(segment: Segment) -> int:
    return segment.base


def _newest(batch: RecordBatch) -> int:
    return batch.max_timestamp_us


class _Held(NamedTuple):
    """What was added: where it ends tells when it may go, also once it was joined with others."""

    log: PartitionLog
    end: int
    size: int
    sequence: int


class Tails:
    """The memory of all tails together.

    Attributes:
        bytes_held: What they hold now.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._order: deque[_Held] = deque()
        self.bytes_held = 0

    def add(self, log: PartitionLog, batch: RecordBatch, size: int, sequence: int) -> None:
        """Makes a batch readable; `sequence` is its group's last."""
        if log.tail and log.tail[-1].next_offset != batch.base_offset:
            # A trim moved the start past the old end: what is in memory lies below it.
            log.forget_tail()
        log.bases.append(batch.base_offset)
        log.tail.append(batch)
        log.end = batch.next_offset
        size += BATCH_OVERHEAD_BYTES
        self.bytes_held += size
        self._order.append(_Held(log, batch.next_offset, size, sequence))

    def evict(self, written_sequence: int) -> None:
        """Lets the oldest batches go that segments hold, down to the budget."""
        order = self._order
        while self.bytes_held > self._bytes_max and order and order[0].sequence <= written_sequence:
            log, end, size, _ = order.popleft()
            self.bytes_held -= size
            if log.gone < len(log.tail) and log.tail[log.gone].next_offset == end:
                log.evict_first()


class LogTable:
    """Every partition's log, by (topic id, partition).

    The same changes in the same order give the same table, live and in recovery.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._topics: dict[int, tuple[int, int]] = {}
        self.logs: dict[tuple[int, int], PartitionLog] = {}

    def add(
        self, topic_id: int, partition: int, born: int, *, namespace_number: int, partitions: int
    ) -> PartitionLog:
        """Puts one partition into the table."""
        directory = self._layout.partition_directory(topic_id, partition, born)
        log = PartitionLog(topic_id, partition, born, directory)
        self.logs[topic_id, partition] = log
        self._topics[topic_id] = (namespace_number, partitions)
        return log

    def apply(self, change: Change, sequence: int) -> tuple[list[PartitionLog], list[PartitionLog]]:
        """Follows a change; returns the logs that were (made, dropped)."""
        made: list[PartitionLog] = []
        dropped: list[PartitionLog] = []
        match change:
            case ch.TopicPut():
                topic_id = change.topic_id
                wanted = len(change.partition_created_us)
                _, count = self._topics.get(topic_id, (0, 0))
                self._topics[topic_id] = (change.namespace_number, wanted)
                namespace = change.namespace_number
                made = [
                    self.add(topic_id, p, sequence, namespace_number=namespace, partitions=wanted)
                    for p in range(count, wanted)
                ]
                dropped = [self.logs.pop((topic_id, p)) for p in range(wanted, count)]
            case ch.TopicDropped(topic_id):
                dropped = self._drop(topic_id)
            case ch.NamespaceDropped(number):
                for topic_id in [t for t, (n, _) in self._topics.items() if n == number]:
                    dropped += self._drop(topic_id)
            case ch.Trimmed(topic_id, partition, log_start):
                log = self.logs.get((topic_id, partition))
                if log is not None:
                    log.log_start = max(log.log_start, log_start)
                    log.end = max(log.end, log_start)
                    log.seal_below(log_start)
            case _:
                pass
        for log in dropped:
            log.dropped = True
            log.forget_tail()
        return made, dropped

    def _drop(self, topic_id: int) -> list[PartitionLog]:
        _, count = self._topics.pop(topic_id, (0, 0))
        return [self.logs.pop((topic_id, partition)) for partition in range(count)]
