"""The clock of a simulated run: it moves only when the run says so."""

from __future__ import annotations

from dragoman.core.clock import Now

WALL_US = 1_700_000_000_000_000
"""What the wall clock shows at the start."""


class SimClock:
    """Both clocks, moved by hand.

    Attributes:
        now: What they show.
    """

    def __init__(self) -> None:
        self.now = Now(WALL_US, 1_000_000)

    def advance(self, passed_us: int) -> Now:
        """Lets time pass; returns what the clocks show then."""
        wall_us, mono_us = self.now
        self.now = Now(wall_us + passed_us, mono_us + passed_us)
        return self.now
