from __future__ import annotations

from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from dragoman.core.clock import Now
from dragoman.gateway.reaper import SWEEP_US, Reaper
from support.house import ask, hear, open_house

if TYPE_CHECKING:
    from support.house import House


class Watched:
    """Counts what the reaper does to something with connections."""

    def __init__(self) -> None:
        self.sweeps = 0
        self.wakes = 0

    def sweep(self, now: Now) -> None:
        self.sweeps += 1

    def wake_resting(self, now: Now) -> None:
        self.wakes += 1


def reaper_of(house: House, watched: Watched) -> Reaper:
    return Reaper(house.engine, house.flusher, lambda: [watched], house.clock)


async def test_connections_are_swept_once_a_second_and_woken_every_tick() -> None:
    async with open_house() as house:
        watched = Watched()
        reaper = reaper_of(house, watched)
        for _ in range(40):
            house.ahead_us += SWEEP_US // 10
            reaper.tick(house.clock())
        assert watched.wakes == 40
        assert 3 <= watched.sweeps <= 4


async def test_a_long_poll_ends_with_a_tick() -> None:
    async with open_house() as house:
        reaper = reaper_of(house, Watched())
        peer = house.connect()
        await ask(peer, b"p a\n", b"ok 0\n")
        await ask(peer, b"w 1 5000\n" + b"e after\n", b"")
        await ask(house.connect(), b"e x\n", b"x\n")
        house.ahead_us += 5_100_000
        reaper.tick(house.clock())
        assert await hear(peer, 11) == b"none\nafter\n"


async def test_a_wall_clock_that_goes_back_is_logged_once() -> None:
    async with open_house() as house:
        reaper = reaper_of(house, Watched())
        now = house.clock()
        with capture_logs() as log:
            reaper.tick(now)
            reaper.tick(Now(now.wall_us - 5_000_000, now.mono_us + 1_000_000))
            reaper.tick(Now(now.wall_us - 4_000_000, now.mono_us + 2_000_000))
        assert [(entry["event"], entry["seconds"]) for entry in log] == [
            ("the wall clock went back", 6.0)
        ]
