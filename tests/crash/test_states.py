"""Power cuts on a disk in memory: every state that it may leave behind is one that was promised.

`CRASH_STATES` different states are recovered, twice each; `CRASH_DOUBLE` lives crash, go on and
crash again; `CRASH_PHANTOMS` lives have readers. A failure names the call that shows it again.
"""

from __future__ import annotations

from random import Random

import pytest

from dragoman.core.storage.options import Durability
from dragoman.simulation.disk import SimDisk
from support.effort import effort
from support.life import PASSING
from support.phantom import phantom
from support.spread import spread
from support.store import Driven
from support.survey import double_crash, survey
from support.thinned import survey_thinned
from support.verdict import rule

STATES = effort("CRASH_STATES", 100_000)
DOUBLE = effort("CRASH_DOUBLE", 50)
PHANTOMS = effort("CRASH_PHANTOMS", 1000)
QUOTA = 5000
LIMIT = 12
SEEDS_APART = 10_000


@pytest.mark.slow
@pytest.mark.timeout(120 + STATES // 100)
def test_every_state_that_a_power_cut_may_leave_was_promised() -> None:
    found: set[int] = set()
    with rule("D5", "states that a power cut may leave, three modes, each recovered twice") as row:
        modes = list(Durability)
        rounds = 0
        while len(found) < STATES:
            missing = STATES - len(found)
            first, count = rounds, -(-missing // QUOTA)
            rounds += count
            tasks = [
                (modes[n % 3], n * SEEDS_APART, min(QUOTA, missing + 100), LIMIT)
                for n in range(first, first + count)
            ]
            for part in spread(survey, tasks):
                found |= part.states
                row.cases = len(found)


@pytest.mark.slow
@pytest.mark.timeout(120 + STATES // 100)
def test_every_state_that_a_power_cut_may_leave_of_a_compaction_is_whole() -> None:
    found: set[int] = set()
    with rule("D5", "the same of lives with compaction") as row:
        quota = STATES // 20
        tasks = [(n * SEEDS_APART, quota // 4, LIMIT) for n in range(4)]
        for part in spread(survey_thinned, tasks):
            found |= part
            row.cases = len(found)


def test_a_first_start_may_be_cut_off_in_every_way() -> None:
    dice = Random(1)
    with rule("D5", "states of a first start") as row:
        seen: set[int] = set()
        disk = SimDisk()

        def look(number: int, name: str, path: str) -> None:
            for state in disk.crash_states(40, dice):
                mark = state.fingerprint(ignored=PASSING)
                if mark not in seen:
                    seen.add(mark)
                    again = Driven(state)
                    again.topic()
                    again.produce([b"first"])
                    again.settle()
                    assert Driven(state.stripped()).store.revealed_sequence == 2

        disk.fails = look
        Driven(disk)
        row.cases = len(seen)
        assert len(seen) >= 20


@pytest.mark.slow
@pytest.mark.timeout(120 + DOUBLE)
def test_a_second_crash_takes_nothing_that_the_first_one_left() -> None:
    with rule("D2", "crash, recover, append, crash, recover") as row:
        for cases in spread(double_crash, [(seed,) for seed in range(DOUBLE)]):
            row.cases += cases
        assert row.cases == DOUBLE


@pytest.mark.slow
@pytest.mark.timeout(120 + PHANTOMS // 10)
def test_nothing_that_a_reply_showed_ever_vanishes() -> None:
    step = 50
    tasks = [(first, min(first + step, PHANTOMS)) for first in range(0, PHANTOMS, step)]
    with rule("D9", "readers and writers until the power goes: nothing shown vanishes") as row:
        shown = 0
        for cases, replies in spread(phantom, tasks):
            row.cases += cases
            shown += replies
        assert row.cases == PHANTOMS
        assert shown > 10 * PHANTOMS
