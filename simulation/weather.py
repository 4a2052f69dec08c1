"""What a run has to live through: how often what goes wrong, drawn once from its seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.core.storage.options import Durability

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class Weather:
    """The chances of a run, each of one in a thousand steps.

    Attributes:
        kills, power_cuts, stops: The server's life ends.
        sync_failures: A sync is about to fail, which fences the engine.
        full_disks: The disk is full for a while.
        hang_ups: A client ends its connection.
        jumps: Seconds pass at once.
        segment_bytes: Of one segment: small ones are often closed, and then compacted or dropped.
        caches_reads: Reads are answered from the page cache, else by a thread.
        durability: With less than `FSYNC` no power is cut.
    """

    kills: int
    power_cuts: int
    stops: int
    sync_failures: int
    full_disks: int
    hang_ups: int
    jumps: int
    segment_bytes: int
    caches_reads: bool
    durability: Durability

    @classmethod
    def drawn(cls, random: Random) -> Weather:
        """The weather of a seed: of every trouble none, some or much."""

        def chance(*choices: int) -> int:
            return random.choice(choices)

        durability = random.choice((Durability.FSYNC,) * 6 + (Durability.INTERVAL, Durability.OS))
        return cls(
            kills=chance(0, 0, 1, 4),
            power_cuts=chance(0, 1, 4) if durability is Durability.FSYNC else 0,
            stops=chance(0, 0, 1),
            sync_failures=chance(0, 0, 1, 3),
            full_disks=chance(0, 0, 0, 2),
            hang_ups=chance(0, 5, 20),
            jumps=chance(2, 6, 20),
            segment_bytes=chance(1024, 4096),
            caches_reads=random.random() < 0.5,
            durability=durability,
        )
