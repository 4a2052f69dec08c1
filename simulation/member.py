"""Members of groups: they join, read what they own, commit, fall silent, leave and come back.

Now and then a member commits what it must not: for a generation that is over, or for a partition
that is not its own. That has to be refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core.calls import (
    Assignor,
    CommitOffset,
    Fetch,
    FetchOffset,
    GroupJoined,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
)
from dragoman.core.error import ErrorCode, Failure
from dragoman.simulation.actor import Actor
from dragoman.simulation.committer import told_offsets
from dragoman.simulation.model import records_of

if TYPE_CHECKING:
    from dragoman.core.calls import Fetched, OffsetFetched
    from dragoman.simulation.actor import World
    from dragoman.simulation.model import Moment
    from dragoman.simulation.register import Commit, Register

OUSTED = frozenset(
    {
        ErrorCode.STALE_GENERATION,
        ErrorCode.UNKNOWN_MEMBER,
        ErrorCode.UNKNOWN_GROUP,
        ErrorCode.GROUP_TOPIC_MISMATCH,
        ErrorCode.NOT_OWNER,
    }
)
"""What a member is told that is one no more, or owns something else now."""
TURNED_DOWN = OUSTED | {ErrorCode.OFFSET_REGRESSION}
"""The reasons to refuse a commit."""


class Member(Actor):
    """One member of one group; it speaks V1 or Cursus.

    Attributes:
        generation: The one that it believes in; 0 while it is no member.
    """

    def __init__(self, name: str, world: World, spoken: str, topic: str, group: str) -> None:
        super().__init__(name, world, spoken, 2)
        self._topic = world.model.topic(topic)
        self._group_name = group
        self._group = world.group(topic, group)
        self._member = name
        self.generation = 0
        self._partitions: tuple[int, ...] = ()
        self._positions: dict[int, int] = {}

    def do(self) -> None:
        """Joins, or does what members do."""
        random = self.world.random
        if not self.generation:
            if self.is_idle:
                self._join()
            return
        choice = random.random()
        if choice < 0.35 and self._partitions:
            self._fetch(random.choice(self._partitions))
        elif choice < 0.60 and self._partitions:
            partition = random.choice(self._partitions)
            self._commit(partition, self.generation)
        elif choice < 0.70:
            self._heartbeat()
        elif choice < 0.80:
            self._sync()
        elif choice < 0.86 and self._partitions:
            self._read_offset(random.choice(self._partitions))
        elif choice < 0.96:
            stale = random.random() < 0.5 and self.generation > 1
            generation = self.generation - 1 if stale else self.generation
            self._commit(random.randrange(self._topic.partitions), generation)
        else:
            self._leave()

    # ------------------------------------------------------------ membership

    def _join(self) -> None:
        assignor = None
        if self.spoken == "v1" and self.world.random.random() < 0.5:
            assignor = Assignor.ROUND_ROBIN
        request = JoinGroup(self._topic.name, self._group_name, self._member, assignor=assignor)
        before = self._group.generation
        self.ask(request, lambda reply: self._joined(reply, before))

    def _sync(self) -> None:
        generation = self.generation
        before = self._group.generation
        request = SyncGroup(self._topic.name, self._group_name, self._member, generation)
        self.ask(request, lambda reply: self._synced(reply, before))

    def _joined(self, reply: GroupJoined | Failure, before: int) -> None:
        if isinstance(reply, Failure):
            self.is_refused(reply, None, OUSTED)
            self._is_out()
            return
        self._member = reply.member
        self._is_told(reply, before)

    def _synced(self, reply: GroupJoined | Failure, before: int) -> None:
        if isinstance(reply, Failure):
            self.is_refused(reply, None, OUSTED)
            self._is_out()
        elif self.spoken == "v1":
            self._is_told(reply, before)

    def _is_told(self, reply: GroupJoined, before: int) -> None:
        self._group.joined(
            reply.member,
            reply.generation,
            reply.partitions,
            before=before,
            count=self._topic.partitions_max,
        )
        self.generation = reply.generation
        self._partitions = reply.partitions

    def _heartbeat(self) -> None:
        request = Heartbeat(self._topic.name, self._group_name, self._member, self.generation)
        self.ask(request, self._told)

    def _told(self, reply: Any) -> None:
        if self.is_refused(reply, None, OUSTED):
            self._is_out()

    def _leave(self) -> None:
        request = LeaveGroup(self._topic.name, self._group_name, self._member, self.generation)
        self._is_out()
        self.ask(request, lambda reply: self.is_refused(reply, None, OUSTED))

    def _is_out(self) -> None:
        self.generation = 0
        self._partitions = ()

    # ------------------------------------------------------------ reading and committing

    def _fetch(self, partition: int) -> None:
        offset = self._positions.get(partition, 0)
        moment = self.world.model.moment(self._topic, partition)
        request = Fetch(self._topic.name, partition, offset)
        self.ask(request, lambda reply: self._fetched(reply, moment, offset))

    def _fetched(self, reply: Fetched | Failure, moment: Moment, offset: int) -> None:
        if isinstance(reply, Failure):
            self.is_refused(reply, moment)
            return
        records = records_of(reply.slices)
        self.world.model.read_records(moment, offset, records, reply.next_offset)
        self._positions[moment.partition] = reply.next_offset

    def _commit(self, partition: int, generation: int) -> None:
        world = self.world
        offset = self._positions.get(partition, 0)
        register = world.registers.of(self._topic, "group", self._group_name, partition)
        request = CommitOffset(
            self._topic.name,
            self._group_name,
            ((partition, offset),),
            member=self._member,
            generation=generation,
        )
        before = self._group.generation
        commit = register.asks(offset, world.trace.step)
        self.ask(
            request,
            lambda reply: self._committed(reply, register, commit, generation, partition, before),
            self.losing(commit),
        )

    def _committed(
        self,
        reply: Any,
        register: Register,
        commit: Commit,
        generation: int,
        partition: int,
        before: int,
    ) -> None:
        if self.is_refused(reply, None, TURNED_DOWN):
            if not self.is_impaired:
                register.forget(commit)
            if reply.code in OUSTED and generation == self.generation:
                self._is_out()
            return
        commit.done = self.world.trace.step
        self._group.committed(self._member, generation, partition, before=before)

    def _read_offset(self, partition: int) -> None:
        world = self.world
        register = world.registers.of(self._topic, "group", self._group_name, partition)
        moment = world.model.moment(self._topic, partition)
        step = world.trace.step
        request = FetchOffset(self._topic.name, self._group_name, partition)
        self.ask(request, lambda reply: self._offset_read(reply, moment, register, step))

    def _offset_read(
        self, reply: OffsetFetched | Failure, moment: Moment, register: Register, step: int
    ) -> None:
        if isinstance(reply, Failure):
            self.is_refused(reply, moment)
            return
        told = told_offsets(self.spoken, reply.offset)
        register.reads(told, step, self.world.trace.step)
        self._positions[moment.partition] = reply.offset or 0
