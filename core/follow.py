"""Follow: one partition's records pushed as they become visible.

A Follow of what a group's member is assigned is made of several of these (`core.groups.subscribe`).

Nothing is queued here: the session pulls when it has room, and is told again only after a pull came
back empty. A slow reader therefore costs its position and no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import ASSIGNED, Followed
from dragoman.core.error import EngineError, ErrorCode, Failure
from dragoman.core.groups.subscribe import Subscribing, Subscription
from dragoman.core.outcome import Outcome
from dragoman.core.reader import Read
from dragoman.core.waiting import Deadlines, dropped_failure, fenced

if TYPE_CHECKING:
    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import Follow
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.groups.coordinator import Coordinator
    from dragoman.core.groups.group import Group
    from dragoman.core.groups.groups import Groups
    from dragoman.core.offset import Offsets
    from dragoman.core.outcome import Client
    from dragoman.core.partition import Partition
    from dragoman.core.reader import Reader
    from dragoman.core.store import Store
    from dragoman.core.waiting import Waiting


class Follower:
    """The `state` of a Follow's outcome.

    Attributes:
        read: Its place (`read.start` is the next offset to push) and limits.
        aged: The position at the last interval: what the client has had for so long is committed.
        began: The position at the start.
        committed: What the group had committed when this was last looked at, by whomever.
        cold: Batches that a blocking read brought, for the next pull.
        is_reading: Such a read is under way.
        failure: What ends it, told at the next pull.
        failure_sequence: What that failure reveals.
        fence: The group that it ends with (`Follow.member`), or None.
        whole: The subscription that this is a part of, or None.
    """

    __slots__ = (
        "aged",
        "began",
        "client",
        "cold",
        "committed",
        "failure",
        "failure_sequence",
        "fence",
        "is_reading",
        "read",
        "request",
        "whole",
    )

    def __init__(
        self,
        request: Follow,
        client: Client,
        read: Read,
        committed: int | None,
        whole: Subscription | None = None,
    ) -> None:
        self.request = request
        self.client = client
        self.read = read
        self.aged = self.began = read.start
        self.committed = committed
        self.cold: list[RecordBatch] | None = None
        self.is_reading = False
        self.failure: Failure | None = None
        self.failure_sequence = 0
        self.fence: Group | None = None
        self.whole = whole


class Following:
    """Serves Follow.

    Attributes:
        records: Pushed since the start.
    """

    def __init__(
        self,
        store: Store,
        directory: Directory,
        offsets: Offsets,
        reader: Reader,
        waiting: Waiting,
        coordinator: Coordinator,
        groups: Groups,
    ) -> None:
        self._store = store
        self._directory = directory
        self._offsets = offsets
        self._reader = reader
        self._waiting = waiting
        self._followers: dict[Outcome, None] = {}
        self._commits = Deadlines()
        self._held: list[Outcome] = []
        self._coordinator = coordinator
        self._groups = groups
        self._subscribing = Subscribing(
            directory, reader, offsets, waiting, coordinator, groups, self
        )
        self.records = 0

    def follow(self, request: Follow, client: Client, now: Now) -> Outcome:
        """Begins to push."""
        directory = self._directory
        if directory.closing:
            raise EngineError(ErrorCode.SHUTTING_DOWN, "the server is shutting down")
        if request.partition == ASSIGNED and request.group:
            return self._subscribing.subscribe(request, client, now)
        topic = directory.topic(request.namespace, request.topic)
        partition = directory.partition(topic, request.partition)
        if request.commit_us > 0 and request.group:
            self._offsets.check_group(topic, request.kind, request.group)
        fence = self._coordinator.check_reader(request, now) if request.member else None
        start, since_us = self._reader.start(partition, request, False)
        outcome = self.begin(partition, request, client, start, since_us)
        self._waiting.keep(client, outcome)
        if fence is not None:
            outcome.state.fence = fence
            self._groups.watch(fence, outcome)
        if request.commit_us > 0 and request.group:
            self._commits.put(outcome, now.mono_us + request.commit_us)
        return outcome

    def begin(
        self,
        partition: Partition,
        request: Follow,
        client: Client,
        start: int,
        since_us: int = 0,
        whole: Subscription | None = None,
    ) -> Outcome:
        """Follows one partition from an offset on."""
        read = Read(
            partition, start, since_us, max(request.records_max, 1), max(request.bytes_max, 1)
        )
        outcome = Outcome(None, ready=False, follows=True)
        committed = self._offsets.committed(partition, request.kind, request.group)
        outcome.state = Follower(request, client, read, committed, whole)
        self._followers[outcome] = None
        if start < partition.high_watermark:
            self._announce(outcome)
        else:
            partition.followers[outcome] = None
        return outcome

    def pull(self, outcome: Outcome, now: Now) -> Followed | Failure | None:
        """The next push, or None until the outcome is announced again."""
        if self._groups.stirred:
            self.settle(now)
        follower = outcome.state
        if follower is None:
            return None
        if type(follower) is Subscription:
            return self._subscribing.pull(outcome, follower, now)
        failure: Failure | None = follower.failure
        if failure is not None:
            if not self.may_tell(follower.failure_sequence):
                return None
            self._forget(outcome, follower)
            return failure
        read = follower.read
        partition = read.partition
        while not follower.is_reading:
            if read.start >= partition.high_watermark:
                partition.followers[outcome] = None
                return None
            found = follower.cold
            follower.cold = None
            if found is None:
                try:
                    more = self._reader.batches(read)
                except EngineError as error:
                    self._forget(outcome, follower)
                    return error.failure()
                if not isinstance(more, list):
                    follower.is_reading = True
                    self._reader.submit(more, outcome, self)
                    break
                found = more
            before = read.start
            slices, next_offset = self._reader.take(read, found)
            if not slices:
                read.start = max(next_offset, read.start)
                if read.start == before:
                    partition.followers[outcome] = None
                    return None
                continue
            start = read.start
            read.start = next_offset
            for piece in slices:
                self.records += piece.last - piece.first
            topic = partition.topic
            return Followed(
                topic.namespace.name,
                topic.state.name,
                partition.number,
                slices,
                start,
                next_offset,
                partition.high_watermark,
                partition.state.log_start_offset,
            )
        return None

    def wake(self, partition: Partition) -> None:
        """The partition's high watermark moved: who waits there has something to pull."""
        followers = partition.followers
        announce = self._announce
        for outcome in [
            outcome for outcome in followers if outcome.state.read.start < partition.high_watermark
        ]:
            del followers[outcome]
            announce(outcome)

    def read_ended(
        self, outcome: Outcome, batches: list[RecordBatch], error: EngineError | None
    ) -> None:
        """A cold read ended."""
        follower = outcome.state
        if follower is None:
            return
        follower.is_reading = False
        if follower.failure is None:
            if error is not None:
                follower.failure = error.failure()
            else:
                follower.cold = batches
            self._announce(outcome)

    def commit_due(self, now: Now) -> None:
        """Stores what was pushed an interval ago, for groups that do not commit by themselves.

        What a client was pushed a moment ago it may not have handled yet; if it died now, a commit
        would lose that to its group for good.
        """
        for outcome in self._commits.take_due(now.mono_us):
            follower = outcome.state
            request = follower.request
            partition = follower.read.partition
            committed = self._offsets.committed(partition, request.kind, request.group)
            if committed != follower.committed:
                continue
            if follower.aged != follower.began and follower.aged != committed:
                self._commit(follower)
            follower.aged = follower.read.start
            self._commits.put(outcome, now.mono_us + request.commit_us)

    def dropped(self) -> None:
        """Partitions are gone: their followers are told once that is durable."""
        for outcome in self._followers:
            follower = outcome.state
            partition = follower.read.partition
            if partition.dropped and follower.failure is None:
                partition.followers.pop(outcome, None)
                self.end(outcome, dropped_failure(partition), partition.topic.sequence)

    def settle(self, now: Now) -> None:
        """Groups were dealt anew, or are gone: their subscribers go on with what they own now, and
        who asked to be told is told."""
        groups = self._groups
        while groups.stirred:
            group = next(iter(groups.stirred))
            del groups.stirred[group]
            self._subscribing.settle(group)
            for outcome in list(groups.watchers.get(group, ())):
                follower = outcome.state
                if type(follower) is Follower and follower.failure is None:
                    try:
                        self._coordinator.check_reader(follower.request, now)
                    except EngineError as error:
                        follower.read.partition.followers.pop(outcome, None)
                        self.end(outcome, error.failure(), groups.sequence)

    def end(self, outcome: Outcome, failure: Failure, sequence: int) -> None:
        """Ends a Follow with a failure, which is told once `sequence` is revealed."""
        outcome.state.failure = failure
        self.hold(outcome, sequence)
        if self.may_tell(sequence):
            self.announce_held()

    def hold(self, outcome: Outcome, sequence: int) -> None:
        """Announces a Follow once `sequence` is revealed, or the log fails."""
        outcome.state.failure_sequence = sequence
        self._held.append(outcome)

    def may_tell(self, sequence: int) -> bool:
        """Whether a failure that reveals this may be told."""
        store = self._store
        return sequence <= store.revealed_sequence or store.failure is not None

    def fenced(self) -> Failure | None:
        """Why the log takes nothing until a restart; None where it does."""
        failure = self._store.failure
        return None if failure is None else fenced(failure)

    def announce_held(self) -> None:
        """Announces the follows whose beginning or end may be revealed by now."""
        if not self._held:
            return
        left = []
        for outcome in self._held:
            if outcome.state is None:
                continue
            if self.may_tell(outcome.state.failure_sequence):
                self._announce(outcome)
            else:
                left.append(outcome)
        self._held = left

    def cancel(self, outcome: Outcome) -> None:
        """Ends a Follow."""
        follower = outcome.state
        if type(follower) is Subscription:
            self._subscribing.forget(outcome, follower)
        else:
            self._forget(outcome, follower)

    def end_all(self) -> None:
        """Ends every Follow because the server stops."""
        failure = Failure(ErrorCode.SHUTTING_DOWN, "the server is shutting down")
        self._subscribing.end_all(failure)
        for outcome, follower in [(outcome, outcome.state) for outcome in self._followers]:
            if follower.failure is None:
                follower.failure = failure
                follower.read.partition.followers.pop(outcome, None)
                self._announce(outcome)

    def __len__(self) -> int:
        return len(self._followers)

    def _announce(self, outcome: Outcome) -> None:
        whole = outcome.state.whole
        if whole is None:
            self._waiting.announce(outcome)
        else:
            self._subscribing.stir(whole, outcome)

    def _commit(self, follower: Follower) -> None:
        request = follower.request
        partition = follower.read.partition
        if partition.dropped or self._store.failure is not None or self._directory.closing:
            return
        position = follower.aged
        self._offsets.put(partition.topic, request.kind, request.group, partition.number, position)
        follower.committed = position

    def _forget(self, outcome: Outcome, follower: Follower) -> None:
        follower.read.partition.followers.pop(outcome, None)
        self._followers.pop(outcome, None)
        self._commits.forget(outcome)
        self._waiting.let_go(follower.client, outcome)
        if follower.fence is not None:
            self._groups.unwatch(follower.fence, outcome)
        outcome.state = None
