"""The one task with a timer: ticks the engine, closes what is overdue, keeps followers alive.

No request and no connection has a timer of its own; everything that a clock may end is looked at
here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog
import trio

from dragoman.gateway.clock import read_clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dragoman.core.clock import Now
    from dragoman.core.interface import LogEngine
    from dragoman.gateway.flusher import Flusher

TICK_SECONDS = 0.05
"""The engine asks for a tick at least this often."""
SWEEP_US = 1_000_000
"""How often connections are looked at."""
CLOCK_JUMP_US = 1_000_000
"""A wall clock that goes back further than this is worth a line in the log."""

_log = structlog.get_logger("dragoman.reaper")


class Swept(Protocol):
    """Something with connections: a lane, or a connection with a task of its own."""

    def sweep(self, now: Now) -> None:
        """Closes what is overdue and sends keep-alives."""

    def wake_resting(self, now: Now) -> None:
        """Reads producers again once the engine is no longer overloaded."""


class Reaper:
    """Ticks until cancelled.

    Args:
        swept: Gives everything that has connections, asked anew each time.
    """

    def __init__(
        self,
        engine: LogEngine,
        flusher: Flusher,
        swept: Callable[[], Iterable[Swept]],
        clock: Callable[[], Now] = read_clocks,
    ) -> None:
        self._engine = engine
        self._flusher = flusher
        self._swept = swept
        self._clock = clock
        self._last = clock()
        self._swept_us = self._last.mono_us

    async def run(self) -> None:
        """Ticks until cancelled."""
        while True:
            await trio.sleep(TICK_SECONDS)
            self.tick(self._clock())

    def tick(self, now: Now) -> None:
        """One look at everything that time may have changed."""
        passed_us = now.mono_us - self._last.mono_us
        if now.wall_us + CLOCK_JUMP_US < self._last.wall_us + passed_us:
            back_us = self._last.wall_us + passed_us - now.wall_us
            _log.warning("the wall clock went back", seconds=round(back_us / 1_000_000, 3))
        self._last = now
        self._engine.tick(now)
        self._flusher.poke(now)
        sweeping = now.mono_us - self._swept_us >= SWEEP_US
        if sweeping:
            self._swept_us = now.mono_us
        for one in self._swept():
            one.wake_resting(now)
            if sweeping:
                one.sweep(now)
