"""Lives on a disk that fails, once or for good, at a call of the test's choice."""

from __future__ import annotations

import errno
from contextlib import suppress
from random import Random
from typing import NamedTuple

from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.storage import checkpoint
from dragoman.core.storage.disk import SyncFailed
from dragoman.core.storage.options import Durability
from dragoman.simulation.disk import PowerCut, ShortWrite, SimDisk
from support.life import PASSING, Wanderer
from support.store import Driven

STEPS = 60
FULL = (errno.ENOSPC, errno.EDQUOT)
FAILURES = {
    "EIO": (errno.EIO, False),
    "ENOSPC": (errno.ENOSPC, False),
    "EDQUOT": (errno.EDQUOT, False),
    "EINTR": (errno.EINTR, False),
    "short write, then ENOSPC": (errno.ENOSPC, True),
    "short write, then EIO": (errno.EIO, True),
}


class Site(NamedTuple):
    """Where the store calls the disk: the operation and the kind of file it is about."""

    operation: str
    kind: str


def kind_of(path: str) -> str:
    """The kind of a file, by its path."""
    parts = path.split("/")
    if len(parts) > 1 and parts[1] in ("journal", "catalog", "topics"):
        ends = parts[-1].rpartition(".")
        return f"{parts[1]}{ends[1]}{ends[2]}" if ends[1] else parts[1]
    return parts[-1]


class Failing:
    """Fails the n-th call of a site, once.

    Attributes:
        met: The call came and failed.
    """

    def __init__(self, site: Site, number: int, code: int, *, short: bool = False) -> None:
        self._site = site
        self._left = number
        self._code = code
        self._short = short
        self.met = False

    def __call__(self, _: int, operation: str, path: str) -> None:
        if self.met or (operation, kind_of(path)) != self._site:
            return
        self._left -= 1
        if self._left:
            return
        self.met = True
        if self._short and operation == "write":
            raise ShortWrite(700, OSError(self._code, "a part was written", path))
        kind = SyncFailed if operation.startswith("sync") else OSError
        raise kind(self._code, f"{operation} {path} was told to fail")


def sites(seed: int) -> list[Site]:
    """Every site that a life of this seed calls."""
    checkpoint.SYNC_THREADS = 1
    disk = SimDisk()
    found: dict[Site, None] = {}
    disk.fails = lambda _, operation, path: found.setdefault(Site(operation, kind_of(path)))
    Wanderer(disk, Random(seed)).wander(STEPS)
    return list(found)


def check_left(life: Wanderer, disk: SimDisk, dice: Random) -> None:
    """Whatever is on the disk now, a restart finds what was promised."""
    disk.fails = None
    killed = disk.killed()
    life.check(Driven(killed, **life.options), killed=True)
    # What a failed sync left in the page cache could be read, so it counts: it must be written now.
    life.check(Driven(killed.stripped(), **life.options), killed=True)
    for state in [disk.stripped(), *disk.crash_states(6, dice, PASSING)]:
        life.check(Driven(state, **life.options))


def one_failure(site: Site, number: int, failure: str, seed: int) -> int:
    """One life with one failed call: an error that is clear, nothing torn, nothing promised lost;
    a full disk heals. Returns whether the call was reached."""
    checkpoint.SYNC_THREADS = 1
    code, short = FAILURES[failure]
    site = Site(*site)
    disk, dice = SimDisk(), Random(seed)
    disk.fails = failing = Failing(site, number, code, short=short)
    life: Wanderer | None = None
    refusal: EngineError | None = None
    try:
        life = Wanderer(disk, dice)
        life.wander(STEPS)
    except EngineError as error:
        refusal = error
    except OSError:
        assert life is None, "only a start may raise what the disk raised"
    if not failing.met:
        return 0
    if life is None:
        disk.fails = None
        Wanderer(disk.killed(), dice).wander(5)
        Wanderer(disk.stripped(), dice).wander(5)
        return 1
    store = life.store
    if code in FULL and not site.operation.startswith("sync"):
        assert refusal is None
        assert store.failure is None, store.failure
        for _ in range(8):
            life.advance(2)
        assert store.revealed_sequence == store._sequence, "something waits for ever"
        assert store.statistics()["store_full"] == 0
        life.write()
        life.settle()
        assert store.revealed_sequence == store._sequence
    elif refusal is not None:
        assert refusal.code is ErrorCode.STORAGE_FAILED
        assert store.failure is not None
    check_left(life, disk, dice)
    return 1


def failed_sync(site: Site, number: int, seed: int) -> int:
    """The n-th sync of a kind fails: nothing more is acknowledged or taken, and a restart finds
    what had been; what the failed sync did not write is never counted on."""
    checkpoint.SYNC_THREADS = 1
    site = Site(*site)
    disk, dice = SimDisk(), Random(seed)
    life = Wanderer(disk, dice, durability=list(Durability)[seed % 2])
    disk.fails = failing = Failing(site, number, errno.EIO)
    with suppress(EngineError):
        for _ in range(100):
            life.wander(20)
            if failing.met:
                break
    if not failing.met:
        return 0
    store = life.store
    assert store.failure is not None
    revealed, calls = store.revealed_sequence, disk.operations
    for _ in range(3):
        life.advance(40)
    assert store.take_flush(life.now()) is None
    assert store.take_work(life.now()) == []
    try:
        life.put_topic(1, 1)
    except EngineError as error:
        code = error.code
    assert code is ErrorCode.STORAGE_FAILED
    assert (store.revealed_sequence, disk.operations) == (revealed, calls), "it went on"
    check_left(life, disk, dice)
    return 1


def wreck(seed: int) -> tuple[Wanderer, SimDisk]:
    """A life whose power was cut, and a disk that it may have left."""
    dice = Random(seed)
    disk = SimDisk()
    life = Wanderer(disk, dice, durability=list(Durability)[seed % 3])
    disk.cut_power_at(dice.randint(60, 300))
    with suppress(PowerCut):
        life.wander(STEPS)
    *_, state = disk.crash_states(1 + 7 * seed % 60, dice, PASSING)
    return life, state


def failing_recovery(seed: int) -> int:
    """A recovery fails at each of its calls, reading ones too, and again in the next one; the third
    one finds what was promised. Returns how many calls there are, times the ways to fail."""
    checkpoint.SYNC_THREADS = 1
    life, base = wreck(seed)
    whole = base.crashed()
    life.check(Driven(whole, **life.options))
    cases = 0
    for fail in (cut_power, fail_call, fail_look):
        total = whole.looks if fail is fail_look else whole.operations
        for number in range(1, total + 1):
            disk = base.crashed()
            for attempt in range(2):
                fail(disk, max(number - attempt, 1))
                with suppress(PowerCut, OSError):
                    Driven(disk, **life.options)
                disk = disk.stripped() if (number + attempt) % 2 else disk.killed()
            life.check(Driven(disk, **life.options))
            cases += 1
    return cases


def cut_power(disk: SimDisk, number: int) -> None:
    """The power goes at the n-th call that changes something."""
    disk.cut_power_at(number)


def fail_call(disk: SimDisk, number: int) -> None:
    """The n-th call that changes something fails."""
    disk.fail_at(number, errno.EIO)


def fail_look(disk: SimDisk, number: int) -> None:
    """The n-th call that opens, lists or reads fails."""

    def fails(at: int, operation: str, path: str) -> None:
        if at == number:
            raise OSError(errno.EIO, f"{operation} {path} was told to fail")

    disk.looks_fail = fails
