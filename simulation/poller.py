"""Members of groups as Iggy has them: a connection that polls wherever it is assigned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import (
    ASSIGNED,
    CreateGroup,
    DescribeGroup,
    Fetch,
    FetchOffset,
    JoinGroup,
    LeaveGroup,
    Whence,
)
from dragoman.core.error import ErrorCode, Failure
from dragoman.simulation.actor import Actor
from dragoman.simulation.admin import PARTITIONS_MAX
from dragoman.simulation.committer import told_offsets
from dragoman.simulation.member import OUSTED
from dragoman.simulation.model import FOR_EVER, records_of
from dragoman.simulation.register import ANY
from dragoman.simulation.rule import Broken, Rule

if TYPE_CHECKING:
    from dragoman.core.calls import Fetched, GroupDescribed, OffsetFetched
    from dragoman.simulation.actor import World
    from dragoman.simulation.model import Moment
    from dragoman.simulation.register import Commit

EXISTS = frozenset({ErrorCode.GROUP_EXISTS})
NOWHERE = OUSTED | {ErrorCode.UNKNOWN_PARTITION}
"""What a member is told that has not polled yet, or has nothing to poll."""


class Poller(Actor):
    """One connection that is a member of one group, which it shares with other dialects."""

    def __init__(self, name: str, world: World, topic: str, group: str) -> None:
        super().__init__(name, world, "iggy", 2)
        self._topic = world.model.topic(topic)
        self._group = group
        self._is_member = False

    def connected(self) -> None:
        """A new connection is no member of anything."""
        self._is_member = False

    def do(self) -> None:
        """Joins, or polls; now and then looks who else is there, or leaves."""
        if not self._is_member:
            if self.is_idle:
                self._join()
            return
        choice = self.world.random.random()
        if choice < 0.75:
            self._poll()
        elif choice < 0.85:
            self._read_offset()
        elif choice < 0.95:
            self.ask(DescribeGroup(self._topic.name, self._group), self._described)
        else:
            self._is_member = False
            request = LeaveGroup(self._topic.name, self._group, "")
            self.ask(request, lambda reply: self.is_refused(reply, None, OUSTED))

    # ------------------------------------------------------------ membership

    def _join(self) -> None:
        create = CreateGroup(self._topic.name, self._group, int(self._group))
        self.ask(create, lambda reply: self.is_refused(reply, None, EXISTS))
        join = JoinGroup(self._topic.name, self._group, "", bound=True, must_exist=True)
        self.ask(join, self._joined)

    def _joined(self, reply: object) -> None:
        self._is_member = not self.is_refused(reply, None, OUSTED)

    def _described(self, reply: GroupDescribed | Failure) -> None:
        if isinstance(reply, Failure):
            self.is_refused(reply, None, OUSTED)
            return
        owned = [number for member in reply.group.members for number in member.partitions]
        count = self._topic.partitions_max
        if len(owned) != len(set(owned)) or not all(0 <= number < count for number in owned):
            raise Broken(
                Rule.OWNER, f"group {self._group} of {self._topic.name} is shown to own {owned}"
            )

    # ------------------------------------------------------------ polling

    def _poll(self) -> None:
        world, topic = self.world, self._topic
        step = world.trace.step
        # Partitions may be added before the answer.
        numbers = range(PARTITIONS_MAX + 2)
        moments = [world.model.moment(topic, number) for number in numbers]
        request = Fetch(
            topic.name,
            ASSIGNED,
            whence=Whence.COMMITTED,
            group=self._group,
            records_max=world.random.choice((1, 5, 100)),
            auto_commit=world.random.random() < 0.7,
        )
        commits: list[Commit] = []
        if request.auto_commit:
            commits = [
                world.registers.of(topic, "group", self._group, number).asks(ANY, step)
                for number in numbers
            ]
        self.ask(
            request,
            lambda reply: self._polled(reply, moments, commits, step),
            self.losing(*commits),
        )

    def _polled(
        self, reply: Fetched | Failure, moments: list[Moment], commits: list[Commit], step: int
    ) -> None:
        world = self.world
        registers = [
            world.registers.of(self._topic, "group", self._group, moment.partition)
            for moment in moments
        ]
        records = [] if isinstance(reply, Failure) else records_of(reply.slices)
        for number, commit in enumerate(commits):
            if records and not isinstance(reply, Failure) and number == reply.partition:
                commit.done = world.trace.step
                # Behind the last record there may be a gap, which the server passes over too.
                commit.offset = ANY if self._topic.is_compacted else reply.next_offset
            elif isinstance(reply, Failure) and self.is_impaired:
                commit.until = world.trace.step
            else:
                registers[number].forget(commit)
        if isinstance(reply, Failure):
            self.is_refused(reply, None, NOWHERE)
            self._is_member = self._is_member and reply.code not in OUSTED
            return
        if not records:
            return
        moment = moments[reply.partition]
        world.model.read_records(moment, records[0][0], records, reply.next_offset)
        log = self._topic.log(reply.partition)
        if not (log.start or self._topic.is_compacted or self._topic.retention_us < FOR_EVER):
            first = records[0][0]
            told = (first,) if first else (None, 0)
            registers[reply.partition].reads(told, step, world.trace.step)

    def _read_offset(self) -> None:
        step = self.world.trace.step
        request = FetchOffset(self._topic.name, self._group, ASSIGNED)
        self.ask(request, lambda reply: self._offset_read(reply, step))

    def _offset_read(self, reply: OffsetFetched | Failure, step: int) -> None:
        if isinstance(reply, Failure):
            self.is_refused(reply, None, NOWHERE)
            return
        if reply.partition < 0:
            return
        register = self.world.registers.of(self._topic, "group", self._group, reply.partition)
        register.reads(told_offsets(self.spoken, reply.offset), step, self.world.trace.step)
