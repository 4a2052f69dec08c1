"""Random histories with crashes: what was acknowledged is there once and in order.

A plain model (lists and dicts) follows what the engine acknowledged. After every step readers see
exactly a prefix of what was appended, at least all that was acknowledged; after a crash likewise.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.core.calls import (
    AddPartitions,
    CommitOffset,
    CreateTopic,
    DeleteTopic,
    Fetch,
    FetchOffset,
    Follow,
    Produce,
    Produced,
)
from dragoman.core.error import Failure
from dragoman.core.memory import MemoryStore
from dragoman.core.outcome import Client, Outcome
from support.log import Log, batch, values

if TYPE_CHECKING:
    from dragoman.core.interface import Work

TOPICS = ("a", "b", "c")


class History:
    """One random run."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.log = Log(MemoryStore(blocking_reads=bool(seed % 2)))
        self.appended: dict[tuple[str, int], list[bytes]] = {}
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.committed: dict[tuple[str, int], int] = {}
        self.waiting: list[tuple[Outcome, tuple[str, int]]] = []
        self.commits: list[tuple[Outcome, tuple[str, int], int]] = []
        self.work: Work | None = None
        self.written = 0
        for topic in TOPICS:
            self.create(topic)

    def create(self, topic: str) -> None:
        assert not isinstance(self.log.ask(CreateTopic(topic, 2)), Failure)
        self.note()
        for partition in range(2):
            self.appended[topic, partition] = []
            self.acknowledged[topic, partition] = 0

    def place(self) -> tuple[str, int]:
        return self.dice.choice(sorted(self.appended))

    def produce(self) -> None:
        place = self.place()
        count = self.dice.randint(1, 4)
        fresh = [b"%d" % (self.written + index) for index in range(count)]
        self.written += count
        client = Client(self.dice.randint(1, 3), "test")
        outcome = self.log.hand(Produce(place[0], batch(*fresh), place[1]), client)
        self.appended[place] += fresh
        self.waiting.append((outcome, place))

    def commit(self) -> None:
        place = self.place()
        offset = self.dice.randint(0, 99)
        outcome = self.log.hand(CommitOffset(place[0], "g", ((place[1], offset),)))
        self.commits.append((outcome, place, offset))

    def begin_flush(self) -> None:
        if self.work is None:
            self.work = self.log.engine.take_flush()
            if self.work is not None:
                self.work.run()

    def end_flush(self) -> None:
        if self.work is not None:
            self.log.engine.flushed(self.work, None, self.log.now)
            self.work = None
            self.log.collect()
        self.note()

    def note(self) -> None:
        """Takes what was acknowledged into the model."""
        for outcome, place in self.waiting:
            if outcome.ready:
                reply = outcome.reply
                assert isinstance(reply, Produced)
                assert reply.high_watermark >= reply.base_offset + reply.count
                end = reply.base_offset + reply.count
                self.acknowledged[place] = max(self.acknowledged[place], end)
        self.waiting = [entry for entry in self.waiting if not entry[0].ready]
        for outcome, place, offset in self.commits:
            if outcome.ready:
                self.committed[place] = offset
        self.commits = [entry for entry in self.commits if not entry[0].ready]

    def grow_or_replace(self) -> None:
        self.settle()
        topic = self.dice.choice(TOPICS)
        if self.dice.random() < 0.5:
            count = sum([1 for place in self.appended if place[0] == topic])
            self.log.ask(AddPartitions(topic, 1))
            self.appended[topic, count] = []
            self.acknowledged[topic, count] = 0
        else:
            self.log.ask(DeleteTopic(topic))
            for place in [place for place in self.appended if place[0] == topic]:
                del self.appended[place], self.acknowledged[place]
                self.committed.pop(place, None)
            self.create(topic)

    def settle(self) -> None:
        self.end_flush()
        self.begin_flush()
        self.end_flush()
        assert not self.waiting
        assert not self.commits

    def crash(self) -> None:
        self.log = Log(self.log.store.restarted())
        self.work = None
        self.waiting.clear()
        self.commits.clear()
        for place in self.appended:
            kept = self.read(place)
            assert kept == self.appended[place][: len(kept)]
            assert len(kept) >= self.acknowledged[place]
            self.appended[place] = kept
            reply = self.log.ask(FetchOffset(place[0], "g", place[1]))
            assert reply.offset == self.committed.get(place)

    def read(self, place: tuple[str, int]) -> list[Any]:
        """All that a reader sees now, with limits of its own."""
        seen: list[Any] = []
        while True:
            request = Fetch(
                place[0],
                place[1],
                len(seen),
                records_max=self.dice.randint(1, 9),
                bytes_max=self.dice.choice([1, 10, 1 << 20]),
            )
            outcome = self.log.hand(request)
            if not outcome.ready:
                self.log.work()
            if not outcome.ready:
                return seen
            reply: Any = outcome.reply
            if not reply.slices:
                return seen
            seen += values(reply.slices)

    def check(self) -> None:
        for place, appended in self.appended.items():
            seen = self.read(place)
            assert seen == appended[: len(seen)]
            assert len(seen) >= self.acknowledged[place]


@pytest.mark.parametrize("seed", range(30))
def test_what_was_acknowledged_is_there_once_and_in_order(seed: int) -> None:
    history = History(seed)
    steps = [history.produce] * 8 + [history.commit] * 2
    steps += [history.begin_flush, history.end_flush] * 3
    steps += [history.check, history.crash, history.grow_or_replace]
    for _ in range(120):
        history.dice.choice(steps)()
    history.settle()
    history.check()


@pytest.mark.parametrize("seed", range(10))
def test_a_follower_is_pushed_everything_once_and_in_order(seed: int) -> None:
    dice = random.Random(seed)
    log = Log(MemoryStore(blocking_reads=bool(seed % 2)))
    log.ask(CreateTopic("t", 1))
    follow = log.hand(Follow("t", 0, records_max=dice.randint(1, 5)))
    pushed: list[Any] = []
    for number in range(200):
        log.hand(Produce("t", batch(b"%d" % number), 0))
        if dice.random() < 0.4:
            log.flush()
        if dice.random() < 0.3:
            log.work()
        while follow in log.ready or dice.random() < 0.1:
            log.ready = [outcome for outcome in log.ready if outcome is not follow]
            for _ in range(dice.randint(1, 4)):
                push = log.engine.pull(follow, log.now)
                if push is None:
                    break
                assert not isinstance(push, Failure)
                pushed += values(push.slices)
            else:
                log.ready.append(follow)
                break
    log.flush()
    while (push := log.engine.pull(follow, log.now)) is not None or log.work():
        if push is not None:
            assert not isinstance(push, Failure)
            pushed += values(push.slices)
    assert pushed == [b"%d" % number for number in range(200)]
