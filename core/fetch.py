"""Fetch: records now, or a long poll until there are some."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dragoman.core.calls import ASSIGNED, Fetched, OffsetKind
from dragoman.core.error import EngineError
from dragoman.core.outcome import Outcome
from dragoman.core.reader import Read, fetched
from dragoman.core.waiting import Deadlines, dropped_failure

if TYPE_CHECKING:
    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import BatchSlice, Fetch
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.groups.coordinator import Coordinator, Turn
    from dragoman.core.offset import Offsets
    from dragoman.core.options import EngineOptions
    from dragoman.core.outcome import Client
    from dragoman.core.partition import Partition, Topic
    from dragoman.core.reader import Reader
    from dragoman.core.topic import Topics
    from dragoman.core.waiting import Waiting


class Poll:
    """The `state` of an outcome that waits for records: a long poll or a cold read.

    Attributes:
        deadline_us: When the poll is answered without records (`Now.mono_us`); 0 for a fetch that
            does not wait.
        turn: Of a group's member that reads where it is assigned, else None.
    """

    __slots__ = ("client", "deadline_us", "read", "request", "turn")

    def __init__(
        self, request: Fetch, client: Client, read: Read, deadline_us: int, turn: Turn | None
    ) -> None:
        self.request = request
        self.client = client
        self.read = read
        self.deadline_us = deadline_us
        self.turn = turn


class Fetching:
    """Serves Fetch.

    Attributes:
        records: Given out since the start.
    """

    def __init__(
        self,
        options: EngineOptions,
        directory: Directory,
        topics: Topics,
        offsets: Offsets,
        reader: Reader,
        waiting: Waiting,
        coordinator: Coordinator,
    ) -> None:
        self._coordinator = coordinator
        self._options = options
        self._directory = directory
        self._topics = topics
        self._offsets = offsets
        self._reader = reader
        self._waiting = waiting
        self._deadlines = Deadlines()
        self._last_mono_us = 0
        self.records = 0

    def fetch(self, request: Fetch, client: Client, now: Now) -> Outcome:
        """Reads records; waits for some where the request asks for that."""
        if request.create_partitions:
            topic = self._topics.topic_or_new(
                request.namespace, request.topic, request.create_partitions, now
            )
        else:
            topic = self._directory.topic(request.namespace, request.topic)
        if request.group_number:
            request = self._named(request, topic)
        if request.member:
            self._coordinator.check_reader(request, now)
        number = request.partition
        turn = None
        if number == ASSIGNED and request.group and request.kind is OffsetKind.GROUP:
            turn = self._coordinator.turn(topic, request.group, client, now)
            if turn.partition is None:
                return self._answer_nowhere(topic, client, turn)
            number = turn.partition
        partition = self._directory.partition(topic, number)
        if request.auto_commit and request.group:
            self._offsets.check_group(topic, request.kind, request.group)
        start, since_us = self._reader.start(partition, request, request.strict)
        read = Read(
            partition,
            start,
            since_us,
            request.records_max,
            request.bytes_max,
            request.record_overhead,
            request.count_all,
        )
        slices: list[BatchSlice] = []
        next_offset = start
        if request.records_max <= 0:
            return self._answer(request, client, read, slices, next_offset, turn)
        self._last_mono_us = now.mono_us
        while read.start < partition.high_watermark:
            found = self._reader.batches(read)
            if not isinstance(found, list):
                outcome = Outcome(None, ready=False)
                outcome.state = Poll(request, client, read, self._deadline(request, now), turn)
                self._waiting.keep(client, outcome)
                self._reader.submit(found, outcome, self)
                return outcome
            slices, next_offset = self._reader.take(read, found)
            if slices or next_offset <= read.start:
                break
            read.start = next_offset  # compaction left nothing up to there
        if slices or request.wait_us <= 0 or self._directory.closing:
            return self._answer(request, client, read, slices, next_offset, turn)
        read.start = max(next_offset, read.start)
        outcome = Outcome(None, ready=False)
        poll = Poll(request, client, read, self._deadline(request, now), turn)
        outcome.state = poll
        self._waiting.keep(client, outcome)
        self._wait(outcome, poll)
        return outcome

    def wake(self, partition: Partition) -> None:
        """The partition's high watermark moved: who waits below it reads now."""
        for outcome in [
            outcome
            for outcome in partition.polls
            if outcome.state.read.start < partition.high_watermark
        ]:
            self._unwait(outcome, outcome.state)
            self._retry(outcome, outcome.state)

    def read_ended(
        self, outcome: Outcome, batches: list[RecordBatch], error: EngineError | None
    ) -> None:
        """A cold read ended."""
        poll = outcome.state
        if poll is None:
            return
        if error is not None:
            self._fail(outcome, poll, error)
        elif poll.read.partition.dropped:
            self._drop(outcome, poll)
        else:
            self._take(outcome, poll, batches)

    def expire(self, now: Now) -> None:
        """Answers the long polls whose time is over."""
        self._last_mono_us = now.mono_us
        for outcome in self._deadlines.take_due(now.mono_us):
            self._end(outcome, outcome.state)

    def dropped(self, partition: Partition) -> None:
        """The partition is gone: who waits there is told."""
        for outcome in list(partition.polls):
            self._unwait(outcome, outcome.state)
            self._drop(outcome, outcome.state)

    def cancel(self, outcome: Outcome) -> None:
        """Nobody waits for this any more."""
        poll = outcome.state
        self._unwait(outcome, poll)
        self._waiting.let_go(poll.client, outcome)
        outcome.state = None

    def end_all(self) -> None:
        """Answers every long poll now."""
        for outcome in self._deadlines.take_due(1 << 62):
            self._end(outcome, outcome.state)

    @property
    def waiting_count(self) -> int:
        """Long polls that wait for records."""
        return len(self._deadlines)

    def _deadline(self, request: Fetch, now: Now) -> int:
        if request.wait_us <= 0:
            return 0
        return now.mono_us + min(request.wait_us, self._options.long_poll_max_us)

    def _wait(self, outcome: Outcome, poll: Poll) -> None:
        poll.read.partition.polls[outcome] = None
        self._deadlines.put(outcome, poll.deadline_us)

    def _unwait(self, outcome: Outcome, poll: Poll) -> None:
        poll.read.partition.polls.pop(outcome, None)
        self._deadlines.forget(outcome)

    def _retry(self, outcome: Outcome, poll: Poll) -> None:
        try:
            found = self._reader.batches(poll.read)
        except EngineError as error:
            self._fail(outcome, poll, error)
            return
        if isinstance(found, list):
            self._take(outcome, poll, found)
        else:
            self._reader.submit(found, outcome, self)

    def _take(self, outcome: Outcome, poll: Poll, batches: list[RecordBatch]) -> None:
        read = poll.read
        slices, next_offset = self._reader.take(read, batches)
        if not slices and read.start < next_offset < read.partition.high_watermark:
            read.start = next_offset  # compaction left nothing up to there
            self._retry(outcome, poll)
            return
        if not slices and poll.deadline_us > self._last_mono_us and not self._directory.closing:
            read.start = max(next_offset, read.start)
            self._wait(outcome, poll)
            return
        try:
            reply, sequence = self._reply(poll.request, read, slices, next_offset, poll.turn)
        except EngineError as error:
            self._fail(outcome, poll, error)
            return
        self._waiting.let_go(poll.client, outcome)
        self._waiting.settle(outcome, poll.client, reply, sequence)

    def _end(self, outcome: Outcome, poll: Poll) -> None:
        self._unwait(outcome, poll)
        self._waiting.let_go(poll.client, outcome)
        reply, sequence = self._reply(poll.request, poll.read, [], poll.read.start, poll.turn)
        self._waiting.settle(outcome, poll.client, reply, sequence)

    def _fail(self, outcome: Outcome, poll: Poll, error: EngineError) -> None:
        self._waiting.let_go(poll.client, outcome)
        self._waiting.settle(outcome, poll.client, error.failure(), 0)

    def _drop(self, outcome: Outcome, poll: Poll) -> None:
        partition = poll.read.partition
        self._waiting.let_go(poll.client, outcome)
        self._waiting.settle(
            outcome, poll.client, dropped_failure(partition), partition.topic.sequence
        )

    def _answer(
        self,
        request: Fetch,
        client: Client,
        read: Read,
        slices: list[BatchSlice],
        next_offset: int,
        turn: Turn | None,
    ) -> Outcome:
        reply, sequence = self._reply(request, read, slices, next_offset, turn)
        return self._waiting.answer(client, reply, sequence)

    def _answer_nowhere(self, topic: Topic, client: Client, turn: Turn) -> Outcome:
        """The poll of a member that owns no partition."""
        reply = Fetched(topic.namespace.name, topic.state.name, ASSIGNED, [], 0, 0, 0, 0)
        return self._waiting.answer(client, reply, max(topic.sequence, turn.group.sequence))

    def _named(self, request: Fetch, topic: Topic) -> Fetch:
        """The request with its group by name."""
        number = request.group_number
        if request.kind is OffsetKind.GROUP:
            return replace(request, group=self._coordinator.name_of(topic, number), group_number=0)
        return replace(request, group=str(number), group_number=0)

    def _reply(
        self,
        request: Fetch,
        read: Read,
        slices: list[BatchSlice],
        next_offset: int,
        turn: Turn | None,
    ) -> tuple[Fetched, int]:
        partition = read.partition
        topic = partition.topic
        sequence = max(topic.sequence, partition.start_sequence)
        if turn is not None:
            sequence = max(sequence, turn.group.sequence)
            if not turn.holds:
                # Another member may have been given the same records meanwhile.
                slices, next_offset = [], read.start
        committed = None
        if request.group:
            offsets = self._offsets
            committed = offsets.committed(partition, request.kind, request.group)
            if slices and request.auto_commit:
                self._directory.check_writable()
                sequence = max(
                    sequence,
                    offsets.put(topic, request.kind, request.group, partition.number, next_offset),
                )
            else:
                sequence = max(sequence, offsets.revealed_by(topic, request.kind, request.group))
        for piece in slices:
            self.records += piece.last - piece.first
        return fetched(read, slices, next_offset, committed), sequence
