"""A data directory on a simulated disk that is sound, until a test damages it."""

from __future__ import annotations

from dragoman.core.storage.verify import Damage, verify
from dragoman.simulation.disk import SimDisk
from support.store import Driven

SEGMENTS = "data/topics/1/0-1"


def running(count: int = 80) -> tuple[SimDisk, Driven]:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    for n in range(count):
        driven.produce([b"%d" % n * 50])
        driven.settle()
    driven.advance(31)
    return disk, driven


def stopped() -> tuple[SimDisk, list[str]]:
    """A directory after an orderly stop, and the names of its segment files."""
    disk, driven = running()
    driven.stop()
    return disk, [n for n in disk.list(SEGMENTS) if n.endswith(".log")]


def damaged_at(disk: SimDisk, path: str, at: int) -> list[Damage]:
    """What is named where one bit of one byte is other than it was."""
    data = disk.file(path)
    data[at] ^= 1 << at % 8
    report = verify("data", disk=disk)
    data[at] ^= 1 << at % 8
    return report.damage
