"""A connection over any Trio stream, a task each: TLS today, whatever else carries bytes tomorrow.

The same session as in the lane. One task reads, one writes; neither holds a timeout per request,
the reaper closes what is overdue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
import trio

from dragoman.gateway.carrier import LINGER_US, SLOW_READER_US, Pulse, overdue
from dragoman.gateway.clock import read_clocks
from dragoman.gateway.inflow import PROGRESS_BYTES_MIN, Inflow

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.clock import Now
    from dragoman.gateway.flusher import Flusher
    from dragoman.gateway.session import Session

RECEIVE_BYTES = 64 * 1024
RECEIVE_BYTES_MAX = 1024 * 1024
SHORT_RECEIVE_BYTES = 16 * 1024
"""What is read at once while memory is short."""
SEND_BYTES_MAX = 64 * 1024
"""What is sent at once: a peer that takes so much within its time is not stalled."""

_log = structlog.get_logger("dragoman.stream")


class StreamConnection:
    """Drives one session over one stream.

    Args:
        idle_us: Close it when it owes and is owed nothing after so long; 0 never.
        slow_reader_us: Close it when it takes nothing of the records that it asked for.
        inflow: The budget of what arrives, shared with all connections.
        unread: Bytes that have arrived and were not asked for yet, where the stream can tell.

    Attributes:
        charged: What the budget has counted of it.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        session: Session,
        flusher: Flusher,
        *,
        idle_us: int = 0,
        slow_reader_us: int = SLOW_READER_US,
        inflow: Inflow | None = None,
        unread: Callable[[], int] = lambda: PROGRESS_BYTES_MIN,
        clock: Callable[[], Now] = read_clocks,
    ) -> None:
        self._stream = stream
        self.session = session
        self._flusher = flusher
        self._idle_us = idle_us
        self._slow_reader_us = slow_reader_us
        self._inflow = Inflow() if inflow is None else inflow
        self._unread = unread
        self.charged = 0
        self._clock = clock
        self._pulse = Pulse(clock().mono_us)
        self._reader = trio.Event()
        self._writer = trio.Event()
        self._scope = trio.CancelScope()
        session.carrier = self

    async def run(self) -> None:
        """Serves until the session closes, the peer is gone, or the reaper cancels it."""
        session = self.session
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._read)
                    await self._write()
                    nursery.cancel_scope.cancel()
        finally:
            now = self._clock()
            session.gone(now)
            self._inflow.forget(self, now)
            await trio.aclose_forcefully(self._stream)

    def flush(self, now: Now) -> None:
        """Its session has something to send, or changed what it waits for."""
        if self.session.offload is not None:
            self._flusher.offload(self.session)
        if self.session.paused:
            self._flusher.later(self.session)
        if self.session.arrived != self.charged:
            self._inflow.count(self, now)
        self._wake()

    def willing(self) -> bool:
        """Whether it would be read, were there memory for it."""
        session = self.session
        return session.wants_read and not (session.produces and self._flusher.overloaded)

    def read_on(self, now: Now) -> None:
        """There is memory for the rest of its frame."""
        self._wake()

    def backlog(self) -> int:
        """Bytes that have arrived and nobody has asked for."""
        return self._unread()

    def shed(self, reason: str, now: Now) -> None:
        """Closes it after what was said already."""
        self._tell_closed(reason)
        if self.session.outbox.size:
            self._scope.cancel()
        else:
            self.session.end()
            self._wake()

    def sweep(self, now: Now) -> None:
        """Closes itself when overdue; sends keep-alives."""
        session = self.session
        if reason := overdue(session, self._pulse, self._idle_us, self._slow_reader_us, now):
            self._tell_closed(reason)
            self._scope.cancel()
        elif session.follows:
            session.keep_alive(now)
            self._wake()

    def wake_resting(self, now: Now) -> None:
        """Reads a producer again once the engine is no longer overloaded."""
        if self.session.produces and not self._flusher.overloaded:
            self._wake()

    def drain(self, now: Now) -> None:
        """Hears no more; closes once everything asked is answered."""
        self.session.drain(now)
        self._wake()

    def _wake(self) -> None:
        self._reader.set()
        self._writer.set()

    async def _read(self) -> None:
        session = self.session
        while True:
            while not self._may_read():
                self._reader = trio.Event()
                await self._reader.wait()
            try:
                size = RECEIVE_BYTES
                if self.charged:
                    size = min(max(size, session.wanted()), RECEIVE_BYTES_MAX)
                elif self._inflow.short:
                    size = SHORT_RECEIVE_BYTES
                data = await self._stream.receive_some(size)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._scope.cancel()
                return
            now = self._clock()
            self._pulse.heard_us = now.mono_us
            session.received(data, now)
            self.flush(now)
            self._flusher.poke(now)
            if not data:
                return

    def _may_read(self) -> bool:
        return self.willing() and self._inflow.may_read(self)

    def _tell_closed(self, reason: str) -> None:
        client = self.session.client
        _log.info(
            "closed", session=client.number, dialect=client.dialect, peer=client.peer, reason=reason
        )

    async def _write(self) -> None:
        """Sends what the session has until it closes; ends with a graceful close."""
        session = self.session
        while True:
            while session.outbox.size:
                now = self._clock()
                self._pulse.stalled_us = now.mono_us
                piece = session.outbox.take(SEND_BYTES_MAX)
                session.meter.bytes_out += len(piece)
                try:
                    await self._stream.send_all(piece)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    return
                now = self._clock()
                self._pulse.heard_us = now.mono_us
                self._pulse.stalled_us = 0
                if not session.outbox.size:
                    session.advance(now)
                    self.flush(now)
            if session.closing:
                break
            self._writer = trio.Event()
            await self._writer.wait()
        with trio.move_on_after(LINGER_US / 1_000_000):
            await self._stream.aclose()
