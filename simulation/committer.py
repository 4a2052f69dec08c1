"""Those who commit and read offsets of a group without being its members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core.calls import CommitOffset, FetchOffset, OffsetKind
from dragoman.core.error import ErrorCode, Failure
from dragoman.simulation.actor import Actor

if TYPE_CHECKING:
    from dragoman.core.calls import OffsetFetched
    from dragoman.simulation.model import Moment
    from dragoman.simulation.register import Commit, Register

GROUPS = ("7", "8")
"""Named by digits, so that Iggy, which numbers groups, means the same ones."""


class Committer(Actor):
    """Commits and reads offsets, unfenced: the last one wins, or in Cursus the largest."""

    def do(self) -> None:
        """Commits or reads in some partition."""
        world = self.world
        random = world.random
        topic = world.model.topic(random.choice(world.stable))
        partition = random.randrange(topic.partitions)
        group = random.choice(GROUPS)
        kind = OffsetKind.CONSUMER if self.spoken == "iggy" else OffsetKind.GROUP
        register = world.registers.of(topic, kind.value, group, partition)
        moment = world.model.moment(topic, partition)
        step = world.trace.step
        if self.spoken == "v1" or random.random() < 0.5:
            fetch = FetchOffset(topic.name, group, partition, kind=kind)
            self.ask(fetch, lambda reply: self._fetched(reply, moment, register, step))
            return
        offset = random.randint(1, moment.visible + 2)
        request = CommitOffset(topic.name, group, ((partition, offset),), kind=kind)
        if self.spoken == "iggy":
            request.offsets = ((partition, max(min(offset, moment.visible), 1)),)
            if not moment.visible:
                return
        commit = register.asks(request.offsets[0][1], step)
        self.ask(
            request,
            lambda reply: self._committed(reply, moment, register, commit),
            self.losing(commit),
        )

    def _committed(self, reply: Any, moment: Moment, register: Register, commit: Commit) -> None:
        if self.is_refused(reply, moment, frozenset({ErrorCode.OFFSET_REGRESSION})):
            if not self.is_impaired:
                register.forget(commit)
            return
        commit.done = self.world.trace.step

    def _fetched(
        self, reply: OffsetFetched | Failure, moment: Moment, register: Register, step: int
    ) -> None:
        if isinstance(reply, Failure):
            self.is_refused(reply, moment)
            return
        register.reads(told_offsets(self.spoken, reply.offset), step, self.world.trace.step)


def told_offsets(spoken: str, offset: int | None) -> tuple[int | None, ...]:
    """What may be committed where a dialect tells this: some have no word for "nothing"."""
    if spoken in ("v1", "cursus") and offset == 0:
        return (None, 0)
    if spoken == "iggy" and offset is None:
        return (None, 0, 1)
    return (offset,)
