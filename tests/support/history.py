"""What is true of one group while members of several dialects come, work and go: and what each of
them is told about it.

A `History` plays one seed. The truth is asked for where it matters (`audit`): the generation and
who owns what. Whatever a member hears in its own dialect must fit it, and a commit is accepted
exactly where the member owns the partition in that generation.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    ROUND_ROBIN,
    AddPartitions,
    CommitOffset,
    CreateGroup,
    CreateTopic,
    DescribeGroup,
    Fetch,
    Fetched,
    FetchOffset,
    GroupCreated,
    GroupDescribed,
    Heartbeat,
    OffsetCommitted,
    OffsetFetched,
    Produce,
    Produced,
    TopicCreated,
)
from dragoman.core.column import VarColumn
from dragoman.core.engine import Engine
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.memory import MemoryStore
from support.conversation import Exchange
from support.talk import Talk

if TYPE_CHECKING:
    from support.member import Member

TOPIC = "t"
NUMBER = 7
GROUP = str(NUMBER)
PARTITIONS_MAX = 10
_PROBE_GENERATION = 1 << 40
_WEIGHTS = {
    "act": 16,
    "produce": 4,
    "wait": 1.5,
    "look_on": 1,
    "wait_long": 0.1,
    "grow": 0.2,
    "restart": 0.1,
}


class Truth(NamedTuple):
    """How the group stands: its generation, the owner of each partition, and its members."""

    generation: int
    owners: dict[int, str]
    members: set[str]


class History:
    """One seed's group, topic and members."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.store = MemoryStore()
        self.exchange = Exchange(Engine(self.store))
        self.partitions = self.random.randint(1, 6)
        self.members: list[Member] = []
        self.committed: dict[int, int] = {}
        self.delivered: dict[int, set[int]] = defaultdict(set)
        self.produced: Counter[bytes] = Counter()
        self.accepted = self.refused = 0
        self._seen: dict[int, dict[int, str]] = defaultdict(dict)
        self._truths: dict[int, Truth] = {}
        self._open()
        request = CreateTopic(TOPIC, self.partitions)
        assert isinstance(self.rustlog.ask(request), TopicCreated)
        assert isinstance(self.iggy.ask(CreateGroup(TOPIC, GROUP, NUMBER)), GroupCreated)

    def _open(self) -> None:
        """Connections that look on; none of them is a member."""
        self.cursus = Talk("cursus", self.exchange)
        self.iggy = Talk("iggy", self.exchange)
        self.rustlog = Talk("rustlog", self.exchange)
        self.v1 = Talk("v1", self.exchange)

    # ------------------------------------------------------------ what is true

    def audit(self) -> Truth:
        """Asks how the group stands; no partition may have two owners, or none.

        What a generation is stays so; that it does is looked at now and then.
        """
        told = self.cursus.ask(Heartbeat(TOPIC, GROUP, "nobody", _PROBE_GENERATION))
        assert isinstance(told, Failure)
        assert told.code is ErrorCode.STALE_GENERATION, told
        generation = int(told.facts["current"])
        known = self._truths.get(generation)
        if known is not None and self.random.random() < 0.9:
            return known
        described = self.iggy.ask(DescribeGroup(TOPIC, GROUP, group_number=NUMBER))
        assert isinstance(described, GroupDescribed), described
        owners: dict[int, str] = {}
        members = set()
        for member in described.group.members:
            members.add(member.member)
            for partition in member.partitions:
                assert partition not in owners, f"partition {partition} has two owners"
                owners[partition] = member.member
        if members:
            assert set(owners) == set(range(self.partitions)), "a partition has no owner"
        truth = Truth(generation, owners, members)
        assert self._truths.setdefault(generation, truth) == truth, "one generation, two deals"
        for partition, owner in owners.items():
            self.saw(generation, owner, (partition,))
        return truth

    def saw(self, generation: int, member: str, partitions: tuple[int, ...]) -> None:
        """A member was told that it owns these partitions in this generation."""
        seen = self._seen[generation]
        for partition in partitions:
            owner = seen.setdefault(partition, member)
            assert owner == member, f"{partition} is owned twice in generation {generation}"

    def took(self, partition: int, first: int, following: int) -> None:
        """The owner was given these records and has committed them."""
        self.accepted += 1
        self.committed[partition] = following
        self.delivered[partition].update(range(first, following))

    # ------------------------------------------------------------ what happens

    def play(self, steps: int) -> None:
        """Lets things happen, and then one member finish what the others left."""
        names = [*_WEIGHTS]
        weights = [*_WEIGHTS.values()]
        for name in self.random.choices(names, weights, k=steps):
            getattr(self, f"_{name}")()
        self._finish()

    def _act(self) -> None:
        self.random.choice(self.members).act()

    def _produce(self) -> None:
        talk = self.random.choice((self.cursus, self.iggy, self.rustlog, self.v1))
        for _ in range(self.random.randint(1, 4)):
            value = b"record-%d" % self.produced.total()
            batch = RecordBatch(1, VarColumn.single(value), origin=Origin.NONE)
            route = self.random.randrange(self.partitions) if talk is self.rustlog else ROUND_ROBIN
            if talk is self.v1:
                batch.keys = VarColumn.single(b"%d" % self.random.randrange(99))
            reply = talk.ask(Produce(TOPIC, batch, route))
            assert isinstance(reply, Produced), reply
            self.produced[value] += 1

    def _wait(self) -> None:
        self.exchange.advance(self.random.uniform(0.1, 4))

    def _wait_long(self) -> None:
        self.exchange.advance(11)

    def _grow(self) -> None:
        if self.partitions < PARTITIONS_MAX:
            self.partitions += 1
            assert isinstance(self.iggy.ask(AddPartitions(TOPIC, 1)), TopicCreated)
            self.audit()

    def _restart(self) -> None:
        """Every connection is gone, and what was acknowledged stands."""
        now = self.exchange.now
        self.store = self.store.restarted()
        self.exchange = Exchange(Engine(self.store))
        self.exchange.now = now
        self._open()
        for member in self.members:
            member.reconnect()
        self.audit()

    def _look_on(self) -> None:
        """An offset-only reader: it needs no membership, and its commits are not fenced."""
        partition = self.random.randrange(self.partitions)
        fetched = self.rustlog.ask(FetchOffset(TOPIC, GROUP, partition))
        assert isinstance(fetched, OffsetFetched), fetched
        assert fetched.offset == self.committed.get(partition)
        offset = fetched.offset or 0
        assert isinstance(self.rustlog.ask(Fetch(TOPIC, partition, offset)), Fetched)
        if fetched.offset is not None:
            again = CommitOffset(TOPIC, GROUP, ((partition, offset),))
            assert self.rustlog.ask(again) == OffsetCommitted(1)

    # ------------------------------------------------------------ how it ends

    def _finish(self) -> None:
        for member in self.members:
            member.end()
        self.exchange.advance(11)
        assert not self.audit().members
        contents: Counter[bytes] = Counter()
        for partition in range(self.partitions):
            records = self.rustlog.read_all(TOPIC, partition)
            assert [record.offset for record in records] == list(range(len(records)))
            contents.update([record.value or b"" for record in records])
            committed = self.committed.get(partition, 0)
            skipped = set(range(committed)) - self.delivered[partition]
            assert not skipped, f"partition {partition}: nobody read {sorted(skipped)}"
            self._go_on(partition, committed, len(records))
        assert contents == self.produced

    def _go_on(self, partition: int, committed: int, end: int) -> None:
        """Whoever goes on from the committed offset reads all that nobody committed."""
        fetched = self.v1.ask(FetchOffset(TOPIC, GROUP, partition))
        assert isinstance(fetched, OffsetFetched), fetched
        assert fetched.offset == committed
        rest = self.v1.ask(Fetch(TOPIC, partition, committed))
        assert isinstance(rest, Fetched), rest
        assert (rest.start_offset, rest.next_offset) == (committed, end)
