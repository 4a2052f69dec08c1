"""Power cuts at every operation of a workload with compaction, trims, retention and checkpoints.

After each: what was revealed is there or legitimately compacted away, offsets are what they were,
the newest value of a key is there, and no tombstone that was forgotten has let an older value back.
`COMPACT_CUTS` sets how many cuts of the scripted workload are tried, spread over all of its
operations; `COMPACT_SEEDS` how many random ones.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from functools import cache
from random import Random

import pytest

from dragoman.core import change as ch
from dragoman.core.error import EngineError
from dragoman.core.storage.catalog_file import catalog_sequences
from dragoman.core.storage.expiry import ExpiryRead
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.verify import verify
from dragoman.core.store import StoreFull, StoreOverloaded
from dragoman.simulation.disk import PowerCut, SimDisk
from support.effort import effort
from support.keyed import FIRST_US, STEP_US, Keyed
from support.store import Driven

CUTS = effort("COMPACT_CUTS", 150)
SEEDS = effort("COMPACT_SEEDS", 120)
PARTITIONS = 2
OPTIONS = {
    "tail_bytes_max": 6000,
    "segment_bytes": 1024,
    "journal_file_bytes": 16 * 1024,
    "journal_files_max": 4,
    "compact_keys_max": 12,
}
"""Small files, so that every few steps something closes, and a map that is sometimes too small."""


class Life:
    """One life of a log, from its start to the end of its steps or the power's.

    Attributes:
        keyed: The store and the model; None until it could be opened.
        trims: (sequence, log start) of every trim, by partition.
    """

    def __init__(self, disk: SimDisk, random: Random) -> None:
        self.disk = disk
        self.random = random
        self.keyed: Keyed | None = None
        self.trims: dict[int, list[tuple[int, int]]] = {}

    def run(self, steps: int) -> None:
        """Writes, trims, lets expire, compacts and checkpoints."""
        self.keyed = keyed = Keyed(self.disk, **OPTIONS)
        driven, random = keyed.driven, self.random
        if not keyed.store.catalog.topics:
            driven.topic(partitions=PARTITIONS)
        for _ in range(steps):
            for partition in range(PARTITIONS):
                if random.random() < 0.8:
                    with suppress(StoreFull, StoreOverloaded):
                        keyed.put_random(random, partition, keys=30 if partition else 5)
            if random.random() < 0.8:
                driven.flush()
            if random.random() < 0.6:
                driven.work()
            partition = random.randrange(PARTITIONS)
            visible = driven.revealed.get((1, partition), 0)
            if random.random() < 0.5:
                keyed.compact(partition, before=random.randint(0, visible))
            if random.random() < 0.05:
                start = keyed.store.catalog.topics[1].partitions[partition].log_start_offset
                self._trim(partition, random.randint(min(start, visible), visible))
            if random.random() < 0.05:
                self._expire(partition, visible)
            if random.random() < 0.15:
                driven.mono_us += 31_000_000
        driven.settle()

    def _expire(self, partition: int, visible: int) -> None:
        assert self.keyed is not None
        before_us = FIRST_US + STEP_US * (visible // 2)
        found = self.keyed.store.expired(1, partition, before_us=before_us, bytes_max=0)
        if isinstance(found, ExpiryRead):
            found.run()
            found = found.start
        if found is not None:
            self._trim(partition, min(found, visible))

    def _trim(self, partition: int, start: int) -> None:
        assert self.keyed is not None
        driven = self.keyed.driven
        if start > driven.store.catalog.topics[1].partitions[partition].log_start_offset:
            driven.change(ch.Trimmed(1, partition, start))
            self.trims.setdefault(partition, []).append((driven.store._sequence, start))

    def check(self, after: Driven, *, damage: int = 0) -> None:
        """What was promised is kept."""
        assert len(after.store.damage) == damage, after.store.damage
        keyed = self.keyed
        if keyed is None:
            return
        revealed = keyed.store.revealed_sequence
        if 1 not in after.store.catalog.topics:
            assert revealed == 0
            return
        for partition in range(PARTITIONS):
            state = after.store.catalog.topics[1].partitions[partition]
            assert state.next_offset >= keyed.driven.revealed.get((1, partition), 0)
            keyed.check(after.store, partition)
            trims = self.trims.get(partition, [])
            durable = max([start for at, start in trims if at <= revealed], default=0)
            assert state.log_start_offset >= durable
            assert state.log_start_offset in {0, *(start for _, start in trims)}


def reopened(disk: SimDisk) -> Driven:
    return Driven(disk, **OPTIONS)


@cache
def scripted() -> SimDisk:
    """The disk after the scripted workload that ran to its end."""
    disk = SimDisk()
    life = Life(disk, Random(5))
    life.run(60)
    assert life.keyed is not None
    found = life.keyed.store.statistics()
    assert int(found["store_compactions"]) > 5
    assert int(found["store_compacted_records"]) > 50
    assert int(found["store_checkpoints"]) > 5
    assert any(life.trims.values())
    life.check(reopened(disk.crashed(None)))
    return disk


def test_the_scripted_workload_compacts_trims_and_checkpoints() -> None:
    disk = scripted()
    kinds = {line.split(" ")[0] for line in disk.log if "-" in line.rpartition("/")[2]}
    assert kinds >= {"create", "write", "sync", "unlink"}


@pytest.mark.parametrize("part", range(3))
def test_no_power_cut_at_any_operation_loses_revives_or_moves_a_record(part: int) -> None:
    operations = scripted().operations
    step = max(operations // CUTS, 1)
    for number in range(1 + part, operations + 1, 3 * step):
        disk = SimDisk()
        disk.cut_power_at(number)
        life = Life(disk, Random(5))
        with suppress(PowerCut):
            life.run(60)
        try:
            for random in (None, Random(number)):
                crashed = disk.crashed(random)
                life.check(reopened(crashed))
                assert verify("data", disk=crashed).damage == []
        except Exception as error:
            raise AssertionError(f"cut at {number}: {disk.log[-1]}") from error


def one_crash(seed: int) -> None:
    """A crash, a second one in or soon after the recovery, and in between perhaps the loss of the
    newest catalog."""
    random = Random(seed)
    disk = SimDisk()
    life = Life(disk, random)
    disk.cut_power_at(random.randint(1, 900))
    with suppress(PowerCut):
        life.run(200)
    disk = disk.crashed(random if seed % 4 else None)
    loses_catalog = seed % 3 == 0 and lose_newest_catalog(disk)
    disk.cut_power_at(random.randint(1, 60))
    with suppress(PowerCut):
        after = reopened(disk)
        life.check(after, damage=int(loses_catalog))
        for _ in range(20):
            after.advance(31)
    after = reopened(disk.crashed(random if seed % 4 else None))
    life.check(after, damage=len(after.store.damage) if loses_catalog else 0)
    assert all("catalog/" in line for line in after.store.damage)


def lose_newest_catalog(disk: SimDisk) -> bool:
    """Damages the newest catalog where another one is there."""
    found = catalog_sequences(disk, Layout("data"))
    if len(found) < 2:
        return False
    path = f"data/catalog/{found[0]}.json"
    disk.damage(path, lambda data: data.__setitem__(len(data) // 2, 0))
    return True


@pytest.mark.parametrize("first", range(0, SEEDS, 40))
def test_no_two_crashes_and_no_lost_catalog_do_either(first: int) -> None:
    for seed in range(first, min(first + 40, SEEDS)):
        try:
            one_crash(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_no_failing_operation_does_either(code: int) -> None:
    operations = scripted().operations
    step = max(2 * operations // CUTS, 1)
    for number in range(1, operations + 1, step):
        disk = SimDisk()
        disk.fail_at(number, code)
        life = Life(disk, Random(5))
        with suppress(OSError, EngineError):
            life.run(60)
        try:
            life.check(reopened(disk.crashed(None)))
            life.check(reopened(disk.crashed(Random(number))))
        except Exception as error:
            raise AssertionError(f"operation {number}: {disk.log[number - 1]}") from error
