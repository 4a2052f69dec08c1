"""FetchMatching: records of one partition of every topic whose name a pattern means.

The topics are read one after the other, each from the offset asked for; a read that blocks is
waited for before the next begins, and after many others have their turn. Nothing is waited for
where there is nothing to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import FetchedMatching
from dragoman.core.cut import size_of
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.interface import WorkLane
from dragoman.core.outcome import Outcome
from dragoman.core.pattern import compiled
from dragoman.core.reader import Read, fetched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import BatchSlice, Fetched, FetchMatching
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.error import Failure
    from dragoman.core.interface import Work
    from dragoman.core.offset import Offsets
    from dragoman.core.outcome import Client
    from dragoman.core.partition import Partition
    from dragoman.core.reader import Reader
    from dragoman.core.store import StoreDamage
    from dragoman.core.waiting import Waiting


PARTITIONS_AT_ONCE = 1000
"""After so many partitions, a few milliseconds, others have their turn."""


class Pause:
    """A step through a thread and back, in which others are served."""

    lane = WorkLane.READ

    def __init__(self) -> None:
        self.batches: list[RecordBatch] = []
        self.error: StoreDamage | None = None

    def run(self) -> None:
        """Does nothing."""


class Gathering:
    """A FetchMatching under way, and the `state` of its outcome while a read blocks.

    Attributes:
        left: The partitions that are still to be read.
        read: Of the partition that is read now; None between two.
        parts: What was read of the others.
        bytes_left: What remains of the limit for all together.
        sequence: What the reply reveals so far.
    """

    __slots__ = ("bytes_left", "client", "left", "parts", "read", "request", "sequence")

    def __init__(
        self, request: FetchMatching, client: Client, left: Iterator[Partition], sequence: int
    ) -> None:
        self.request = request
        self.client = client
        self.left = left
        self.read: Read | None = None
        self.parts: list[Fetched] = []
        self.bytes_left = request.bytes_max
        self.sequence = sequence


class Matching:
    """Serves FetchMatching.

    Attributes:
        records: Given out since the start.
    """

    def __init__(
        self, directory: Directory, offsets: Offsets, reader: Reader, waiting: Waiting
    ) -> None:
        self._directory = directory
        self._offsets = offsets
        self._reader = reader
        self._waiting = waiting
        self.records = 0

    def fetch(self, request: FetchMatching, client: Client, now: Now) -> Outcome:
        """Reads the topics that match, in the order of their names."""
        left = iter(self._partitions(request))
        gathering = Gathering(request, client, left, self._directory.sequence)
        work = self._gather(gathering)
        if work is None:
            return self._waiting.answer(client, self._reply(gathering), gathering.sequence)
        outcome = Outcome(None, ready=False)
        outcome.state = gathering
        self._waiting.keep(client, outcome)
        self._reader.submit(work, outcome, self)
        return outcome

    def read_ended(
        self, outcome: Outcome, batches: list[RecordBatch], error: EngineError | None
    ) -> None:
        """A read that blocked ended."""
        gathering = outcome.state
        if gathering is None:
            return
        reply: FetchedMatching | Failure
        try:
            if (read := gathering.read) is not None:
                if read.partition.dropped:
                    self._pass_over(gathering, read.partition)
                elif error is not None:
                    raise error
                else:
                    self._take(gathering, read, batches)
            work = self._gather(gathering)
            if work is not None:
                self._reader.submit(work, outcome, self)
                return
            reply = self._reply(gathering)
        except EngineError as failed:
            reply = failed.failure()
        self._waiting.let_go(gathering.client, outcome)
        self._waiting.settle(outcome, gathering.client, reply, gathering.sequence)

    def cancel(self, outcome: Outcome) -> None:
        """Nobody waits for this any more."""
        self._waiting.let_go(outcome.state.client, outcome)
        outcome.state = None

    def _partitions(self, request: FetchMatching) -> list[Partition]:
        directory = self._directory
        namespace = directory.namespace(request.namespace)
        matches = compiled(request.pattern).match
        names = sorted([name for name in namespace.topics if matches(name)])
        if not names:
            raise EngineError(
                ErrorCode.UNKNOWN_TOPIC, "no topic has such a name", topic=request.pattern
            )
        number = request.partition
        found = [directory.topics[namespace.topics[name].topic_id].partitions for name in names]
        partitions = [topic[number] for topic in found if 0 <= number < len(topic)]
        if not partitions:
            raise EngineError(
                ErrorCode.UNKNOWN_PARTITION,
                "no topic of such a name has this partition",
                partition=number,
            )
        return partitions

    def _gather(self, gathering: Gathering) -> Work | None:
        """Reads until all is read, or a limit is met; or returns what is waited for."""
        request = gathering.request
        left_at_once = PARTITIONS_AT_ONCE
        while True:
            read = gathering.read
            if read is None:
                if not left_at_once:
                    return Pause()
                left_at_once -= 1
                partition = next(gathering.left, None)
                if partition is None or gathering.bytes_left <= 0 or request.records_max <= 0:
                    return None
                if partition.dropped:
                    self._pass_over(gathering, partition)
                    continue
                start, since_us = self._reader.start(partition, request, strict=False)
                read = gathering.read = Read(
                    partition,
                    start,
                    since_us,
                    request.records_max,
                    gathering.bytes_left,
                    request.record_overhead,
                    request.count_all,
                )
            if read.start >= read.partition.high_watermark:
                self._add(gathering, read, [], read.start)
                continue
            found = self._reader.batches(read)
            if not isinstance(found, list):
                return found
            self._take(gathering, read, found)

    def _pass_over(self, gathering: Gathering, partition: Partition) -> None:
        """The partition is gone since it was asked for, which the reply tells."""
        gathering.read = None
        gathering.sequence = max(gathering.sequence, partition.topic.sequence)

    def _take(self, gathering: Gathering, read: Read, batches: list[RecordBatch]) -> None:
        slices, next_offset = self._reader.take(read, batches)
        if not slices and read.start < next_offset < read.partition.high_watermark:
            read.start = next_offset  # compaction left nothing up to there
        else:
            self._add(gathering, read, slices, next_offset)

    def _add(
        self, gathering: Gathering, read: Read, slices: list[BatchSlice], next_offset: int
    ) -> None:
        """The partition has been read."""
        gathering.read = None
        request = gathering.request
        partition = read.partition
        topic = partition.topic
        committed = None
        gathering.sequence = max(gathering.sequence, topic.sequence, partition.start_sequence)
        if request.group:
            committed = self._offsets.committed(partition, request.kind, request.group)
            revealed = self._offsets.revealed_by(topic, request.kind, request.group)
            gathering.sequence = max(gathering.sequence, revealed)
        for batch, first, last in slices:
            gathering.bytes_left -= size_of(
                batch, first, last, request.record_overhead, request.count_all
            )
            self.records += last - first
        gathering.parts.append(fetched(read, slices, next_offset, committed))

    def _reply(self, gathering: Gathering) -> FetchedMatching:
        return FetchedMatching(gathering.request.partition, gathering.parts)
