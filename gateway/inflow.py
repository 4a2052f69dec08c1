"""One budget for the bytes that peers have sent and nobody has served yet, of all connections.

What is charged is what has arrived, never what a frame declares: halves of frames, and whole ones
that wait for their turn or for a thread. Once three quarters are taken, connections with half a
frame are read no more, but for

- the one whose frame is the oldest, so that there is always one that can end;
- those whose frame fits in 64 KiB, which go on into the last quarter.

A connection without half a frame is read as ever, in small pieces, so that who asks something short
is served. Half a frame that makes no progress while memory is short is closed. A connection whose
frames arrive whole is never counted and costs nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.clock import Now
    from dragoman.gateway.session import Session

BYTES_MAX = 256 * 1024 * 1024
STALL_US = 10_000_000
SMALL_FRAME_BYTES_MAX = 64 * 1024
"""Frames that fit in so much are served from the last quarter of the budget."""
PROGRESS_BYTES_MIN = 16 * 1024
"""Half a frame that gets less in the time it has is stalled: a byte now and then is no progress."""

_log = structlog.get_logger("dragoman.inflow")


class Inbound(Protocol):
    """A connection, as far as the budget knows it.

    Attributes:
        charged: What the budget has counted of it.
    """

    session: Session
    charged: int

    def willing(self) -> bool:
        """Whether it would be read, were there memory."""

    def read_on(self, now: Now) -> None:
        """It may be read again."""

    def backlog(self) -> int:
        """Bytes that the system holds for it, which nobody reads while it rests."""

    def shed(self, reason: str, now: Now) -> None:
        """Closes it."""


class _Arrival:
    """What has arrived of one connection's frame: `taken` in all, of which `marked` was there at
    `marked_us`."""

    __slots__ = ("marked", "marked_us", "taken")

    def __init__(self, now: Now) -> None:
        self.taken = 0
        self.marked = 0
        self.marked_us = now.mono_us

    def mark(self, now: Now) -> None:
        """Progress is counted from here on."""
        self.marked = self.taken
        self.marked_us = now.mono_us


class Inflow:
    """The budget.

    Attributes:
        bytes_held: What is charged now.
        short: Whether connections with half a frame rest.
        sheds: Connections closed because their half frame made no progress.
    """

    def __init__(self, bytes_max: int = BYTES_MAX, stall_us: int = STALL_US) -> None:
        self._bytes_max = bytes_max
        self._high = bytes_max - bytes_max // 4
        self._low = self._high - self._high // 8
        self._stall_us = stall_us
        self._arrivals: dict[Inbound, _Arrival] = {}
        self._resting: dict[Inbound, None] = {}
        self._oldest: Inbound | None = None
        self._narrow: list[Callable[[bool], None]] = []
        self._told_short = False
        self.bytes_held = 0
        self.short = False
        self.sheds = 0

    def narrows(self, narrow: Callable[[bool], None]) -> None:
        """Has `narrow` called whenever memory gets short, and when it no longer is."""
        self._narrow.append(narrow)

    def count(self, inbound: Inbound, now: Now) -> None:
        """The session of a connection holds another amount than what was charged."""
        arrived = inbound.session.arrived
        grown = arrived - inbound.charged
        inbound.charged = arrived
        self.bytes_held += grown
        arrival = self._arrivals.get(inbound)
        if arrival is None:
            arrival = self._arrivals[inbound] = _Arrival(now)
        if grown < 0:  # a frame was served: what is left began after it
            del self._arrivals[inbound]
            if arrived:
                arrival.taken += arrived
                self._arrivals[inbound] = arrival
            if inbound is self._oldest:
                self._oldest = None
        else:
            arrival.taken += grown
        if self.short or self.bytes_held > self._high:
            self._balance(now)

    def forget(self, inbound: Inbound, now: Now) -> None:
        """A connection is gone."""
        self._resting.pop(inbound, None)
        if self._arrivals.pop(inbound, None) is not None:
            self.bytes_held -= inbound.charged
            inbound.charged = 0
            if inbound is self._oldest:
                self._oldest = None
            if self.short:
                self._balance(now)

    def may_read(self, inbound: Inbound) -> bool:
        """Whether a connection may be read; one that may not is told by `read_on` when it may."""
        if not self.short or not inbound.charged:
            return True
        frame_bytes = inbound.charged + inbound.session.wanted()
        is_small = frame_bytes <= SMALL_FRAME_BYTES_MAX and self.bytes_held < self._bytes_max
        if is_small or self._choose() is inbound:
            self._resting.pop(inbound, None)
            return True
        self._resting[inbound] = None
        return False

    def wake_resting(self, now: Now) -> None:
        """Looks whether another frame is the oldest that can be read."""
        if self.short:
            self._balance(now)

    def sweep(self, now: Now) -> None:
        """Closes what makes no progress while memory is short; says when it gets so."""
        if self.short != self._told_short:
            self._told_short = self.short
            if self.short:
                _log.warning(
                    "memory for arriving frames is short; who sends large ones takes turns",
                    bytes_held=self.bytes_held,
                    connections=len(self._arrivals),
                )
                for arrival in self._arrivals.values():
                    arrival.mark(now)
            else:
                _log.info("memory for arriving frames is enough again", bytes_held=self.bytes_held)
        if self.short:
            self._shed_stalled(now)

    def _shed_stalled(self, now: Now) -> None:
        stalled = []
        for inbound, arrival in self._arrivals.items():
            if not inbound.willing():
                arrival.mark(now)
            elif now.mono_us - arrival.marked_us >= self._stall_us:
                if self._is_stalled(inbound, arrival):
                    stalled.append(inbound)
                else:
                    arrival.mark(now)
        for inbound in stalled:
            self.sheds += 1
            inbound.shed("half a frame made no progress while memory was short", now)

    def _is_stalled(self, inbound: Inbound, arrival: _Arrival) -> bool:
        gained = arrival.taken - arrival.marked
        missing = inbound.session.wanted()
        if inbound in self._resting:
            unread = inbound.backlog()
            if unread and not missing:  # a line, of which nobody knows whether this is the end
                return False
            gained += unread
        return gained < PROGRESS_BYTES_MIN and not 0 < missing <= gained

    def _balance(self, now: Now) -> None:
        """Enters or leaves the short state; within it, lets the oldest frame go on."""
        if self.bytes_held <= self._low:
            if self.short:
                self._enter(False)
                resting, self._resting = self._resting, {}
                for inbound in resting:
                    self._read_on(inbound, now)
            return
        if not self.short:
            self._enter(True)
        oldest = self._choose()
        if oldest is not None and oldest in self._resting:
            del self._resting[oldest]
            self._read_on(oldest, now)

    def _enter(self, short: bool) -> None:
        self.short = short
        self._oldest = None
        for narrow in self._narrow:
            narrow(short)

    def _read_on(self, inbound: Inbound, now: Now) -> None:
        arrival = self._arrivals.get(inbound)
        if arrival is not None:
            arrival.mark(now)
        inbound.read_on(now)

    def _choose(self) -> Inbound | None:
        """The oldest frame whose connection can be read."""
        oldest = self._oldest
        if oldest is None or not oldest.willing():
            oldest = None
            for inbound in self._arrivals:
                if inbound.willing():
                    oldest = inbound
                    break
            self._oldest = oldest
        return oldest
