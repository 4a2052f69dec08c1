"""Producers that send again what was not acknowledged, through crashes: each record is there once.

A model of honest producers: each has records in order, sends the next few of what it has not heard
of, again and again, in batches cut anywhere, several on their way at once; answers get lost.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import CreateTopic, IfExists, Produce, Produced
from dragoman.core.clock import Now
from dragoman.core.column import VarColumn
from dragoman.core.engine import Engine
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.memory import MemoryStore
from dragoman.core.outcome import Client, Outcome
from dragoman.core.storage.disk_store import DiskStore
from dragoman.simulation.disk import PowerCut, SimDisk
from support.effort import effort
from support.store import read_all, small_options

if TYPE_CHECKING:
    from collections.abc import Callable

PRODUCERS = (b"p", b"q", b"r")
PARTITIONS = 2
RECORDS = 12
"""Of each producer in each partition."""
CUTS = effort("EXACTLY_ONCE_CUTS", 60)
"""How many of the operations the power is cut at; all of them where it is large."""


class Stream:
    """What one producer has for one partition: the sequences 1 to RECORDS.

    Attributes:
        heard: It knows that the sequences up to this one are appended.
        sent: It sent up to this one, so it may go on from here without an answer.
    """

    def __init__(self, producer: bytes, partition: int) -> None:
        self.producer = producer
        self.partition = partition
        self.heard = 0
        self.sent = 0

    def batch(self, first: int, last: int) -> RecordBatch:
        """The sequences `first` to `last`."""
        values = [self.value(sequence) for sequence in range(first, last + 1)]
        return RecordBatch(
            len(values),
            VarColumn.of(values),
            origin=Origin.CURSUS,
            producers=(self.producer,),
            base_sequence=first,
        )

    def value(self, sequence: int) -> bytes:
        """The record with this sequence."""
        return b"%b-%d-%d" % (self.producer, self.partition, sequence)


class World:
    """Producers over an engine that is flushed, crashed and started again by hand.

    Args:
        choose: An integer from 0 to its argument, inclusive: a seed or hypothesis.
    """

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.choose = choose
        self.engine: Engine
        self.client = Client(1, "test")
        self.now = Now(1_700_000_000_000_000, 1_000_000)
        self.streams = [Stream(name, place) for name in PRODUCERS for place in range(PARTITIONS)]
        self.waiting: dict[Outcome, tuple[Stream, int, int]] = {}
        self.offsets: dict[tuple[int, int], bytes] = {}

    def starts(self, store: Any) -> None:
        """An engine over a store, fresh or recovered; what was on its way is forgotten."""
        self.engine = Engine(store)
        self.waiting.clear()
        for stream in self.streams:
            stream.sent = stream.heard
        create = CreateTopic("t", PARTITIONS, if_exists=IfExists.KEEP)
        self.engine.handle(create, self.client, self.now)

    def steps(self, count: int) -> None:
        """Random sending, flushing and hearing."""
        for _ in range(count):
            self.send(self.streams[self.choose(len(self.streams) - 1)])
            kind = self.choose(9)
            if kind < 5:
                self.flush()
            if kind % 2:
                self.work()
            if kind == 9:
                self.now = Now(self.now.wall_us + 31_000_000, self.now.mono_us + 31_000_000)
                self.engine.tick(self.now)

    def send(self, stream: Stream) -> None:
        """The next few records, or some of those that it has not heard of."""
        first = stream.heard + 1 + self.choose(stream.sent - stream.heard)
        last = min(first + self.choose(3), RECORDS)
        if first > last:
            return
        batch = stream.batch(first, last)
        request = Produce("t", batch, stream.partition, idempotent=True)
        outcome = self.engine.handle(request, self.client, self.now)
        stream.sent = max(stream.sent, last)
        self.waiting[outcome] = stream, first, last
        if outcome.ready:
            self.hear(outcome)

    def hear(self, outcome: Outcome) -> None:
        """An answer; some get lost on the way."""
        stream, first, last = self.waiting.pop(outcome)
        reply = outcome.reply
        assert isinstance(reply, Produced), reply
        if reply.base_offset >= 0:
            self.told(stream, first, reply.base_offset)
        end = reply.base_offset + reply.count - 1
        self.told(stream, last, end if reply.last_offset is None else reply.last_offset)
        if self.choose(3) and first <= stream.heard + 1:
            stream.heard = max(stream.heard, last)

    def told(self, stream: Stream, sequence: int, offset: int) -> None:
        """An offset that an answer named; it must be the record's for ever."""
        if offset >= 0:
            value = stream.value(sequence)
            assert self.offsets.setdefault((stream.partition, offset), value) == value

    def flush(self) -> None:
        """One flush, if anything is pending."""
        work = self.engine.take_flush()
        if work is not None:
            work.run()
            self.engine.flushed(work, None, self.now)
        for outcome in self.engine.take_ready():
            if outcome in self.waiting:
                self.hear(outcome)

    def work(self) -> None:
        """One round of the other lanes."""
        for work in self.engine.take_work():
            work.run()
            self.engine.finished(work, None, self.now)

    def finishes(self) -> None:
        """Everything that is not known to be appended is sent until it is."""
        for _ in range(200):
            self.flush()
            self.work()
            left = [stream for stream in self.streams if stream.heard < RECORDS]
            if not left:
                return
            for stream in left:
                self.send(stream)
        raise AssertionError("never finished")

    def check(self, logs: list[list[bytes | None]]) -> None:
        """Each record is there once, in order, and where answers said."""
        for partition, log in enumerate(logs):
            for stream in self.streams:
                if stream.partition == partition:
                    mine = [value for value in log if value and value[:1] == stream.producer]
                    assert mine == [stream.value(number) for number in range(1, RECORDS + 1)]
        for (partition, offset), value in self.offsets.items():
            assert logs[partition][offset] == value


