"""Power cuts between any two steps of a workload, on a disk that loses what was not synced.

`CRASH_POINTS` sets how many are tried; each is a seed of its own.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from random import Random

import pytest

from dragoman.core import change as ch
from dragoman.core.error import EngineError
from dragoman.core.store import StoreFull, StoreOverloaded
from dragoman.simulation.disk import PowerCut, SimDisk
from support.effort import effort
from support.store import Driven, read_all

POINTS = effort("CRASH_POINTS", 200)
PARTITIONS = 3
OPTIONS = {"tail_bytes_max": 6000, "journal_file_bytes": 16 * 1024, "journal_files_max": 4}
"""Few and small journal files, so that every life recycles some."""


class Workload:
    """Random produces, commits, trims and checkpoints, and what they promised.

    Attributes:
        driven: The store; None until it could be opened.
        commits: (sequence, offset) of every commit.
        trims: (sequence, log start) of every trim, by partition.
        is_recovered: It took over from another life, whose promises it now carries.
    """

    def __init__(self, disk: SimDisk, random: Random) -> None:
        self.random = random
        self.driven: Driven | None = None
        self.commits: list[tuple[int, int]] = []
        self.trims: dict[int, list[tuple[int, int]]] = {}
        self.is_recovered = False
        self.disk = disk

    def start(self) -> None:
        """Opens the store and makes the topic where it is missing."""
        self.driven = Driven(self.disk, **OPTIONS)
        self.start_topic()

    def start_topic(self) -> None:
        """Makes the topic where it is missing."""
        assert self.driven is not None
        if not self.driven.store.catalog.topics:
            self.driven.topic(partitions=PARTITIONS)

    def run(self, steps: int) -> None:
        driven, random = self.driven, self.random
        assert driven is not None
        for step in range(steps):
            for partition in range(PARTITIONS):
                if random.random() < 0.6:
                    count = random.randint(1, 5)
                    size = random.randint(1, 60)
                    values = [b"%d-%d-%d" % (partition, step, n) * size for n in range(count)]
                    with suppress(StoreFull, StoreOverloaded):
                        driven.produce(values, partition=partition)
            if random.random() < 0.2:
                driven.change(ch.OffsetPut(1, "group", "g", 0, len(self.commits)))
                self.commits.append((driven.store._sequence, len(self.commits)))
            if random.random() < 0.03:
                self._trim(random.randrange(PARTITIONS))
            if random.random() < 0.7:
                driven.flush()
            if random.random() < 0.5:
                driven.work()
            if random.random() < 0.08:
                driven.mono_us += 31_000_000
        driven.settle()

    def lives(self) -> None:
        """Starts and runs until the power goes; the workload is longer than any of these lives."""
        with suppress(PowerCut):
            self.start()
            self.run(400)

    def continues(self, before: Workload) -> None:
        """Starts after another life's crash, checks it, and goes on until the power goes."""
        with suppress(PowerCut):
            self.driven = driven = Driven(self.disk, **OPTIONS)
            before.check(driven)
            self._inherit(before, driven)
            self.is_recovered = True
            self.start_topic()
            self.run(400)

    def _inherit(self, before: Workload, driven: Driven) -> None:
        """Takes over what the other life wrote and recovery kept; it is all revealed now."""
        kept = driven.store.revealed_sequence
        if before.driven is not None:
            for place, values in before.driven.written.items():
                state = driven.store.catalog.partition(*place)
                end = 0 if state is None else state.next_offset
                driven.written[place] = values[:end]
                driven.revealed[place] = end
        self.commits = [(0, n) for at, n in before.commits if at <= kept]
        for partition, trims in before.trims.items():
            self.trims[partition] = [(0, start) for at, start in trims if at <= kept]

    def _trim(self, partition: int) -> None:
        driven = self.driven
        assert driven is not None
        state = driven.store.catalog.topics[1].partitions[partition]
        start = self.random.randint(
            state.log_start_offset, driven.revealed.get((1, partition), state.log_start_offset)
        )
        driven.change(ch.Trimmed(1, partition, start))
        self.trims.setdefault(partition, []).append((driven.store._sequence, start))

    def check(self, after: Driven) -> None:
        """Everything that was revealed is there, once and in order, and nothing else is."""
        driven = self.driven
        if driven is None:
            return
        revealed = driven.store.revealed_sequence
        store = after.store
        assert store.damage == []
        if 1 not in store.catalog.topics:
            assert revealed == 0
            return
        for partition in range(PARTITIONS):
            state = store.catalog.topics[1].partitions[partition]
            place = (1, partition)
            assert state.next_offset >= driven.revealed.get(place, 0)
            written = driven.written.get(place, [])
            found = read_all(store, 1, partition)
            assert found == written[state.log_start_offset : state.next_offset]
            trims = self.trims.get(partition, [])
            durable = max([start for at, start in trims if at <= revealed], default=0)
            assert state.log_start_offset >= durable
            assert state.log_start_offset in {0, *(start for _, start in trims)}
        committed = store.catalog.topics[1].offsets.get(("group", "g"), {}).get(0, -1)
        assert committed >= max([n for at, n in self.commits if at <= revealed], default=-1)


def one_crash(seed: int) -> None:
    random = Random(seed)
    disk = SimDisk()
    work = Workload(disk, random)
    disk.cut_power_at(random.randint(1, 900))
    work.lives()
    disk = disk.crashed(random if seed % 4 else None)
    # A second crash, in the recovery or soon after it, and a third start.
    disk.cut_power_at(random.randint(1, 120))
    second = Workload(disk, random)
    second.continues(work)
    after = Driven(disk.crashed(random if seed % 4 else None), **OPTIONS)
    (second if second.is_recovered else work).check(after)


@pytest.mark.parametrize("first", range(0, POINTS, 50))
def test_no_power_cut_loses_or_invents_anything(first: int) -> None:
    for seed in range(first, min(first + 50, POINTS)):
        try:
            one_crash(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_no_failing_operation_loses_or_invents_anything(code: int) -> None:
    for number in range(1, POINTS, 2):
        disk = SimDisk()
        disk.fail_at(number, code)
        work = Workload(disk, Random(number))
        with suppress(OSError, EngineError):
            work.start()
            work.run(40)
        try:
            work.check(Driven(disk.crashed(None), **OPTIONS))
            work.check(Driven(disk.crashed(Random(number)), **OPTIONS))
        except Exception as error:
            raise AssertionError(f"operation {number}: {disk.log[number - 1]}") from error
