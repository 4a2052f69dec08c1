"""Readers beside writers until the power goes: whatever any reply showed must be there again."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

from dragoman.core import calls
from dragoman.core.storage import checkpoint
from dragoman.core.storage.disk_store import DiskStore
from dragoman.simulation.disk import PowerCut, SimDisk
from support.life import PASSING, TINY
from support.log import Log, batch, values
from support.store import small_options

if TYPE_CHECKING:
    from dragoman.core.outcome import Outcome

PARTITIONS = 2
STEPS = 40
STATES = 4


class Witness:
    """An engine under load, and what its replies have shown so far.

    Attributes:
        records: Every record that a reply showed or acknowledged, by (partition, offset).
        ends: The highest watermark shown, by partition.
        commits: Every commit that was asked for, in order; `committed` is the index of the newest
            one that a reply showed.
        generation: The highest one shown.
        shown: How many replies there were.
    """

    def __init__(self, disk: SimDisk, dice: Random) -> None:
        self.dice = dice
        self.log = open_log(disk)
        self.records: dict[tuple[int, int], bytes | None] = {}
        self.ends = [0] * PARTITIONS
        self.commits: list[int] = [0]
        self.committed = 0
        self.generation = 0
        self.shown = 0
        self._waiting: list[tuple[Outcome, Any]] = []
        self._written = 0
        self._sequences = 0

    def run(self) -> None:
        """Asks at random, flushes at random, and watches every reply."""
        log, dice = self.log, self.dice
        self._ask(calls.CreateTopic("t", PARTITIONS))
        for _ in range(STEPS):
            for _ in range(dice.randint(1, 4)):
                self._ask_something()
                self._watch()
            if dice.random() < 0.7:
                log.flush()
                self._watch()
            if dice.random() < 0.5:
                log.work()
                self._watch()
            if dice.random() < 0.1:
                log.pass_time(31)
                self._watch()

    def _ask_something(self) -> None:
        dice = self.dice
        partition = dice.randrange(PARTITIONS)
        match dice.randrange(8):
            case 0 | 1:
                written = [self._value() for _ in range(dice.randint(1, 3))]
                self._ask(calls.Produce("t", batch(*written), partition), written)
            case 2:
                written = [self._value()]
                produced = batch(*written)
                produced.producers = (b"p",)
                produced.producer_epoch = 0
                produced.base_sequence = self._sequences
                self._sequences += 1
                self._ask(calls.Produce("t", produced, 0, idempotent=True), written)
            case 3 | 4:
                start = dice.randint(0, self.ends[partition])
                self._ask(calls.Fetch("t", partition, start, wait_us=dice.choice((0, 10**6))))
            case 5:
                self.commits.append(len(self.commits))
                commit = calls.CommitOffset("t", "g", ((0, self.commits[-1]),))
                self._ask(commit, len(self.commits) - 1)
            case 6:
                self._ask(calls.FetchOffset("t", "g", 0))
            case _:
                self._ask(calls.JoinGroup("t", "h", f"m{dice.randrange(4)}"))

    def _value(self) -> bytes:
        self._written += 1
        return b"%d" % self._written * self.dice.choice((1, 10, 60))

    def _ask(self, request: Any, about: Any = None) -> None:
        outcome = self.log.hand(request)
        self._waiting.append((outcome, about))

    def _watch(self) -> None:
        """Notes what the replies that may leave now show."""
        waiting = []
        for outcome, about in self._waiting:
            if outcome.ready:
                self.shown += 1
                self._note(outcome.reply, about)
            else:
                waiting.append((outcome, about))
        self._waiting = waiting

    def _note(self, reply: Any, about: Any) -> None:
        match reply:
            case calls.Produced():
                for at, value in enumerate(about):
                    self.records[reply.partition, reply.base_offset + at] = value
            case calls.Fetched():
                offset = reply.start_offset
                for value in values(reply.slices):
                    self.records[reply.partition, offset] = value
                    offset += 1
                end = max(self.ends[reply.partition], reply.high_watermark)
                self.ends[reply.partition] = end
            case calls.OffsetCommitted():
                self.committed = max(self.committed, about)
            case calls.OffsetFetched():
                self.committed = max(self.committed, reply.offset or 0)
                self.ends[0] = max(self.ends[0], reply.high_watermark)
            case calls.GroupJoined():
                self.generation = max(self.generation, reply.generation)
            case _:
                pass

    def check(self, disk: SimDisk) -> None:
        """A restart on this disk shows all of it again."""
        log = open_log(disk)
        if not self.shown:
            return
        for partition in range(PARTITIONS):
            fetched = log.ask(calls.Fetch("t", partition, 0, bytes_max=1 << 30))
            found = []
            while fetched.slices:
                found += values(fetched.slices)
                fetched = log.ask(calls.Fetch("t", partition, len(found), bytes_max=1 << 30))
            assert len(found) >= self.ends[partition], "a watermark went back"
            for (place, offset), value in self.records.items():
                if place == partition:
                    assert found[offset : offset + 1] == [value], f"offset {offset} vanished"
        kept = log.ask(calls.FetchOffset("t", "g", 0)).offset or 0
        assert kept >= self.commits[self.committed], "a commit vanished"
        joined = log.ask(calls.JoinGroup("t", "h", "newcomer"))
        assert joined.generation > self.generation, "a generation came twice"


def open_log(disk: SimDisk) -> Log:
    """An engine over this disk."""
    return Log(DiskStore("data", small_options(**TINY), disk=disk))


def phantom(first: int, last: int) -> tuple[int, int]:
    """Seeds `first` to `last`; returns how many there were and how many replies they showed."""
    checkpoint.SYNC_THREADS = 1
    shown = 0
    for seed in range(first, last):
        dice = Random(seed)
        disk = SimDisk()
        witness = Witness(disk, dice)
        disk.cut_power_at(dice.randint(1, 160))
        with suppress(PowerCut):
            witness.run()
        try:
            witness.check(disk.stripped())
            for state in disk.crash_states(STATES, dice, PASSING):
                witness.check(state)
        except Exception as error:
            raise AssertionError(f"phantom({seed}, {seed + 1})") from error
        shown += witness.shown
    return last - first, shown
