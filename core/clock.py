"""Time as an argument: the two clocks that every caller hands in."""

from __future__ import annotations

from typing import NamedTuple


class Now(NamedTuple):
    """One reading of both clocks, taken once a round by the shell.

    Attributes:
        wall_us: Microseconds since the Unix epoch; stamps records, drives retention and expiry.
        mono_us: Microseconds of a clock that never goes back; drives sessions, idle times and long
            polls.
    """

    wall_us: int
    mono_us: int
