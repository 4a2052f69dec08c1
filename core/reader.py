"""Where reading begins and what is read: shared by fetches, long polls and follows.

A read is answered from memory where the store can, and by a work in a thread where it cannot.
Nobody reads at or past the high watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dragoman.core.calls import Fetched, Whence
from dragoman.core.cut import cut, first_at_time
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.store import StoreDamage

if TYPE_CHECKING:
    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import BatchSlice, Fetch, FetchMatching, Follow
    from dragoman.core.interface import Work
    from dragoman.core.offset import Offsets
    from dragoman.core.outcome import Outcome
    from dragoman.core.partition import Partition
    from dragoman.core.store import ReadWork, Store

_OFFSET = Whence.OFFSET

READ_BYTES_MIN = 16_384
"""The least that is read at a time: a limit counts values, the store counts batches at rest."""


class ColdReader(Protocol):
    """Whoever asked for a read that blocks."""

    def read_ended(
        self, outcome: Outcome, batches: list[RecordBatch], error: EngineError | None
    ) -> None:
        """The read ended, well or not."""


class Read:
    """One reader's place and limits, from its first look until it has its records.

    Attributes:
        start: Where reading begins; moves on to the first record at or after `since_us`.
        since_us: Records appended before this time are passed over; 0 for none.
        records_max, bytes_max, record_overhead, count_all: As `Fetch` has them.
    """

    __slots__ = (
        "bytes_max",
        "count_all",
        "partition",
        "record_overhead",
        "records_max",
        "since_us",
        "start",
    )

    def __init__(
        self,
        partition: Partition,
        start: int,
        since_us: int,
        records_max: int,
        bytes_max: int,
        record_overhead: int = 0,
        count_all: bool = False,
    ) -> None:
        self.partition = partition
        self.start = start
        self.since_us = since_us
        self.records_max = records_max
        self.bytes_max = bytes_max
        self.record_overhead = record_overhead
        self.count_all = count_all


class Reader:
    """Reads partitions up to their high watermarks."""

    def __init__(self, store: Store, offsets: Offsets) -> None:
        self._store = store
        self._offsets = offsets
        self._due: list[Work] = []
        self._under_way: dict[int, tuple[Work, Outcome, ColdReader]] = {}
        self.cold_reads = 0

    def start(
        self, partition: Partition, request: Fetch | FetchMatching | Follow, strict: bool
    ) -> tuple[int, int]:
        """Resolves `whence`: the offset to begin at, and the time before which records are passed
        over (0 for none).

        Raises:
            EngineError: OFFSET_OUT_OF_RANGE, INVALID_OFFSET.
        """
        whence = request.whence
        offset = request.offset
        log_start = partition.state.log_start_offset
        since_us = 0
        if whence is _OFFSET:
            if offset < 0:
                raise EngineError(
                    ErrorCode.INVALID_OFFSET, "an offset is 0 or more", requested=offset
                )
        elif whence is Whence.COMMITTED or whence is Whence.MAX_COMMITTED:
            committed = self._offsets.committed(partition, request.kind, request.group)
            if committed is not None:
                offset = committed if whence is Whence.COMMITTED else max(committed, offset)
        elif whence is Whence.COMMITTED_OR_LATEST:
            committed = self._offsets.committed(partition, request.kind, request.group)
            offset = partition.high_watermark if committed is None else committed
        elif whence is Whence.EARLIEST:
            offset = log_start
        elif whence is Whence.LATEST:
            offset = partition.high_watermark
        elif whence is Whence.LAST:
            offset = max(partition.high_watermark - max(offset, 0), log_start)
        else:
            since_us = max(offset, 0)
            offset = log_start
        if offset < log_start:
            if strict:
                raise EngineError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"offset {offset} is below the log start {log_start}",
                    requested=offset,
                    earliest=log_start,
                    latest=partition.high_watermark,
                )
            offset = log_start
        return offset, since_us

    def batches(self, read: Read) -> list[RecordBatch] | Work:
        """The stored batches at the read's place, or the work that gets them.

        Raises:
            EngineError: DAMAGED.
        """
        partition = read.partition
        if read.start < partition.state.log_start_offset:
            read.start = partition.state.log_start_offset
        bytes_max = max(read.bytes_max, READ_BYTES_MIN)
        store = self._store
        try:
            if read.since_us:
                return store.read_since(
                    partition.topic_id, partition.number, read.since_us, bytes_max
                )
            return store.read(partition.topic_id, partition.number, read.start, bytes_max)
        except StoreDamage as damage:
            raise damaged(damage) from None

    def take(self, read: Read, batches: list[RecordBatch]) -> tuple[list[BatchSlice], int]:
        """Cuts what was asked for out of batches; reads on where they ended before the limits did.

        Returns the slices and where to read next. Without slices the read's place has moved past
        what was passed over.
        """
        partition = read.partition
        high_watermark = partition.high_watermark
        if read.since_us:
            batches = self._after_time(read, batches)
        result = cut(
            batches,
            offset=read.start,
            high_watermark=high_watermark,
            records_max=read.records_max,
            bytes_max=read.bytes_max,
            record_overhead=read.record_overhead,
            count_all=read.count_all,
        )
        slices = result.slices
        while slices and not result.is_full and result.bytes_left > 0:
            if result.next_offset < partition.state.log_start_offset:
                break  # what was read was deleted meanwhile, and what follows is not its neighbour
            try:
                more = self._store.read(
                    partition.topic_id, partition.number, result.next_offset, result.bytes_left
                )
            except StoreDamage:
                break
            if not isinstance(more, list) or not more:
                break
            result = cut(
                more,
                offset=result.next_offset,
                high_watermark=high_watermark,
                records_max=result.records_left,
                bytes_max=result.bytes_left,
                record_overhead=read.record_overhead,
                count_all=read.count_all,
                is_first=False,
            )
            if not result.slices:
                break
            slices += result.slices
        if slices:
            read.since_us = 0
        return slices, result.next_offset

    def submit(self, work: Work, outcome: Outcome, asker: ColdReader) -> None:
        """Hands out a read that blocks; `asker.read_ended` hears of its end."""
        self.cold_reads += 1
        self._due.append(work)
        self._under_way[id(work)] = (work, outcome, asker)

    def take_work(self) -> list[Work]:
        """The reads to run, each handed out once."""
        due = self._due
        self._due = []
        return due

    def finished(self, work: Work, error: OSError | None) -> bool:
        """A work ended; returns whether it was one of these reads."""
        found = self._under_way.pop(id(work), None)
        if found is None:
            return False
        read: ReadWork = found[0]  # type: ignore[assignment]
        _, outcome, asker = found
        if error is not None:
            failed = EngineError(ErrorCode.STORAGE_FAILED, f"the log cannot be read: {error}")
            asker.read_ended(outcome, [], failed)
        elif read.error is not None and not read.batches:
            asker.read_ended(outcome, [], damaged(read.error))
        else:
            asker.read_ended(outcome, read.batches, None)
        return True

    def __len__(self) -> int:
        return len(self._under_way)

    def _after_time(self, read: Read, batches: list[RecordBatch]) -> list[RecordBatch]:
        since_us = read.since_us
        if not batches:  # all that may be seen is older
            read.start = max(read.start, read.partition.high_watermark)
        for index, batch in enumerate(batches):
            if batch.max_timestamp_us >= since_us:
                read.start = max(read.start, first_at_time(batch, since_us))
                return batches[index:]
            read.start = max(read.start, min(batch.next_offset, read.partition.high_watermark))
        return []


def fetched(
    read: Read, slices: list[BatchSlice], next_offset: int, committed: int | None
) -> Fetched:
    """What a reader is told of its partition as it stands."""
    partition = read.partition
    topic = partition.topic
    return Fetched(
        topic.namespace.name,
        topic.state.name,
        partition.number,
        slices,
        read.start,
        next_offset,
        partition.high_watermark,
        partition.state.log_start_offset,
        committed,
    )


def damaged(damage: StoreDamage) -> EngineError:
    """The refusal of a read that begins inside damaged records."""
    return EngineError(ErrorCode.DAMAGED, str(damage), first=damage.first, last=damage.last)
