"""Power cuts between all operations of a life, in every way that the disk may take them."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.storage import checkpoint
from dragoman.core.storage.catalog_file import catalog_sequences
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.options import Durability
from dragoman.simulation.disk import PowerCut, SimDisk
from support.life import PASSING, Wanderer
from support.store import Driven

if TYPE_CHECKING:
    from support.life import Life

STEPS = 60
LEFTOVERS = 5
CUT_SHORT = 1 / 8
"""Of so many states the recovery is cut short; after half of a rename at each call."""
RECOVERY_CALLS = 45
"""About as many calls as a recovery makes that change something."""
DAMAGED = 1 / 16
"""Of so many states the newest catalog is damaged, too."""
SYNCED = (Durability.FSYNC,)
"""Only there all of the journal since the older catalog is on disk."""
CACHES = (".index",)


class Survey:
    """Looks, before each operation of a life's disk, at what a power cut would leave there.

    Args:
        found: Takes the different states that were met; at `quota` of them the life ends.
        limit: How many states are looked at before each operation.
    """

    def __init__(
        self, life: Life, disk: SimDisk, dice: Random, found: set[int], *, limit: int, quota: int
    ) -> None:
        self._ends: dict[int, int] = {}
        self._found = found
        self._quota = quota
        self._life = life
        self._disk = disk
        self._dice = dice
        self._limit = limit
        disk.fails = self.look

    def look(self, number: int, name: str, path: str) -> None:
        """Checks up to `limit` states of the disk as it is now; ends the life at the quota."""
        ends = self._ends
        if len(self._found) >= self._quota:
            raise PowerCut
        for at, state in enumerate(self._disk.crash_states(self._limit, self._dice, PASSING)):
            mark = state.fingerprint(ignored=PASSING)
            try:
                end = ends.get(mark)
                if end is None:
                    ends[mark] = self._recover(state, lost=bool(at & 1))
                    self._found.add(mark)
                else:
                    assert end >= self._life.durable, f"{end} before {self._life.durable}"
            except Exception as error:
                raise AssertionError(f"state {at} before operation {number}: {name} {path}") from (
                    error
                )

    def _recover(self, state: SimDisk, *, lost: bool) -> int:
        """Recovers twice; in between the power goes again, and takes all that it may if `lost`."""
        options = self._life.options
        if self._dice.random() < DAMAGED and self._life.store._options.durability in SYNCED:
            self._fall_back(state)
        if state.has_two_names("data/catalog"):
            for number in range(1, RECOVERY_CALLS):
                self._cut_short(state, number)
        elif self._dice.random() < CUT_SHORT:
            self._cut_short(state, self._dice.randint(1, RECOVERY_CALLS))
        after = Driven(state, **options)
        end = self._life.check(after)
        kept = state.fingerprint("data/topics", CACHES)
        second = state.stripped() if lost else state.crashed()
        again = Driven(second, **options)
        assert self._life.check(again) == end, "a second recovery found another end"
        assert second.fingerprint("data/topics", CACHES) == kept, (
            "a second recovery changed the segments"
        )
        return end

    def _cut_short(self, state: SimDisk, number: int) -> None:
        """The power goes again at the n-th call of the recovery."""
        second = state.crashed()
        second.cut_power_at(number)
        with suppress(PowerCut):
            Driven(second, **self._life.options)
        *_, third = second.crash_states(self._dice.randint(1, 30), self._dice, PASSING)
        self._life.check(Driven(third, **self._life.options))

    def _fall_back(self, state: SimDisk) -> None:
        """Without its newest catalog the same is found, by the one before and a longer replay."""
        sequences = catalog_sequences(state, Layout("data"))
        if len(sequences) < 2:
            return
        whole, damaged = state.crashed(), state.crashed()
        damaged.file(f"data/catalog/{sequences[0]}.json")[9] ^= 1
        after = Driven(damaged, **self._life.options)
        assert f"catalog/{sequences[0]}.json" in after.store.damage.pop()
        assert (
            self._life.check(after) == Driven(whole, **self._life.options).store.revealed_sequence
        )


class Found(NamedTuple):
    """What one worker looked at."""

    states: set[int]
    lives: int
    points: int


def survey(mode: Durability, seed: int, quota: int, limit: int) -> Found:
    """Surveys lives, one seed after the other, until `quota` different states were recovered.

    Raises:
        AssertionError: Some state breaks a promise; the message has what it takes to see it again.
    """
    checkpoint.SYNC_THREADS = 1  # or which of several segments is synced first is not the seed's
    states: set[int] = set()
    lives = points = 0
    while len(states) < quota:
        disk = SimDisk()
        life = Wanderer(disk, Random(seed), durability=mode)
        Survey(life, disk, Random(seed), states, limit=limit, quota=quota)
        before = disk.operations
        try:
            with suppress(PowerCut):
                life.wander(STEPS)
        except AssertionError as error:
            raise AssertionError(f"survey(Durability.{mode.name}, {seed}, 1, {limit})") from error
        lives += 1
        points += disk.operations - before
        seed += 1
    return Found(states, lives, points)


def double_crash(seed: int) -> int:
    """Crashes a life, lets another one go on from what is left, and crashes that.

    The first crash ends the process alone, or takes the power with it. The second one comes in the
    recovery or later, and is looked at in many states.
    """
    checkpoint.SYNC_THREADS = 1
    dice = Random(seed)
    mode = list(Durability)[seed % 3]
    first = SimDisk()
    life = Wanderer(first, dice, durability=mode)
    first.cut_power_at(dice.randint(1, 400))
    with suppress(PowerCut):
        life.wander(STEPS)
    killed = bool(seed & 1)
    if killed:
        second = first.killed()
    else:
        *_, second = first.crash_states(1 + seed % 40, dice, PASSING)
    for count in range(1, LEFTOVERS + 1):
        _short_life(life, second.killed(), dice, mode, count)
    second.cut_power_at(dice.randint(1, dice.choice((60, 250))))
    heir: Wanderer | None = None
    with suppress(PowerCut):
        heir = Wanderer(second, dice, life, durability=mode)
        heir.wander(STEPS)
    for state in [second.killed(), second.stripped(), *second.crash_states(40, dice, PASSING)]:
        after = Driven(state, **life.options)
        (life if heir is None else heir).check(after)
    return 1


def _short_life(
    before: Wanderer, disk: SimDisk, dice: Random, mode: Durability, count: int
) -> None:
    """A life of one group: whatever the life before left in the journal behind it, although it may
    have the very sequence that would follow, is no part of it."""
    heir = Wanderer(disk, dice, before, durability=mode)
    if heir.written:
        place = dice.choice(heir.places())
        for number in range(count):
            heir.put(place, [b"heir %d" % number])
        heir.flush()
    end = heir.check(Driven(disk.killed(), **heir.options), killed=True)
    assert end == heir.store.revealed_sequence
