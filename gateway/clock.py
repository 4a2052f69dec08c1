"""The two clocks of the machine, read together once a round; everything below takes them as an
argument."""

from __future__ import annotations

from time import monotonic_ns, time_ns

from dragoman.core.clock import Now


def read_clocks() -> Now:
    """Reads the wall clock and the monotonic clock."""
    return Now(time_ns() // 1000, monotonic_ns() // 1000)
