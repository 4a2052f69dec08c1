"""The beginning and the end of a run: topics to work with, and the reckoning."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dragoman.core.calls import (
    CreateTopic,
    DescribeTopic,
    Fetch,
    IfExists,
    OffsetKind,
    TopicConfig,
)
from dragoman.core.error import Failure
from dragoman.simulation.actor import SPOKEN, Actor
from dragoman.simulation.appender import KEYS, Appender
from dragoman.simulation.model import records_of
from dragoman.simulation.rule import Broken, Rule
from dragoman.simulation.server import Stop

if TYPE_CHECKING:
    from dragoman.core.calls import Request, TopicDescribed
    from dragoman.simulation.model import Topic
    from dragoman.simulation.run import Simulation

WAITING = ("clients", "waiting", "long_polls", "followers", "reading")
"""What the engine's statistics count of those who are there or wait."""


class Auditor:
    """Makes the topics of a run and holds the log against the model at its end."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._world = simulation.world

    def prepare(self) -> None:
        """Makes the topics that stay."""
        world = self._world
        random = world.random
        world.stable = ["s0", "s1", "s2"][: random.randint(1, 3)]
        world.fleeting = ["e0", "e1"][: random.randint(0, 2)]
        clerk = self._clerk("cursus")
        for name in world.stable:
            topic = world.model.topic(name)
            topic.is_compacted = random.random() < 0.3
            partitions = random.randint(1, 1 if topic.is_compacted else 4)
            config = TopicConfig(compact=topic.is_compacted)
            request = CreateTopic(name, partitions, config=config, if_exists=IfExists.GROW)
            reply = self._asked(clerk, request)
            if isinstance(reply, Failure):
                raise Broken(Rule.REFUSED, f"{name}: {reply}")
            topic.made(partitions)
        if random.random() < 0.4:
            world.eventful = ["v0"]
            config = TopicConfig(event_sourcing=True)
            partitions = random.randint(1, 2)
            request = CreateTopic("v0", partitions, config=config, if_exists=IfExists.GROW)
            self._asked(clerk, request)
        clerk.client.hang_up(reset=False)
        self._simulation.actors = []

    def conclude(self) -> None:
        """Checks everything that has to hold once nothing happens any more, twice: as the run
        left it, and after one more end of the server's life."""
        simulation = self._simulation
        random = self._world.random
        simulation.rest()
        for actor in simulation.actors:
            if not actor.is_idle:
                asked = [type(one.request).__name__ for one in actor.client.pending]
                raise Broken(Rule.ANSWER, f"{actor.name} still waits for {asked or 'records'}")
        for audience in self._world.audiences.values():
            audience.rest()
        for actor in simulation.actors:
            actor.client.hang_up(reset=random.random() < 0.5)
        simulation.actors = []
        self._reckon()
        for audience in self._world.audiences.values():
            audience.check()
        stop = random.choice(tuple(Stop))
        if stop is Stop.ORDERLY:
            simulation.server.stop()
        else:
            simulation.stop(stop)
        simulation.clear()
        self._reckon()

    def _reckon(self) -> None:
        """Reads every topic to its end; then nobody is there and nothing waits."""
        simulation = self._simulation
        simulation.rest()
        counter = self._clerk("cursus")
        spoken = self._world.random.choice(SPOKEN)
        clerk = self._clerk(spoken)
        self._world.trace.add(f"audit in {spoken}")
        for topic in self._world.settled():
            self._count(counter, topic)
            for partition in range(topic.partitions):
                self._read(clerk, topic, partition)
            self._world.model.check_kept(topic)
        self._read_streams()
        for actor in (clerk, counter):
            actor.client.hang_up(reset=False)
        simulation.actors = []
        simulation.exchange()
        self._check_statistics()

    def _count(self, clerk: Actor, topic: Topic) -> None:
        """How many partitions there are: more than are known, where a growth was not answered."""
        reply: TopicDescribed | Failure = self._asked(clerk, DescribeTopic(topic.name))
        if isinstance(reply, Failure):
            raise Broken(Rule.LOST, f"{topic.name}: {reply}")
        count = len(reply.topic.partitions)
        if not topic.partitions <= count <= topic.partitions_max:
            raise Broken(Rule.LOST, f"{topic.name} has {count} partitions of {topic.partitions}")
        topic.made(count)

    def _read(self, clerk: Actor, topic: Topic, partition: int) -> None:
        model = self._world.model
        offset = 0
        shown: set[int] = set()
        while True:
            request = Fetch(topic.name, partition, offset)
            if clerk.spoken == "iggy":
                request.group, request.kind, request.records_max = "1", OffsetKind.CONSUMER, 1000
            moment = model.moment(topic, partition)
            reply = self._asked(clerk, request)
            is_refused = isinstance(reply, Failure)
            is_empty = not is_refused and not reply.slices and offset < moment.visible
            goes_itself = clerk.spoken.startswith("rustlog") and model.may_be_gone(moment, offset)
            if goes_itself and (is_refused or is_empty):
                # Below the log's start the others are led to it.
                offset = max(offset + 1, moment.gone)
                continue
            if is_refused:
                raise Broken(Rule.REFUSED, f"{topic.name}/{partition} at {offset}: {reply}")
            records = records_of(reply.slices)
            model.read_records(moment, offset, records, reply.next_offset)
            shown.update([at for at, _ in records])
            if reply.next_offset <= offset:
                break
            offset = reply.next_offset
        if topic.is_compacted:
            model.check_newest(topic, partition, shown)

    def _read_streams(self) -> None:
        """Reads every stream of events, and its snapshot."""
        for name in self._world.eventful:
            reader = Appender("clerk", self._world, name)
            reader.act()
            self._simulation.actors = [*self._simulation.actors, reader]
            for key in KEYS:
                for look in (
                    partial(reader.read, key, 1),
                    partial(reader.read, key, 0),
                    partial(reader.read_version, key),
                    partial(reader.read_snapshot, key),
                ):
                    look()
                    self._simulation.exchange()
            if not reader.is_idle:
                raise Broken(Rule.ANSWER, f"a stream of {name} is not read")
            reader.client.hang_up(reset=False)

    def _check_statistics(self) -> None:
        engine = self._simulation.server.engine
        assert engine is not None
        statistics = engine.statistics()
        left = {name: statistics[name] for name in WAITING if statistics[name]}
        if left:
            raise Broken(Rule.LEAK, f"everyone has hung up and there are {left}")
        topics = self._world.model.topics.values()
        eventful = len(self._world.eventful)
        known = sum([topic.is_settled for topic in topics]) + eventful
        # Each of those may have a topic of snapshots.
        known_max = len(topics) + 2 * eventful
        if not known <= int(statistics["topics"]) <= known_max:
            raise Broken(
                Rule.STATISTICS, f"{statistics['topics']} topics, {known} of {known_max} known"
            )

    # ------------------------------------------------------------ asking

    def _clerk(self, spoken: str) -> Actor:
        clerk = Clerk("clerk", self._world, spoken)
        clerk.act()
        self._simulation.actors = [*self._simulation.actors, clerk]
        return clerk

    def _asked(self, clerk: Actor, request: Request) -> Any:
        """Asks and waits for the answer."""
        heard: list[Any] = []
        clerk.client.ask(request, heard.append)
        self._simulation.exchange()
        if not heard:
            raise Broken(Rule.ANSWER, f"{type(request).__name__} has no answer")
        return heard[0]


class Clerk(Actor):
    """Asks what the auditor wants to know."""

    def do(self) -> None:
        """Nothing of its own."""
