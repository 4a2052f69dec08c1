"""Those who write records, in every dialect and by every way of choosing a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import ROUND_ROBIN, Acks, Produce, Produced, ProducedMany
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode
from dragoman.simulation.actor import GONE, Actor
from dragoman.simulation.model import Stream
from dragoman.simulation.rule import Broken, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.error import Failure
    from dragoman.simulation.model import Moment, Topic

REPLICATED = frozenset({ErrorCode.NOT_LEADER, ErrorCode.REPLICATION_TIMEOUT, ErrorCode.INTERNAL})
"""What may be answered of a topic with replicas; Iggy has no word for either."""
TAILS = (b"", b"", b"", b",1:x", b"%0A|hw=9", b"=" * 90, b"~" * 700)
"""What values end with: nothing mostly, and what a text dialect has to take care of."""
BINARY_TAILS = (*TAILS, b" \n\r\0", b"\xff\xfe")
"""The same for dialects that take any byte."""


def new_values(actor: Actor, count: int, *, binary: bool) -> list[bytes]:
    """Values that nobody sent before."""
    world = actor.world
    tails = BINARY_TAILS if binary else TAILS
    values = []
    for _ in range(count):
        world.values += 1
        values.append(b"r%d" % world.values + world.random.choice(tails))
    return values


class Writer(Actor):
    """Writes and never writes the same again: what was not answered may be there or not."""

    def connected(self) -> None:
        """A new connection: only what is sent on one of them has an order."""
        self._stream = Stream(f"{self.name} on {self.client.connections}")

    def do(self) -> None:
        """Sends a few records to some topic."""
        topic = self.world.any_topic()
        if topic is None:
            return
        random = self.world.random
        count = random.choice((1, 1, 2, 3, 8))
        partition: int | None = random.randrange(topic.partitions)
        key: bytes | None = None
        acks = Acks.LEADER
        if self.spoken == "v1":
            partition, key = None, b"k%d" % random.randrange(5)
            acks = random.choice((Acks.LEADER, Acks.LEADER, Acks.ALL, Acks.NONE))
        elif self.spoken == "cursus":
            acks = random.choice((Acks.LEADER, Acks.LEADER, Acks.NONE))
            if random.random() < 0.3:
                partition, count = None, 1
            if random.random() < 0.4:
                key = b"k%d" % random.randrange(5)
        elif self.spoken == "iggy" and random.random() < 0.4:
            partition = None
            key = random.choice((None, b"k1", b"k2"))
        is_text = self.spoken == "v1" or (self.spoken == "cursus" and partition is None)
        values = new_values(self, count, binary=not is_text)
        self.send(topic, partition, key, values, acks)

    def send(
        self,
        topic: Topic,
        partition: int | None,
        key: bytes | None,
        values: Sequence[bytes],
        acks: Acks,
    ) -> None:
        """Sends these records in one request."""
        world = self.world
        for value in values:
            world.model.sends(value, topic, partition, self._stream, key)
        keys = None if key is None else VarColumn.of([key] * len(values))
        batch = RecordBatch(len(values), VarColumn.of(values), origin=Origin.NONE, keys=keys)
        request = Produce(topic.name, batch, ROUND_ROBIN if partition is None else partition)
        request.acks = acks
        moment = world.model.moment(topic, 0 if partition is None else partition)
        is_durable = acks is not Acks.NONE
        led_elsewhere = frozenset(topic.following)
        self.ask(
            request,
            lambda reply: self._answered(reply, moment, values, is_durable, led_elsewhere),
        )

    def _answered(
        self,
        reply: Any,
        moment: Moment,
        values: Sequence[bytes],
        is_durable: bool,
        led_elsewhere: frozenset[int],
    ) -> None:
        expected = frozenset() if moment.holds else GONE
        if moment.topic.is_replicated:
            expected |= REPLICATED
        if self.is_refused(reply, moment, expected):
            return
        parts: list[Produced | Failure] = [reply]
        places = [0] * len(values)
        if isinstance(reply, ProducedMany):
            parts, places = reply.parts, reply.places
        for number, part in enumerate(parts):
            share = [value for value, at in zip(values, places, strict=True) if at == number]
            if self.is_refused(part, moment, expected):
                continue
            assert isinstance(part, Produced)
            if part.partition in led_elsewhere & moment.topic.following:
                raise Broken(
                    Rule.ROLE, f"{self.name} writes to {moment.topic.name}/{part.partition}"
                )
            base = part.base_offset if part.partition >= 0 else -1
            if is_durable:
                self.world.model.acknowledged(moment, part.partition, base, share)
