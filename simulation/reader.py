"""Those who read: from offsets of their own, waiting or not, or following a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core.calls import Fetch, Follow, OffsetKind, Whence
from dragoman.core.error import ErrorCode, Failure
from dragoman.simulation.actor import GONE, Actor
from dragoman.simulation.model import records_of

if TYPE_CHECKING:
    from dragoman.simulation.actor import World
    from dragoman.simulation.model import Moment, Topic


class Reader(Actor):
    """Reads on in every partition, and now and then again from the middle."""

    def __init__(self, name: str, world: World, spoken: str, pipelined: int = 3) -> None:
        super().__init__(name, world, spoken, pipelined)
        self._positions: dict[tuple[str, int, int], int] = {}

    def do(self) -> None:
        """Asks for the records that come next somewhere."""
        topic = self.world.any_topic()
        if topic is None:
            return
        random = self.world.random
        partition = random.randrange(topic.partitions)
        place = (topic.name, topic.epoch, partition)
        offset = self._positions.get(place, 0)
        if random.random() < 0.2:
            offset = random.randint(0, offset)
        self.read(topic, partition, offset)

    def read(self, topic: Topic, partition: int, offset: int) -> None:
        """Asks for records of a partition."""
        random = self.world.random
        request = Fetch(topic.name, partition, offset)
        if self.spoken != "v1":
            request.records_max = random.choice((1, 3, 50, 1000))
        if self.spoken == "cursus":
            request.wait_us = random.choice((0, 20_000, 4_000_000))
        elif self.spoken == "iggy":
            request.group, request.kind = "9", OffsetKind.CONSUMER
        elif self.spoken == "rustlog":
            request.bytes_max = random.choice((1, 200, 1 << 20))
        if offset == 0 and self.spoken in ("cursus", "v1", "iggy") and random.random() < 0.3:
            request.whence = Whence.EARLIEST
        moment = self.world.model.moment(topic, partition)
        self.ask(request, lambda reply: self._answered(reply, moment, offset))

    def _answered(self, reply: Any, moment: Moment, offset: int) -> None:
        model = self.world.model
        place = (moment.topic.name, moment.epoch, moment.partition)
        expected = frozenset() if moment.holds else GONE
        is_below = self.spoken.startswith("rustlog") and model.may_be_gone(moment, offset)
        if is_below:
            expected |= {ErrorCode.OFFSET_OUT_OF_RANGE}
        if self.is_refused(reply, moment, expected) or (is_below and not reply.slices):
            # Below the log's start the others are led to it, this dialect goes there itself.
            self._positions[place] = offset + is_below
            return
        records = records_of(reply.slices)
        model.read_records(moment, offset, records, reply.next_offset)
        if reply.high_watermark or self.spoken == "v1":
            model.watermark(moment, reply.high_watermark)
        if reply.next_offset > offset:
            self._positions[place] = reply.next_offset


class Follower(Actor):
    """Follows one partition as long as its connection lasts, then goes on where it was."""

    def __init__(self, name: str, world: World) -> None:
        super().__init__(name, world, "cursus", 1)
        self._moment: Moment | None = None
        self._next = 0

    def connected(self) -> None:
        """Follows on, or from the beginning of another partition."""
        world = self.world
        last = self._moment
        if last is None or not last.holds or world.random.random() < 0.3:
            topics = [world.model.topic(name) for name in world.stable]
            topic = world.random.choice(topics)
            partition = world.random.randrange(topic.partitions)
            self._next = 0
        else:
            topic, partition = last.topic, last.partition
        self._moment = world.model.moment(topic, partition)
        self.ask(Follow(topic.name, partition, self._next), self.pushed, answered=False)

    def do(self) -> None:
        """Everything comes by itself."""

    def pushed(self, reply: Any) -> None:
        """The records that come next."""
        moment = self._moment
        assert moment is not None
        if isinstance(reply, Failure):
            self.is_refused(reply, moment)
            self.client.hang_up(reset=True)
            return
        records = records_of(reply.slices)
        # A push may have been on its way for long.
        moment = self.world.model.moment(moment.topic, moment.partition)._replace(gone=0)
        self.world.model.read_records(moment, self._next, records, reply.next_offset, is_push=True)
        self._next = reply.next_offset

    @property
    def is_idle(self) -> bool:
        """Whether everything that is visible has come."""
        moment = self._moment
        if moment is None or self.client.connection is None or not moment.holds:
            return True
        visible = moment.topic.log(moment.partition).visible
        return self._next >= visible or self.world.model.may_be_gone(moment, visible - 1)
