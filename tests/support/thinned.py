"""Power cuts in lives whose partitions are compacted."""

from __future__ import annotations

from contextlib import suppress
from random import Random

from dragoman.core import change as ch
from dragoman.core.storage import checkpoint
from dragoman.core.store import StoreFull, StoreOverloaded
from dragoman.simulation.disk import PowerCut, SimDisk
from support.keyed import Keyed
from support.life import PASSING, TINY
from support.store import Driven

OPTIONS = {**TINY, "segment_bytes": 1024, "compact_keys_max": 12}
STEPS = 40


class Thinned:
    """A life of keyed records and compaction, watched at each operation of its disk."""

    def __init__(self, dice: Random, found: set[int], *, limit: int, quota: int) -> None:
        self._dice = dice
        self._found = found
        self._limit = limit
        self._quota = quota
        self._disk = SimDisk()
        self._keyed = Keyed(self._disk, **OPTIONS)
        self._seen: set[int] = set()

    def run(self) -> None:
        """Writes, compacts, trims and checkpoints until it has done enough or found enough."""
        keyed, dice = self._keyed, self._dice
        driven = keyed.driven
        driven.topic()
        driven.settle()
        self._disk.fails = self._look
        with suppress(PowerCut):
            for _ in range(STEPS):
                with suppress(StoreFull, StoreOverloaded):
                    keyed.put_random(dice, keys=dice.choice((4, 20)))
                if dice.random() < 0.8:
                    driven.flush()
                if dice.random() < 0.6:
                    driven.work()
                visible = driven.revealed.get((1, 0), 0)
                if dice.random() < 0.5:
                    keyed.compact(before=dice.randint(0, visible))
                start = keyed.store.catalog.topics[1].partitions[0].log_start_offset
                if dice.random() < 0.05 and visible > start:
                    driven.change(ch.Trimmed(1, 0, dice.randint(start + 1, visible)))
                if dice.random() < 0.2:
                    driven.mono_us += 31_000_000
            driven.settle()

    def _look(self, number: int, name: str, path: str) -> None:
        if len(self._found) >= self._quota:
            raise PowerCut
        for state in self._disk.crash_states(self._limit, self._dice, PASSING):
            mark = state.fingerprint(ignored=PASSING)
            if mark in self._seen:
                continue
            self._seen.add(mark)
            try:
                self._check(state)
            except Exception as error:
                raise AssertionError(f"before operation {number}: {name} {path}") from error
            self._found.add(mark)

    def _check(self, state: SimDisk) -> None:
        first = Driven(state, **OPTIONS)
        end = first.store.revealed_sequence
        assert end >= self._keyed.store.revealed_sequence
        assert first.store.damage == []
        rows = self._keyed.check(first.store)
        second = Driven(state.stripped(), **OPTIONS)
        assert second.store.revealed_sequence == end
        assert second.store.damage == []
        assert self._keyed.check(second.store) == rows, "a second recovery found other rows"


def survey_thinned(seed: int, quota: int, limit: int) -> set[int]:
    """Surveys lives with compaction until so many different states were recovered.

    Raises:
        AssertionError: Some state breaks a promise; the message has what it takes to see it again.
    """
    checkpoint.SYNC_THREADS = 1
    found: set[int] = set()
    while len(found) < quota:
        try:
            Thinned(Random(seed), found, limit=limit, quota=quota).run()
        except AssertionError as error:
            raise AssertionError(f"survey_thinned({seed}, 1, {limit})") from error
        seed += 1
    return found
