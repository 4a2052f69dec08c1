"""Replicas of a partition, and who decides which server leads it: both speak V1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import ReportReplica, Role, SetRole
from dragoman.core.error import ErrorCode, Failure
from dragoman.simulation.actor import Actor
from dragoman.simulation.rule import Broken, Rule

if TYPE_CHECKING:
    from dragoman.core.calls import ReplicaReported, RoleSet
    from dragoman.simulation.actor import World
    from dragoman.simulation.model import Moment

REPLICAS = (1, 2)
LED_ELSEWHERE = frozenset({ErrorCode.NOT_LEADER})


class Replicator(Actor):
    """Reports how far the replicas of a topic are, and now and then changes its leader.

    It alone sets roles there, so that what it was answered last is how they stand.
    """

    def __init__(self, name: str, world: World, topic: str) -> None:
        super().__init__(name, world, "v1", 1)
        self._topic = world.model.topic(topic)

    def do(self) -> None:
        """Reports, or sets a role."""
        random = self.world.random
        partition = random.randrange(self._topic.partitions)
        moment = self.world.model.moment(self._topic, partition)
        if random.random() < 0.7:
            offset = random.randint(0, moment.visible + 3)
            replica = random.choice(REPLICAS)
            request = ReportReplica(self._topic.name, partition, replica, offset)
            self.ask(request, lambda reply: self._reported(reply, moment))
            return
        role = random.choice((Role.LEADER, Role.FOLLOWER))
        self._topic.following.discard(partition)
        change = SetRole(self._topic.name, partition, role)
        self.ask(change, lambda reply: self._set(reply, moment, role))

    def _reported(self, reply: ReplicaReported | Failure, moment: Moment) -> None:
        if isinstance(reply, Failure):
            # V1 says of a report to a follower that the request is bad.
            self.is_refused(reply, moment, LED_ELSEWHERE | {ErrorCode.MALFORMED})
            return
        self.world.model.watermark(moment, reply.high_watermark)
        in_sync = reply.in_sync
        if in_sync[:1] != (0,) or not set(in_sync) <= {0, *REPLICAS}:
            raise Broken(Rule.ROLE, f"{self.name} is told that {in_sync} are in sync")

    def _set(self, reply: RoleSet | Failure, moment: Moment, role: Role) -> None:
        if isinstance(reply, Failure):
            self.is_refused(reply, moment)
            return
        if role is Role.FOLLOWER:
            self._topic.following.add(moment.partition)
        self.world.model.watermark(moment, reply.high_watermark)
