"""The plans of a group's member: join, read on, commit, live, leave.

A member reads its partitions from where the group committed, or from where it stands itself while
nobody else can have had them: from one generation to the next. Whatever answer says that the group
has moved on (`REJOIN`), it stops, throws away what it read meanwhile, and joins again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dragoman.clients import task as tasks
from dragoman.clients.error import (
    ClientError,
    ConnectionLost,
    NoAnswer,
    RequestRefused,
    Unreachable,
)
from dragoman.clients.plan import Address, Ask, Pause, ask_one, is_worth_another, on
from dragoman.codecs.base import Unsayable
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dragoman.clients.leader import Leaders
    from dragoman.clients.plan import Answer, Plan, Retry
    from dragoman.core.batch import Record
    from dragoman.core.calls import Fetched, Reply, Request

REJOIN = frozenset(
    {
        ErrorCode.STALE_GENERATION,
        ErrorCode.UNKNOWN_MEMBER,
        ErrorCode.UNKNOWN_GROUP,
        ErrorCode.NOT_OWNER,
    }
)
"""Refusals that mean: the group has moved on, join again."""
IDLE_FIRST_S, IDLE_LONGEST_S = 0.01, 0.1
"""How long a member waits between looks at partitions without news, doubling."""


class Delivered(NamedTuple):
    """Records of one partition, in order.

    Attributes:
        next_offset: What to commit once they are done with.
    """

    partition: int
    records: list[Record]
    next_offset: int


class Membership:
    """One member of one group on one topic.

    Args:
        member: A name; a server may make a longer one of it.
        offset: Where to begin in partitions of which the group committed nothing: EARLIEST or
            LATEST.

    Attributes:
        generation: Of the group when it was joined last; 0 before.
        positions: The member's partitions, each with the next offset to deliver.
        is_stale: The group has moved on, as far as is known; so it is before the first join.
    """

    def __init__(
        self,
        leaders: Leaders,
        retry: Retry,
        *,
        topic: str,
        group: str,
        member: str,
        offset: str = tasks.EARLIEST,
    ) -> None:
        self.topic = topic
        self.group = group
        self.member = member
        self.generation = 0
        self.positions: dict[int, int] = {}
        self.is_stale = True
        self._name = member
        self._place = split_flat(topic)
        self._from_latest = tasks.whence_of(offset) is calls.Whence.LATEST
        self._leaders = leaders
        self._retry = retry
        self._coordinator: Address | None = None
        self._committed: dict[int, int] = {}

    # ------------------------------------------------------------ reading

    def poll(self, wait_s: float, records_max: int) -> Plan[list[Delivered]]:
        """What is new in the member's partitions; nothing where there is none for so long.

        Raises:
            RequestRefused, ClientError: As the last of the attempts ended.
            Unsayable: The dialect has no groups whose members live by heartbeats.
        """
        attempts = self._retry.pauses()
        idle_s, waited_s = IDLE_FIRST_S, 0.0
        while True:
            try:
                if self.is_stale:
                    yield from self.join()
                delivered = yield from self._read(records_max)
            except Exception as error:
                yield self._pause(error, attempts)
                continue
            if self.is_stale:
                continue
            if delivered or waited_s >= wait_s:
                return delivered
            yield Pause(min(idle_s, wait_s - waited_s))
            waited_s += idle_s
            idle_s = min(2 * idle_s, IDLE_LONGEST_S)

    def _pause(self, error: Exception, attempts: Iterable[Pause]) -> Pause:
        """The pause before the next attempt; raises the error where there is none."""
        is_moved = isinstance(error, RequestRefused) and error.code in REJOIN
        if is_moved or is_worth_another(error):
            for pause in attempts:
                return pause
        raise error

    def _read(self, records_max: int) -> Plan[list[Delivered]]:
        """One look at every partition. Nothing counts as delivered unless all of them answer."""
        if not self.positions:
            return []
        by_leader: dict[Address, list[int]] = {}
        with suppress(Unsayable):  # then whoever is asked leads
            yield from self._leaders.find(self.topic)
        for partition in self.positions:
            address = self._leaders.address(self.topic, partition)
            by_leader.setdefault(address, []).append(partition)
        asks = [
            Ask(address, tuple([self._fetch(each, records_max) for each in partitions]))
            for address, partitions in by_leader.items()
        ]
        answers: list[Answer] = yield tuple(asks)
        fetched: list[tuple[int, Fetched]] = []
        for (address, partitions), answer in zip(by_leader.items(), answers, strict=True):
            if isinstance(answer, Unreachable | ConnectionLost | NoAnswer):
                is_unreachable = isinstance(answer, Unreachable)
                self._leaders.pass_over(address, unreachable=is_unreachable)
            if isinstance(answer, Exception):
                raise answer
            for partition, reply in zip(partitions, answer, strict=True):
                if isinstance(reply, Failure):
                    self._refused(partition, reply)
                else:
                    assert isinstance(reply, calls.Fetched), "the reply to a Fetch"
                    fetched.append((partition, reply))
        if self.is_stale:
            return []
        delivered = []
        for partition, read in fetched:
            self.positions[partition] = max(self.positions[partition], read.next_offset)
            if records := tasks.records_of(read):
                delivered.append(Delivered(partition, records, read.next_offset))
        return delivered

    def _fetch(self, partition: int, records_max: int) -> calls.Fetch:
        namespace, topic = self._place
        return calls.Fetch(
            topic,
            partition,
            self.positions[partition],
            namespace,
            records_max=records_max,
            bytes_max=tasks.FETCH_BYTES,
            group=self.group,
            member=self.member,
            generation=self.generation,
        )

    def _refused(self, partition: int, failure: Failure) -> None:
        """Takes a refused read: one out of range goes on at the nearest end, others are raised."""
        earliest, latest = failure.facts.get("earliest"), failure.facts.get("latest")
        if failure.code is ErrorCode.OFFSET_OUT_OF_RANGE and isinstance(earliest, int):
            position = self.positions[partition]
            end = latest if isinstance(latest, int) else position
            nearest = min(max(position, earliest), max(end, earliest))
            if nearest != position:
                self.positions[partition] = nearest
                return
        if failure.code is ErrorCode.NOT_LEADER:
            self._leaders.refused(self.topic, partition, failure.facts.get("leader"))
        else:
            self._heed(failure)
        raise RequestRefused(failure)

    # ------------------------------------------------------------ the group

    @property
    def coordinator(self) -> Address:
        """Who is asked about the group."""
        return self._coordinator or self._leaders.home

    def join(self) -> Plan[None]:
        """Joins, or joins again, and finds where to read on. One attempt."""
        namespace, topic = self._place
        joined = yield from self._ask(calls.JoinGroup(topic, self.group, self.member, namespace))
        assert isinstance(joined, calls.GroupJoined), "the reply to a JoinGroup"
        self.member = joined.member
        partitions = joined.partitions
        if not partitions:
            sync = calls.SyncGroup(topic, self.group, self.member, joined.generation, namespace)
            try:
                synced = yield from self._ask(sync)
            except Unsayable:
                pass
            else:
                assert isinstance(synced, calls.GroupJoined), "the reply to a SyncGroup"
                partitions = synced.partitions
        committed = yield from self._fetch_committed(partitions)
        is_next = self.generation and joined.generation in (self.generation, self.generation + 1)
        held = self.positions if is_next else {}
        positions: dict[int, int] = {}
        for partition in partitions:
            offset = committed[partition]
            if offset == 0 and self._from_latest and partition not in held:
                latest = tasks.find_start(self.topic, partition, tasks.LATEST)
                offset = yield from on(self._leaders.address(self.topic, partition), latest)
            positions[partition] = max(held.get(partition, 0), offset)
        self.generation, self.positions, self._committed = joined.generation, positions, committed
        self.is_stale = False

    def _fetch_committed(self, partitions: Iterable[int]) -> Plan[dict[int, int]]:
        """The next offset that the group is to read of each; 0 where nothing was committed."""
        namespace, topic = self._place
        committed: dict[int, int] = {}
        asked = [*partitions]
        if not asked:
            return committed
        requests = [calls.FetchOffset(topic, self.group, each, namespace) for each in asked]
        replies = yield from self._ask_all(requests)
        for partition, reply in zip(asked, replies, strict=True):
            assert isinstance(reply, calls.OffsetFetched), "the reply to a FetchOffset"
            committed[partition] = reply.offset or 0
        return committed

    def commit(self, offsets: Mapping[int, int] | None = None) -> Plan[bool]:
        """Stores the next offsets to read: of all that was delivered, or as they are given.

        Returns:
            Whether all of them are stored: False where the group has moved on and gave a partition
            to somebody else, who gets its records again from the last commit on.
        """
        wanted = dict(self.positions if offsets is None else offsets)
        attempts = self._retry.pauses()
        while True:
            try:
                if self.is_stale:
                    yield from self.join()
                mine = {each: wanted[each] for each in wanted if each in self.positions}
                news = {each: mine[each] for each in mine if mine[each] > self._committed[each]}
                if news:
                    yield from self._commit(sorted(news.items()))
                return len(mine) == len(wanted)
            except Exception as error:
                yield self._pause(error, attempts)

    def _commit(self, pairs: list[tuple[int, int]]) -> Plan[None]:
        requests = [self._commit_request(pairs)]
        count = 0
        try:
            (reply,) = yield from self._ask_all(requests)
            assert isinstance(reply, calls.OffsetCommitted), "the reply to a CommitOffset"
            count = reply.count
        except Unsayable:
            if len(pairs) == 1:
                raise
        if count < len(pairs):
            yield from self._ask_all([self._commit_request([pair]) for pair in pairs])
        self._committed.update(pairs)

    def _commit_request(self, pairs: list[tuple[int, int]]) -> calls.CommitOffset:
        namespace, topic = self._place
        return calls.CommitOffset(
            topic,
            self.group,
            tuple(pairs),
            namespace,
            member=self.member,
            generation=self.generation,
        )

    def beat(self) -> Plan[None]:
        """Keeps the member alive. Whatever comes of it, it raises nothing: the next poll sees."""
        if self.is_stale:
            return
        namespace, topic = self._place
        generation = self.generation
        beat = calls.Heartbeat(topic, self.group, self.member, generation, namespace)
        try:
            reply = yield from ask_one(self.coordinator, beat)
        except (ClientError, Unsayable):
            return
        if isinstance(reply, Failure) and generation == self.generation:
            self._heed(reply)

    def leave(self) -> Plan[None]:
        """Gives up membership, if that can be told to anyone."""
        if not self.generation:
            return
        namespace, topic = self._place
        leave = calls.LeaveGroup(topic, self.group, self.member, self.generation, namespace)
        self.is_stale, self.generation = True, 0
        try:
            yield from ask_one(self.coordinator, leave)
        except (ClientError, Unsayable):
            return  # it is missed after its session's time

    def _ask(self, request: Request) -> Plan[Reply]:
        (reply,) = yield from self._ask_all([request])
        return reply

    def _ask_all(self, requests: Sequence[Request]) -> Plan[list[Reply]]:
        """Asks the coordinator; a refusal is heeded and raised."""
        answer: Answer
        address = self.coordinator
        (answer,) = yield (Ask(address, tuple(requests)),)
        if isinstance(answer, Unreachable | ConnectionLost | NoAnswer):
            self._coordinator = None
            self._leaders.pass_over(address)
        if isinstance(answer, Exception):
            raise answer
        replies: list[Reply] = []
        for reply in answer:
            if isinstance(reply, Failure):
                self._heed(reply)
                raise RequestRefused(reply)
            replies.append(reply)
        return replies

    def _heed(self, failure: Failure) -> None:
        """Remembers what a refusal means for what is done next."""
        if failure.code in REJOIN:
            self.is_stale = True
            if failure.code in (ErrorCode.UNKNOWN_MEMBER, ErrorCode.UNKNOWN_GROUP):
                self.member = self._name
        elif failure.code is ErrorCode.NOT_LEADER:
            leader = failure.facts.get("leader")
            self._coordinator = Address.of(leader) if isinstance(leader, str) else None
