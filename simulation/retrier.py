"""Idempotent producers: they send again whatever they have not heard of, and it counts once."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import Produce, Produced
from dragoman.core.column import VarColumn
from dragoman.simulation.actor import Actor
from dragoman.simulation.model import Stream
from dragoman.simulation.writer import new_values

if TYPE_CHECKING:
    from dragoman.simulation.actor import World
    from dragoman.simulation.model import Moment

UNANSWERED_MAX = 6


class Unanswered(NamedTuple):
    """A batch that was sent and, as far as its producer knows, may not be there."""

    epoch: int
    sequence: int
    values: list[bytes]


class Retrier(Actor):
    """One idempotent producer of Cursus, in one partition.

    Attributes:
        unanswered: What it sends again on its next connection, in order.
    """

    def __init__(self, name: str, world: World, topic: str) -> None:
        super().__init__(name, world, "cursus", 4)
        self._topic = world.model.topic(topic)
        self._partition = world.random.randrange(self._topic.partitions)
        self._producer = name.encode()
        self._stream = Stream(name)
        self._epoch = 0
        self._sequence = 1
        self._has_begun = False
        self.unanswered: deque[Unanswered] = deque()

    def connected(self) -> None:
        """Sends again what was not answered on the last connection."""
        for batch in self.unanswered:
            self._send(batch)

    def do(self) -> None:
        """Sends a new batch, or a duplicate of the newest."""
        random = self.world.random
        if self.unanswered and random.random() < 0.1:
            self._send(self.unanswered[-1])
            return
        # A producer that is not known may begin with any sequence: the first batch goes alone.
        if len(self.unanswered) >= (UNANSWERED_MAX if self._has_begun else 1):
            return
        if not self.unanswered and random.random() < 0.1:
            self._epoch += 1
            self._sequence = 1
            self._has_begun = False
        values = new_values(self, random.choice((1, 1, 3, 5)), binary=True)
        for value in values:
            self.world.model.sends(value, self._topic, self._partition, self._stream)
        batch = Unanswered(self._epoch, self._sequence, values)
        self._sequence += len(values)
        self.unanswered.append(batch)
        self._send(batch)

    def _send(self, batch: Unanswered) -> None:
        request = Produce(
            self._topic.name,
            RecordBatch(
                len(batch.values),
                VarColumn.of(batch.values),
                origin=Origin.NONE,
                producers=(self._producer,),
                producer_epoch=batch.epoch,
                base_sequence=batch.sequence,
            ),
            self._partition,
            idempotent=True,
        )
        moment = self.world.model.moment(self._topic, self._partition)
        self.ask(request, lambda reply: self._answered(reply, moment, batch))

    def _answered(self, reply: Any, moment: Moment, batch: Unanswered) -> None:
        if self.is_refused(reply, moment):
            # Whether it is there is not known, and what follows it would be a gap: once more.
            self.client.hang_up(reset=False)
            return
        assert isinstance(reply, Produced)
        # The original place of a duplicate may be known no more.
        base = reply.base_offset if reply.base_offset >= 0 else -1
        self.world.model.acknowledged(moment, self._partition, base, batch.values)
        self._has_begun |= batch.epoch == self._epoch
        if batch in self.unanswered:
            self.unanswered.remove(batch)

    @property
    def is_idle(self) -> bool:
        """Whether all it sent was acknowledged."""
        return not self.unanswered