def disk_store(disk: SimDisk) -> DiskStore:
    """A store whose journal recycles its files within the test."""
    options = small_options(
        journal_file_bytes=16 * 1024, journal_files_max=4, tail_bytes_max=3000, segment_bytes=600
    )
    return DiskStore("data", options, disk=disk)


def logs_of(store: Any) -> list[list[bytes | None]]:
    """All records of both partitions."""
    return [read_all(store, 1, partition) for partition in range(PARTITIONS)]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_in_memory_through_any_restarts(data: st.DataObject) -> None:
    def choose(most: int) -> int:
        return data.draw(st.integers(0, most)) if most else 0

    world = World(choose)
    store = MemoryStore()
    for _ in range(choose(3) + 1):
        world.starts(store)
        world.steps(choose(15))
        store = store.restarted()
    world.choose = _chooser(Random(1))
    world.starts(store)
    world.finishes()
    world.check(logs_of(store))


def _chooser(random: Random) -> Callable[[int], int]:
    return lambda most: random.randint(0, most)


def _lives(world: World, disk: SimDisk) -> None:
    """A life with everything that producers do, until it is over or the power goes."""
    world.starts(disk_store(disk))
    world.steps(30)
    world.finishes()


def test_on_disk_through_a_power_cut_at_each_operation() -> None:
    whole = SimDisk()
    _lives(World(_chooser(Random(7))), whole)
    step = max(whole.operations // CUTS, 1)
    for cut in range(1, whole.operations, step):
        random = Random(7)
        world = World(_chooser(random))
        disk = SimDisk()
        disk.cut_power_at(cut)
        with suppress(PowerCut):
            _lives(world, disk)
        for _ in range(2):
            disk = disk.crashed(random)
            disk.cut_power_at(random.randint(1, 60))
            with suppress(PowerCut):
                world.starts(disk_store(disk))
                world.steps(10)
        store = disk_store(disk.crashed(random))
        world.starts(store)
        world.finishes()
        world.check(logs_of(store))


def test_on_disk_through_kills_and_orderly_stops() -> None:
    world = World(_chooser(Random(3)))
    disk = SimDisk()
    for life in range(6):
        store = disk_store(disk)
        world.starts(store)
        world.steps(8)
        if life % 2:
            world.engine.begin_close(world.now)
            for _ in range(20):
                world.flush()
                world.work()
            world.engine.close()
        else:
            disk = disk.killed()
    store = disk_store(disk)
    world.starts(store)
    world.finishes()
    world.check(logs_of(store))


class Model:
    """What a partition's producers did, said as simply as it can be: a list of all records."""

    def __init__(self) -> None:
        self.log: list[tuple[int, int]] = []
        self.sessions: dict[int, tuple[int, int, list[int]]] = {}

    def send(self, producer: int, epoch: int, first: int, count: int) -> ErrorCode | list[int]:
        """The offsets of the records, new or known; or why they are refused."""
        current, start, offsets = self.sessions.get(producer, (-1, 0, []))
        if epoch < current:
            return ErrorCode.STALE_PRODUCER_EPOCH
        if epoch > current:
            start, offsets = first, []
        if not start <= first <= start + len(offsets):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE
        for sequence in range(start + len(offsets), first + count):
            offsets.append(len(self.log))
            self.log.append((producer, sequence))
        self.sessions[producer] = epoch, start, offsets
        return offsets[first - start : first - start + count]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(0, 2),
            st.integers(1, 8),
            st.integers(1, 4),
            st.booleans(),
        ),
        max_size=14,
    )
)
def test_any_sequences_are_answered_as_the_model_answers(
    sends: list[tuple[int, int, int, int, bool]],
) -> None:
    model = Model()
    store = MemoryStore()
    world = World(lambda most: 0)
    world.starts(store)
    for producer, epoch, first, count, restarts in sends:
        stream = Stream(b"%d" % producer, 0)
        batch = stream.batch(first, first + count - 1)
        batch.producer_epoch = epoch
        wanted = model.send(producer, epoch, first, count)
        request = Produce("t", batch, 0, idempotent=True)
        outcome = world.engine.handle(request, world.client, world.now)
        world.flush()
        reply = outcome.reply
        if isinstance(wanted, list):
            assert isinstance(reply, Produced)
            last = reply.base_offset + count - 1 if reply.last_offset is None else reply.last_offset
            assert (reply.base_offset, last) == (wanted[0], wanted[-1])
        else:
            assert isinstance(reply, Failure)
            assert reply.code is wanted
        if restarts:
            store = store.restarted()
            world.starts(store)
    assert len(logs_of(store)[0]) == len(model.log)
