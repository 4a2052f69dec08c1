"""What a run knows of the records: what was sent, what was acknowledged, what was read where.

The model knows only what clients said and heard. A value is sent once (again only by an idempotent
producer), so that it stands for its record wherever it is read. What is known of a partition grows
and never changes: an offset that was acknowledged or read keeps its value through every crash.

A topic that is made or deleted is in motion: what is heard of it then is not held against it, and a
topic made again under the same name begins with a new epoch and nothing known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from dragoman.simulation.rule import Broken, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.calls import BatchSlice
    from dragoman.simulation.clock import SimClock


FOR_EVER = 1 << 62


class Stream:
    """Who writes in an order that has to be kept: a connection, or an idempotent producer.

    Attributes:
        places: By (topic, epoch, partition) the indices of placed records, and their offsets.
    """

    __slots__ = ("count", "name", "places")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.places: dict[tuple[str, int, int], tuple[list[int], list[int]]] = {}

    def next_index(self) -> int:
        """The place of one more record in the order of sending."""
        self.count += 1
        return self.count

    def placed(self, place: tuple[str, int, int], index: int, offset: int) -> None:
        """Record `index` is at `offset`; the order of both is the same."""
        indices, offsets = self.places.setdefault(place, ([], []))
        at = bisect_left(indices, index)
        if (at and offsets[at - 1] >= offset) or (at < len(offsets) and offsets[at] <= offset):
            raise Broken(
                Rule.ORDER,
                f"{self.name} sent its record {index} to {place} in another order: "
                f"it is at {offset}, its neighbours at {offsets[max(at - 1, 0) : at + 1]}",
            )
        indices.insert(at, index)
        offsets.insert(at, offset)


class Sent:
    """One record that a client sent.

    Attributes:
        partition: None where the server chooses.
        epoch: Of the topic, when it was sent.
        key: Its key, or None.
        is_acked: It was acknowledged as durable.
        wall_us: When it was sent.
    """

    __slots__ = ("epoch", "index", "is_acked", "key", "partition", "stream", "topic", "wall_us")

    def __init__(
        self, topic: Topic, partition: int | None, stream: Stream, key: bytes | None, wall_us: int
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.stream = stream
        self.index = stream.next_index()
        self.epoch = topic.epoch
        self.key = key
        self.is_acked = False
        self.wall_us = wall_us


class Log:
    """What is known of one partition.

    Attributes:
        values: By offset, what was acknowledged or read there.
        places: The same by value.
        visible: Whoever asks from now on sees everything below.
        start: Below it nothing is demanded: somebody asked to delete that.
        gone: Below it nothing may be shown any more.
        latest: By key, the largest offset of a record that is known to be there.
    """

    __slots__ = ("gone", "latest", "places", "start", "values", "visible")

    def __init__(self) -> None:
        self.values: dict[int, bytes] = {}
        self.places: dict[bytes, int] = {}
        self.visible = 0
        self.start = 0
        self.gone = 0
        self.latest: dict[bytes, int] = {}


class Topic:
    """What is known of one topic.

    Attributes:
        partitions: How many it has at least.
        added, grown_to: Partitions that somebody asked to add, and to have at least.
        epoch: Counts how often it was deleted.
        is_settled: It exists, and nobody is about to delete it.
        is_compacted: Records may go where a later one has their key.
        is_replicated: Replicas may hold back what is visible, and it may be led elsewhere.
        following: Partitions that are surely led elsewhere.
        unplaced: By key, how many records were sent whose place is not known.
        retention_us: Records may go when they are older; `FOR_EVER` keeps them.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.partitions = 0
        self.added = 0
        self.grown_to = 0
        self.epoch = 0
        self.is_settled = False
        self.is_compacted = False
        self.is_replicated = False
        self.following: set[int] = set()
        self.retention_us = FOR_EVER
        self.logs: dict[int, Log] = {}
        self.unplaced: Counter[bytes] = Counter()

    @property
    def partitions_max(self) -> int:
        """How many it may have."""
        return self.grown_to + self.added

    def log(self, partition: int) -> Log:
        """What is known of a partition."""
        log = self.logs.get(partition)
        if log is None:
            log = self.logs[partition] = Log()
        return log

    def keeps_for(self, retention_us: int) -> None:
        """Somebody asked to keep records for so long only."""
        self.retention_us = min(self.retention_us, retention_us)

    def made(self, partitions: int) -> None:
        """It exists with at least so many partitions."""
        self.partitions = max(self.partitions, partitions)
        if not self.is_settled:
            self.grown_to = partitions
        self.is_settled = True

    def going(self) -> None:
        """Somebody is about to delete it: nothing of it is certain until it is made again."""
        self.is_settled = False
        self.epoch += 1
        self.partitions = self.added = self.grown_to = 0
        self.logs = {}


