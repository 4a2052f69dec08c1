"""Who runs the server: deletes records and lets them expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import DeleteRecords, UpdateTopic
from dragoman.core.error import Failure
from dragoman.simulation.hotline import Hotline
from dragoman.simulation.rule import Broken, Rule

if TYPE_CHECKING:
    from dragoman.core.calls import RecordsDeleted, TopicCreated
    from dragoman.simulation.actor import World
    from dragoman.simulation.model import Moment

RETENTIONS_MS = (3_000, 10_000)


class Operator:
    """One who asks the engine itself, one thing at a time, about topics that stay."""

    def __init__(self, name: str, world: World) -> None:
        self.name = name
        self.world = world
        self.client = Hotline(name, world.server, world.clock, world.trace)

    @property
    def is_idle(self) -> bool:
        """Whether nothing that it asked waits for an answer."""
        return not self.client.pending

    def act(self) -> None:
        """Does one thing, where it can."""
        if not self.client.connect() or self.client.pending or self.client.has_news:
            return
        world = self.world
        random = world.random
        topic = world.model.topic(random.choice(world.stable))
        world.operations += 1
        if random.random() < 0.3:
            retention_ms = random.choice(RETENTIONS_MS)
            topic.keeps_for(retention_ms * 1000)
            self.client.ask(UpdateTopic(topic.name, retention_ms=retention_ms), self._updated)
            return
        partition = random.randrange(topic.partitions)
        moment = world.model.moment(topic, partition)
        before = random.randint(0, moment.visible)
        world.model.deletes(topic, partition, before)
        request = DeleteRecords(topic.name, partition, before)
        self.client.ask(request, lambda reply: self._deleted(reply, moment, before))

    def _updated(self, reply: TopicCreated | Failure) -> None:
        self._check(reply)

    def _deleted(self, reply: RecordsDeleted | Failure, moment: Moment, before: int) -> None:
        if self._check(reply):
            self.world.model.deleted(moment, before)

    def _check(self, reply: object) -> bool:
        """Whether it was done; a refusal has to have a reason."""
        if not isinstance(reply, Failure):
            return True
        if self.client.life is None or self.client.life.is_impaired:
            return False
        raise Broken(Rule.REFUSED, f"{self.name}: {reply.code.name} {reply.detail}")
