"""What one listener counts while it serves: one addition where something happens, no more.

Nothing here knows of metrics by name; `gateway.metrics` reads these figures when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.core.error import ErrorCode

BOUNDS_US = (
    *(5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000),
    *(1_000_000, 2_500_000, 5_000_000, 10_000_000),
)
"""Upper ends of the buckets, those that the brokers' own library takes; a last one has no end."""
QUICK_US = BOUNDS_US[0]


class Histogram:
    """How many durations fell into each bucket.

    Attributes:
        quick: Those of the first bucket, into which nearly all fall.
        slow: Those of the other buckets, in their order.
        sum_us: Of all durations.
    """

    __slots__ = ("quick", "slow", "sum_us")

    def __init__(self) -> None:
        self.quick = 0
        self.slow = [0] * len(BOUNDS_US)
        self.sum_us = 0

    def observe(self, duration_us: int) -> None:
        """Counts one."""
        self.sum_us += duration_us
        if duration_us <= QUICK_US:
            self.quick += 1
        else:
            self.slow[bisect_left(BOUNDS_US, duration_us) - 1] += 1

    def buckets(self) -> list[int]:
        """The count of each bucket."""
        return [self.quick, *self.slow]


class Meter:
    """The counters of one listener, shared by its sessions.

    Attributes:
        bytes_in, bytes_out: Of the dialect; under TLS, before it is encrypted.
        requests: Of connections that are gone; those that live know their own.
        refusals: Failures that were told to peers.
        latency: From the round in which a produce request was heard to its reply's release, of
            those that were accepted.
    """

    __slots__ = ("bytes_in", "bytes_out", "latency", "refusals", "requests")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.requests = 0
        self.refusals: Counter[ErrorCode] = Counter()
        self.latency = Histogram()
