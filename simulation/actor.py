"""What every actor of a run has: a client, the world, and the checks that all of them make."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from dragoman.codecs.registry import dialect
from dragoman.codecs.rustlog.speaker import RustLogSpeaker
from dragoman.core.error import ErrorCode, Failure
from dragoman.simulation.aggregate import Aggregate
from dragoman.simulation.audience import Audience
from dragoman.simulation.client import Client
from dragoman.simulation.membership import Membership
from dragoman.simulation.register import Registers
from dragoman.simulation.rule import Broken, Rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random
    from typing import Any

    from dragoman.core.calls import Request
    from dragoman.simulation.clock import SimClock
    from dragoman.simulation.model import Model, Moment, Topic
    from dragoman.simulation.register import Commit
    from dragoman.simulation.server import Server
    from dragoman.simulation.trace import Trace

SPOKEN = ("cursus", "v1", "iggy", "rustlog", "rustlog-json")
"""What actors speak: the dialects, RustLog in both of its forms."""
GONE = frozenset({ErrorCode.UNKNOWN_TOPIC, ErrorCode.UNKNOWN_PARTITION})
"""What may be answered of a topic that somebody deletes."""


@dataclass(slots=True)
class World:
    """Everything that the actors of a run share.

    Attributes:
        stable: Topics that nobody deletes.
        fleeting: Topics that are deleted and made again.
        eventful: Topics of streams of events.
        operations: How many requests were asked for so far.
    """

    random: Random
    clock: SimClock
    trace: Trace
    server: Server
    model: Model
    registers: Registers = field(default_factory=Registers)
    groups: dict[tuple[str, str], Membership] = field(default_factory=dict)
    stable: list[str] = field(default_factory=list)
    fleeting: list[str] = field(default_factory=list)
    eventful: list[str] = field(default_factory=list)
    audiences: dict[tuple[str, str], Audience] = field(default_factory=dict)
    aggregates: dict[tuple[str, str], Aggregate] = field(default_factory=dict)
    operations: int = 0
    values: int = 0

    def group(self, topic: str, name: str) -> Membership:
        """A group on a topic."""
        found = self.groups.get((topic, name))
        if found is None:
            found = self.groups[topic, name] = Membership(f"group {name} of {topic}")
        return found

    def audience(self, topic: str, name: str) -> Audience:
        """The subscribers of a group on a topic."""
        found = self.audiences.get((topic, name))
        if found is None:
            known = self.model.topic(topic)
            found = Audience(f"group {name} of {topic}", known, self.model, self.clock)
            self.audiences[topic, name] = found
        return found

    def aggregate(self, topic: str, key: str) -> Aggregate:
        """A stream of events."""
        found = self.aggregates.get((topic, key))
        if found is None:
            found = self.aggregates[topic, key] = Aggregate(f"stream {key} of {topic}")
        return found

    def settled(self) -> list[Topic]:
        """The topics that surely exist, in a fixed order."""
        found = [self.model.topic(name) for name in (*self.stable, *self.fleeting)]
        return [topic for topic in found if topic.is_settled and topic.partitions]

    def any_topic(self) -> Topic | None:
        """One of them."""
        found = self.settled()
        return self.random.choice(found) if found else None


class Actor:
    """Somebody who asks.

    Args:
        spoken: One of `SPOKEN`.
        pipelined: So many requests wait for their answers at most.
    """

    def __init__(self, name: str, world: World, spoken: str, pipelined: int = 4) -> None:
        self.name = f"{name}({spoken})"
        self.world = world
        self.spoken = spoken
        self._pipelined = pipelined
        known = dialect(spoken.removesuffix("-json"))
        make = partial(RustLogSpeaker, json=True) if spoken.endswith("-json") else known.speaker
        self.client = Client(self.name, world.server, world.trace, known, make, self.pushed)

    def act(self) -> None:
        """Does one thing, where it can."""
        client = self.client
        if client.connection is None:
            if client.connect():
                self.connected()
        elif len(client.pending) < self._pipelined:
            self.do()

    def connected(self) -> None:
        """A new connection stands."""

    def do(self) -> None:
        """Asks for something."""
        raise NotImplementedError

    def pushed(self, reply: Any) -> None:
        """A push of a Follow came."""
        raise Broken(Rule.ANSWER, f"{self.name} is told what it did not follow: {reply}")

    @property
    def is_idle(self) -> bool:
        """Whether nothing that it asked waits for an answer."""
        return not self.client.pending

    def ask(
        self,
        request: Request,
        heard: Callable[[Any], object],
        lost: Callable[[bool], None] = lambda is_over: None,
        *,
        answered: bool = True,
    ) -> None:
        """Asks one request, which counts as an operation."""
        self.world.operations += 1
        self.client.ask(request, heard, lost, answered=answered)

    def is_refused(
        self, reply: Any, moment: Moment | None, expected: frozenset[ErrorCode] = frozenset()
    ) -> bool:
        """Whether a reply is a refusal, which has to have a reason.

        Args:
            moment: What was certain when it was asked; None where nothing needs to be.
            expected: Codes that are a reason in themselves.
        """
        if not isinstance(reply, Failure):
            return False
        connection = self.client.connection
        if (
            reply.code in expected
            or connection is None
            or connection.life.is_impaired
            or (moment is not None and not moment.holds)
        ):
            return True
        raise Broken(Rule.REFUSED, f"{self.name}: {reply.code.name} {reply.detail}")

    def losing(self, *commits: Commit) -> Callable[[bool], None]:
        """What is noted of commits whose answer is lost."""

        def lost(is_over: bool) -> None:
            for commit in commits:
                if is_over:
                    commit.until = self.world.trace.step

        return lost

    @property
    def is_impaired(self) -> bool:
        """Whether what it hears comes from a life that was hurt."""
        connection = self.client.connection
        return connection is None or connection.life.is_impaired
