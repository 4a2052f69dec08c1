"""The subscribers of one group as a run knows them: what the server pushed to any of them.

What counts is what left the server, whether it arrived or not: a push that was on its way to a
client that hung up is lost with it, and is pushed to nobody else. So each connection is listened to
where it begins (`Connection.witness`).

While one of them is there, the group goes on where it was (`Era`); with the last one its place is
forgotten.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from dragoman.simulation.rule import Broken, Rule

if TYPE_CHECKING:
    from dragoman.simulation.clock import SimClock
    from dragoman.simulation.model import Log, Model, Topic
    from dragoman.simulation.wire import Connection


class Era:
    """A time in which there always was a subscriber.

    Attributes:
        began_us: What was sent later has to be pushed.
        pushed: The values that were, in the order in which they left, and to which connection.
        is_whole: A subscriber was still there when everything had come to rest.
    """

    __slots__ = ("began_us", "is_whole", "pushed")

    def __init__(self, began_us: int) -> None:
        self.began_us = began_us
        self.pushed: dict[bytes, int] = {}
        self.is_whole = False


class Audience:
    """All subscribers of a group on a topic that nobody deletes or compacts.

    Attributes:
        eras: In order; the last one may go on.
    """

    def __init__(self, name: str, topic: Topic, model: Model, clock: SimClock) -> None:
        self._name = name
        self._topic = topic
        self._model = model
        self._clock = clock
        self._present: list[Connection] = []
        self.eras: list[Era] = []

    def subscribed(self, connection: Connection) -> None:
        """A connection was answered that it is a subscriber."""
        self._present = [one for one in self._present if not one.is_gone]
        if not self._present:
            self.eras.append(Era(self._clock.now.wall_us))
        if connection not in self._present:
            self._present.append(connection)

    def ended(self, connection: Connection) -> None:
        """A connection was told that it is a subscriber no more."""
        self._present = [one for one in self._present if one is not connection]

    def pushed(self, connection: Connection, value: bytes) -> None:
        """A value left the server for a subscriber."""
        where = f"{self._name}: {value[:24]!r} is pushed to connection {connection.number}"
        if connection not in self._present:
            raise Broken(Rule.PUSHED, f"{where}, which has not subscribed")
        sent = self._model.sent.get(value)
        if sent is None or sent.topic is not self._topic:
            raise Broken(Rule.PHANTOM, f"{where}, and nobody sent it there")
        for era in self.eras:
            if value in era.pushed:
                raise Broken(Rule.PUSHED, f"{where}, and was to {era.pushed[value]}")
        self.eras[-1].pushed[value] = connection.number
        sent.is_acked = True  # what was shown is there for ever, as is what was acknowledged
        self._model.read += 1

    @property
    def count(self) -> int:
        """How many records were pushed."""
        return sum([len(era.pushed) for era in self.eras])

    def rest(self) -> None:
        """Everything has come to rest; who subscribed is still there."""
        if any(not one.is_gone for one in self._present):
            self.eras[-1].is_whole = True

    def check(self) -> None:
        """Every partition was read to its end, so that the place of each value is known."""
        for era in self.eras:
            for partition, log in self._topic.logs.items():
                self._check(era, partition, log)

    def _check(self, era: Era, partition: int, log: Log) -> None:
        where = f"{self._name}/{partition}"
        moment = self._model.moment(self._topic, partition)
        by_connection: dict[int, list[int]] = {}
        for value, number in era.pushed.items():
            if value in log.places:
                by_connection.setdefault(number, []).append(log.places[value])
        for number, offsets in by_connection.items():
            if any(later <= offset for offset, later in pairwise(offsets)):
                raise Broken(Rule.PUSHED, f"{where}: {number} is pushed {offsets[:50]}")
        first = min([offsets[0] for offsets in by_connection.values()], default=1 << 62)
        last = max([offsets[-1] for offsets in by_connection.values()], default=-1)
        for offset, value in log.values.items():
            is_due = era.is_whole and self._model.sent[value].wall_us > era.began_us
            if (
                value not in era.pushed
                and (is_due or first < offset < last)
                and not self._model.may_be_gone(moment, offset)
            ):
                raise Broken(
                    Rule.PUSHED,
                    f"{where}: {value[:24]!r} at {offset} is pushed to nobody, those from {first} "
                    f"to {last} are",
                )
