"""Who takes part in a run: drawn from its seed, of mixed dialects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.simulation.actor import SPOKEN
from dragoman.simulation.admin import Admin
from dragoman.simulation.appender import Appender
from dragoman.simulation.committer import Committer
from dragoman.simulation.member import Member
from dragoman.simulation.operator import Operator
from dragoman.simulation.poller import Poller
from dragoman.simulation.reader import Follower, Reader
from dragoman.simulation.replica import Replicator
from dragoman.simulation.retrier import Retrier
from dragoman.simulation.subscriber import Subscriber
from dragoman.simulation.writer import Writer

if TYPE_CHECKING:
    from dragoman.simulation.actor import Actor, World

GROUPS = ("21", "22")
"""Named by digits, so that Iggy, which numbers groups, means the same ones."""
SUBSCRIBERS = "subscribers"
"""A group of those alone: a commit of another member would move them."""


def make_crew(world: World) -> list[Actor | Operator]:
    """The actors of a run."""
    random = world.random
    actors: list[Actor | Operator] = [
        *(_writer(world, number) for number in range(random.randint(2, 4))),
        *(_reader(world, number) for number in range(random.randint(1, 3))),
        *(Follower(f"follower{number}", world) for number in range(random.randint(0, 2))),
        *(_committer(world, number) for number in range(random.randint(1, 2))),
    ]
    if random.random() < 0.4:
        actors.append(Operator("operator", world))
    if random.random() < 0.3:
        # The last of the topics that stay, which nobody else relies on to take records.
        world.model.topic(world.stable[-1]).is_replicated = True
        actors.append(Replicator("replicator", world, world.stable[-1]))
    led_here = [name for name in world.stable if not world.model.topic(name).is_replicated]
    if led_here and random.random() < 0.7:
        actors.append(Retrier("retrier0", world, random.choice(led_here)))
    for number, name in enumerate(world.stable[:2]):
        for index in range(random.randint(0, 3)):
            spoken = random.choice(("v1", "cursus"))
            actors.append(Member(f"member{number}{index}", world, spoken, name, GROUPS[number]))
        actors += [
            Poller(f"poller{number}{index}", world, name, GROUPS[number])
            for index in range(random.choice((0, 0, 1, 2)))
        ]
    actors.append(Admin("admin0", world, random.choice(("cursus", "iggy")), world.fleeting))
    if random.random() < 0.5:
        actors.append(Admin("admin1", world, random.choice(SPOKEN), []))
    pushed = [name for name in led_here if not world.model.topic(name).is_compacted]
    if pushed and random.random() < 0.4:
        topic = random.choice(pushed)
        actors += [
            Subscriber(f"subscriber{number}", world, topic, SUBSCRIBERS)
            for number in range(random.randint(1, 3))
        ]
    actors += [
        Appender(f"appender{number}", world, name)
        for name in world.eventful
        for number in range(random.randint(1, 3))
    ]
    return actors


def _writer(world: World, number: int) -> Actor:
    return Writer(f"writer{number}", world, world.random.choice(SPOKEN))


def _reader(world: World, number: int) -> Actor:
    return Reader(f"reader{number}", world, world.random.choice(SPOKEN))


def _committer(world: World, number: int) -> Actor:
    return Committer(f"committer{number}", world, world.random.choice(SPOKEN), 2)
