"""Whether the server serves: what the health, readiness and liveness probes are told.

Each check is a name and a sentence that is empty while it holds; everything is looked up when it is
asked for, so that nobody pays for it in between.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from dragoman.gateway.clock import read_clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman.core.clock import Now
    from dragoman.core.interface import LogEngine
    from dragoman.gateway.flusher import Flusher
    from dragoman.gateway.listener import Listener

FLUSH_US_MAX = 30_000_000
"""A disk that takes longer for one flush is taken for one that does not answer."""


class Phase(Enum):
    """Where the server stands in its life; the value is what a broker that is not ready says."""

    STARTING = "Main listener not active"
    SERVING = ""
    DRAINING = "Shutting down"


class Health:
    """Looks at the parts of a server.

    Attributes:
        phase: Set by the server.
    """

    def __init__(
        self,
        engine: LogEngine,
        flusher: Flusher,
        listeners: Sequence[Listener],
        clock: Callable[[], Now] = read_clocks,
    ) -> None:
        self._engine = engine
        self._flusher = flusher
        self._listeners = listeners
        self._clock = clock
        self.phase = Phase.STARTING

    def unavailable(self) -> str:
        """Why the server as a whole is not there for clients, or ""."""
        if self.phase is not Phase.SERVING:
            return str(self.phase.value)
        if not all(listener.is_accepting for listener in self._listeners):
            return str(Phase.STARTING.value)
        return ""

    def checks(self) -> dict[str, str]:
        """Every check by name, with what is wrong or ""."""
        figures = self._engine.statistics()
        closed = [one.dialect.name for one in self._listeners if not one.is_accepting]
        not_accepting = f"not accepting: {', '.join(closed)}" if closed else ""
        flushing_us = self._flusher.flushing_us(self._clock())
        stuck = f"a flush has not ended for {flushing_us // 1_000_000} s"
        return {
            "listeners": str(self.phase.value) or not_accepting,
            "log": str(figures.get("failure", "")),
            "disk": "the disk is full: records are refused" if figures.get("store_full") else "",
            "flusher": stuck if flushing_us > FLUSH_US_MAX else "",
        }
