"""Those who make, grow, describe and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core.calls import (
    AddPartitions,
    CreateTopic,
    DeleteTopic,
    DescribeTopic,
    IfExists,
    ListTopics,
)
from dragoman.core.error import ErrorCode, Failure
from dragoman.simulation.actor import Actor
from dragoman.simulation.rule import Broken, Rule

if TYPE_CHECKING:
    from dragoman.core.calls import TopicDescribed, TopicsListed
    from dragoman.simulation.actor import World
    from dragoman.simulation.model import Moment, Topic

PARTITIONS_MAX = 6


class Admin(Actor):
    """Looks after topics, one thing at a time.

    The fleeting topics are its own: it alone makes and deletes them, and where it does not know
    what became of that it deletes again.
    """

    def __init__(self, name: str, world: World, spoken: str, fleeting: list[str]) -> None:
        super().__init__(name, world, spoken, 1)
        self._fleeting = [world.model.topic(topic) for topic in fleeting]
        self._absent = set(fleeting)

    def do(self) -> None:
        """Does something to some topic."""
        world = self.world
        random = world.random
        choice = random.random()
        if self._fleeting and choice < 0.5:
            topic = random.choice(self._fleeting)
            if topic.is_settled:
                if random.random() < 0.5:
                    self.delete(topic)
                else:
                    self.describe(topic)
            elif topic.name in self._absent:
                self.create(topic, random.randint(1, 3))
            else:
                self.delete(topic)
            return
        topic = world.model.topic(random.choice(world.stable))
        if choice < 0.6 and topic.partitions_max < PARTITIONS_MAX:
            self.grow(topic)
        elif choice < 0.85:
            self.describe(topic)
        else:
            self.list_all()

    # ------------------------------------------------------------ making and deleting

    def create(self, topic: Topic, partitions: int) -> None:
        """Makes a topic that is not there."""
        exists = IfExists.GROW if self.spoken == "cursus" else IfExists.REFUSE
        self._absent.discard(topic.name)
        request = CreateTopic(topic.name, partitions, if_exists=exists)
        self.ask(request, lambda reply: self._created(reply, topic, partitions))

    def _created(self, reply: Any, topic: Topic, partitions: int) -> None:
        # A record on its way to the deleted topic may have made it again, where a dialect does so.
        expected = frozenset({ErrorCode.TOPIC_EXISTS, ErrorCode.PARTITIONS_CANNOT_SHRINK})
        if not self.is_refused(reply, None, expected):
            topic.made(partitions)

    def delete(self, topic: Topic) -> None:
        """Deletes a topic, whether it is there or not."""
        if topic.is_settled:
            topic.going()
        self.ask(DeleteTopic(topic.name), lambda reply: self._deleted(reply, topic))

    def _deleted(self, reply: Any, topic: Topic) -> None:
        was_missing = isinstance(reply, Failure) and reply.code is ErrorCode.UNKNOWN_TOPIC
        if was_missing or not self.is_refused(reply, None):
            self._absent.add(topic.name)

    def grow(self, topic: Topic) -> None:
        """Adds a partition."""
        before = topic.partitions
        if self.spoken == "iggy":
            topic.added += 1
            request: Any = AddPartitions(topic.name, 1)
        elif self.spoken == "cursus":
            topic.grown_to = max(topic.grown_to, before + 1)
            request = CreateTopic(topic.name, before + 1, if_exists=IfExists.GROW)
        else:
            return
        moment = self.world.model.moment(topic, 0)
        self.ask(request, lambda reply: self._grown(reply, moment, before + 1))

    def _grown(self, reply: Any, moment: Moment, partitions: int) -> None:
        expected = frozenset({ErrorCode.PARTITIONS_CANNOT_SHRINK})
        if not self.is_refused(reply, moment, expected) and moment.holds:
            moment.topic.made(partitions)

    # ------------------------------------------------------------ looking

    def describe(self, topic: Topic) -> None:
        """Asks how a topic stands."""
        if self.spoken not in ("cursus", "rustlog", "iggy"):
            self.list_all()
            return
        moments = [self.world.model.moment(topic, number) for number in range(topic.partitions)]
        self.ask(DescribeTopic(topic.name), lambda reply: self._described(reply, moments))

    def _described(self, reply: TopicDescribed | Failure, moments: list[Moment]) -> None:
        holds = moments[0].holds
        if isinstance(reply, Failure):
            code = ErrorCode.UNKNOWN_TOPIC
            self.is_refused(reply, moments[0], frozenset() if holds else frozenset({code}))
            return
        if not holds:
            return
        topic = moments[0].topic
        partitions = reply.topic.partitions
        if not len(moments) <= len(partitions) <= topic.partitions_max:
            raise Broken(
                Rule.CHANGED,
                f"{topic.name} has {len(partitions)} partitions, not {len(moments)} to "
                f"{topic.partitions_max}",
            )
        topic.made(len(partitions))
        if self.spoken == "cursus":
            return
        for moment, shown in zip(moments, partitions, strict=False):
            # Iggy says the same of a partition without records and of one whose only one is gone.
            if shown.high_watermark or self.spoken != "iggy":
                self.world.model.watermark(moment, shown.high_watermark)

    def list_all(self) -> None:
        """Asks which topics there are."""
        if self.spoken == "v1":
            return
        epochs = [(topic, topic.epoch) for topic in self.world.settled()]
        namespace = "default" if self.spoken == "iggy" else None
        self.ask(ListTopics(namespace), lambda reply: self._listed(reply, epochs))

    def _listed(self, reply: TopicsListed | Failure, epochs: list[tuple[Topic, int]]) -> None:
        if isinstance(reply, Failure):
            self.is_refused(reply, None)
            return
        names = {topic.name for topic in reply.topics}
        for topic, epoch in epochs:
            if topic.is_settled and topic.epoch == epoch and topic.name not in names:
                raise Broken(Rule.LOST, f"the list has no topic {topic.name}")