class Moment(NamedTuple):
    """When something was asked of a partition: what was certain then.

    Attributes:
        visible: The answer shows at least so much.
        gone: The answer shows nothing below.
    """

    topic: Topic
    partition: int
    epoch: int
    visible: int
    gone: int

    @property
    def holds(self) -> bool:
        """Whether the topic has been the same since."""
        return self.topic.is_settled and self.topic.epoch == self.epoch


class Model:
    """Everything known of all topics.

    Args:
        clock: Tells the age of records.

    Attributes:
        sent: By value, every record that anybody sent.
        acked: How many were acknowledged.
        read: How many were read, each time counted.
    """

    def __init__(self, clock: SimClock) -> None:
        self._clock = clock
        self.topics: dict[str, Topic] = {}
        self.sent: dict[bytes, Sent] = {}
        self.acked = 0
        self.read = 0

    def topic(self, name: str) -> Topic:
        """What is known of the topic of this name."""
        topic = self.topics.get(name)
        if topic is None:
            topic = self.topics[name] = Topic(name)
        return topic

    def moment(self, topic: Topic, partition: int) -> Moment:
        """What is certain of a partition now; taken when something is asked of it."""
        epoch = topic.epoch if topic.is_settled else -1
        log = topic.logs.get(partition)
        if log is None:
            return Moment(topic, partition, epoch, 0, 0)
        return Moment(topic, partition, epoch, log.visible, log.gone)

    def sends(
        self,
        value: bytes,
        topic: Topic,
        partition: int | None,
        stream: Stream,
        key: bytes | None = None,
    ) -> None:
        """Somebody is about to send a record."""
        self.sent[value] = Sent(topic, partition, stream, key, self._clock.now.wall_us)
        if key is not None:
            topic.unplaced[key] += 1

    # ------------------------------------------------------------ what was heard

    def acknowledged(
        self, moment: Moment, partition: int, base: int, values: Sequence[bytes]
    ) -> None:
        """Records are durable; `base` is -1 where the dialect does not tell where."""
        if not moment.holds:
            return
        self.acked += len(values)
        for index, value in enumerate(values):
            sent = self.sent[value]
            sent.is_acked = True
            if base >= 0:
                self._place(moment.topic, partition, base + index, value)
        if base >= 0 and not moment.topic.is_replicated:
            self.shows(moment.topic, partition, base + len(values))

    def shows(self, topic: Topic, partition: int, end: int) -> None:
        """Somebody saw the partition up to here: from now on everybody does."""
        log = topic.log(partition)
        log.visible = max(log.visible, end)

    def watermark(self, moment: Moment, shown: int) -> None:
        """A reply told a high watermark; it is at least what was seen before the request."""
        if not moment.holds:
            return
        if shown < moment.visible:
            raise Broken(
                Rule.WATERMARK,
                f"{_named(moment)} shows {shown} after {moment.visible}",
            )
        self.shows(moment.topic, moment.partition, shown)

    def may_be_gone(self, moment: Moment, offset: int) -> bool:
        """Whether the log may begin above this offset."""
        log = moment.topic.log(moment.partition)
        if offset < log.start:
            return True
        value = log.values.get(offset)
        expires = moment.topic.retention_us < FOR_EVER
        return expires and (value is None or self._is_old(self.sent[value]))

    def deletes(self, topic: Topic, partition: int, before: int) -> None:
        """Somebody asks to delete what lies below an offset."""
        log = topic.log(partition)
        log.start = max(log.start, before)

    def deleted(self, moment: Moment, before: int) -> None:
        """What lies below an offset is deleted for good."""
        if moment.holds:
            log = moment.topic.log(moment.partition)
            log.gone = max(log.gone, before)

    def read_records(
        self,
        moment: Moment,
        offset: int,
        records: Sequence[tuple[int, bytes]],
        next_offset: int,
        *,
        is_push: bool = False,
    ) -> None:
        """A reader that asked for `offset` got these records, in offset order.

        Args:
            is_push: Nobody asked for them in particular, and a push waits for nothing: that it
                passed over what somebody deletes does not say that it is deleted for good.
        """
        if not moment.holds:
            return
        topic, partition = moment.topic, moment.partition
        if not records:
            end = next_offset if next_offset > offset else moment.visible
            if offset < end:
                self._check_gone(moment, offset, end, is_start=True)
            return
        self.read += len(records)
        if records[0][0] < moment.gone:
            raise Broken(
                Rule.DELETED, f"{_named(moment)} shows {records[0][0]}, deleted up to {moment.gone}"
            )
        expected = offset
        is_start = True
        for at, value in records:
            if at != expected:
                if at < expected:
                    raise Broken(Rule.DENSE, f"{_named(moment)} shows {at} after {expected - 1}")
                self._check_gone(moment, expected, at, is_start=is_start)
                if is_start and not (topic.is_compacted or is_push):
                    self.deleted(moment, at)
            is_start = False
            self._place(topic, partition, at, value)
            expected = at + 1
        if next_offset < expected:
            raise Broken(
                Rule.DENSE, f"{_named(moment)} goes on at {next_offset} after {expected - 1}"
            )
        self.shows(topic, partition, expected)

    def check_kept(self, topic: Topic) -> None:
        """Every partition was read to its end: all that was acknowledged has a place."""
        is_whole = all(not log.start for log in topic.logs.values())
        for value, sent in self.sent.items():
            if (
                sent.topic is topic
                and sent.is_acked
                and sent.epoch == topic.epoch
                and not any(value in log.places for log in topic.logs.values())
                and is_whole
                and not self._is_old(sent)
                and not (topic.is_compacted and sent.key is not None)
            ):
                raise Broken(
                    Rule.LOST, f"{value[:24]!r} was acknowledged and is not in {topic.name}"
                )

    def check_newest(self, topic: Topic, partition: int, shown: set[int]) -> None:
        """A compacted partition was read to its end: what nothing took the place of is there.

        Args:
            shown: The offsets that were read.
        """
        log = topic.log(partition)
        for at, value in log.values.items():
            sent = self.sent[value]
            if (
                at >= log.start
                and at not in shown
                and not self._is_old(sent)
                and not self._is_superseded(topic, log, at)
            ):
                raise Broken(Rule.LOST, f"{topic.name}/{partition} has {value[:24]!r} no more")

    # ------------------------------------------------------------ inside

    def _place(self, topic: Topic, partition: int, offset: int, value: bytes) -> None:
        log = topic.log(partition)
        known = log.values.get(offset)
        where = f"{topic.name}/{partition} at {offset}"
        if known is not None:
            if known != value:
                raise Broken(Rule.CHANGED, f"{where}: {known[:24]!r} became {value[:24]!r}")
            return
        sent = self.sent.get(value)
        if sent is None:
            raise Broken(Rule.PHANTOM, f"{where}: nobody sent {value[:24]!r}")
        if sent.topic is not topic or sent.partition not in (None, partition):
            raise Broken(
                Rule.PHANTOM,
                f"{where}: {value[:24]!r} was sent to {sent.topic.name}/{sent.partition}",
            )
        if sent.epoch < topic.epoch and sent.is_acked:
            raise Broken(Rule.PHANTOM, f"{where}: {value[:24]!r} is of a deleted topic")
        for number, other in topic.logs.items():
            if value in other.places:
                raise Broken(
                    Rule.DUPLICATE,
                    f"{where}: {value[:24]!r} is at {number}:{other.places[value]} too",
                )
        log.values[offset] = value
        log.places[value] = offset
        if sent.key is not None:
            topic.unplaced[sent.key] -= 1
            log.latest[sent.key] = max(log.latest.get(sent.key, -1), offset)
        sent.stream.placed((topic.name, topic.epoch, partition), sent.index, offset)

    def _check_gone(self, moment: Moment, first: int, last: int, *, is_start: bool) -> None:
        """A reader was shown nothing from `first` to `last` (exclusive)."""
        topic = moment.topic
        log = topic.log(moment.partition)
        if is_start:
            known = [log.values.get(at) for at in range(max(first, log.start), last)]
            expires = topic.retention_us < FOR_EVER or not known
            if expires and all(value is None or self._is_old(self.sent[value]) for value in known):
                return
        if topic.is_compacted and all(
            self._is_superseded(topic, log, at) for at in range(max(first, log.start), last)
        ):
            return
        raise Broken(Rule.DENSE, f"{_named(moment)} has nothing from {first} to {last - 1}")

    def _is_superseded(self, topic: Topic, log: Log, at: int) -> bool:
        """Whether a later record with the same key may be there."""
        value = log.values.get(at)
        if value is None:
            return True
        key = self.sent[value].key
        if key is None:
            return False
        return log.latest[key] > at or topic.unplaced[key] > 0

    def _is_old(self, sent: Sent) -> bool:
        return self._clock.now.wall_us - sent.wall_us > sent.topic.retention_us


def records_of(slices: Sequence[BatchSlice]) -> list[tuple[int, bytes]]:
    """(offset, value) of every record of a reply."""
    records: list[tuple[int, bytes]] = []
    for batch, first, last in slices:
        values = batch.values.slices(first, last)
        deltas = batch.offset_deltas
        base = batch.base_offset
        if deltas is None:
            records.extend(zip(range(base + first, base + last), values, strict=True))
        else:
            records.extend(
                (base + delta, value)
                for delta, value in zip(deltas[first:last], values, strict=True)
            )
    return records


def _named(moment: Moment) -> str:
    return f"{moment.topic.name}/{moment.partition}"
