"""Between the event loop and the disk: hands the engine's work to threads and its answers back.

One thread flushes (group commit: what arrives during a sync is the next group), one writes
segments, one makes checkpoints, a few read and run what codecs offload. `poke` is called after
every round of a lane; one task waits for the threads' wake-up. Everything but the work itself
happens in the loop's thread, so the engine is never entered twice.
"""

from __future__ import annotations

import errno
from collections import deque
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

import structlog
import trio

from dragoman.core.interface import WorkLane
from dragoman.gateway.clock import read_clocks
from dragoman.gateway.delivery import deliver
from dragoman.gateway.meter import Histogram
from dragoman.gateway.wakeup import Wakeup
from dragoman.gateway.worker import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.clock import Now
    from dragoman.core.interface import LogEngine, Work
    from dragoman.gateway.session import Session
    from dragoman.gateway.worker import Done

INLINE_CONNECTIONS_MAX = 4
"""With more connections a flush goes to its thread even where it does not block: what arrives while
it is away makes the next group larger, and few large groups cost less than many small ones."""
TURN_NS_MAX = 5_000_000
"""How long answering goes on before other tasks have their turn."""
POOL_THREADS = 4
"""Threads for reads that may block and for what codecs offload."""

_log = structlog.get_logger("dragoman.flusher")


class Flusher:
    """Keeps the engine's work moving.

    Attributes:
        connections: How many there are on all listeners, kept by these.
        overloaded: Whether connections that produce should rest; as of the last poke.
        latency: How long flushes in the thread took, waiting for the loop included.
    """

    def __init__(self, engine: LogEngine, clock: Callable[[], Now] = read_clocks) -> None:
        self._engine = engine
        self._clock = clock
        self._wakeup = Wakeup()
        self._done: deque[Done] = deque()
        self._flushing = False
        self._flush_began_us = 0
        self._running = 0
        self._workers = {
            WorkLane.FLUSH: Workers("flush", 1, self._done, self._wakeup.signal),
            WorkLane.SEGMENT: Workers("segment", 1, self._done, self._wakeup.signal),
            WorkLane.CHECKPOINT: Workers("checkpoint", 1, self._done, self._wakeup.signal),
            WorkLane.COMPACT: Workers("compact", 1, self._done, self._wakeup.signal),
            WorkLane.READ: Workers("pool", POOL_THREADS, self._done, self._wakeup.signal),
        }
        self._quiet = trio.Event()
        self._paused: dict[Session, None] = {}
        self._relieved: list[Callable[[Now], None]] = []
        self.connections = 0
        self.overloaded = False
        self.latency = Histogram()

    @property
    def quiet(self) -> bool:
        """Whether no thread has anything to do."""
        return self._running == 0

    def flushing_us(self, now: Now) -> int:
        """For how long the flush that is under way has been so; 0 where none is."""
        return max(now.mono_us - self._flush_began_us, 1) if self._flushing else 0

    async def wait_quiet(self) -> None:
        """Returns once no thread has anything to do."""
        while not self.quiet:
            self._quiet = trio.Event()
            await self._quiet.wait()

    def poke(self, now: Now) -> None:
        """Hands new work to the threads and answers what became ready.

        The next group goes first, so that the disk works while replies are sent.
        """
        engine = self._engine
        now = self._take_flush(now)
        ends_ns = monotonic_ns() + TURN_NS_MAX
        while sessions := deliver(engine, now):
            for session in sessions:
                session.carrier.flush(now)
            now = self._take_flush(now)
            if monotonic_ns() >= ends_ns:
                self._wakeup.signal()
                break
        for work in engine.take_work():
            self._hand(work)
        was_overloaded, self.overloaded = self.overloaded, engine.overloaded()
        if was_overloaded and not self.overloaded:
            for relieved in self._relieved:
                relieved(now)

    def relieves(self, relieved: Callable[[Now], None]) -> None:
        """Calls this whenever connections that produce need not rest any more."""
        self._relieved.append(relieved)

    def offload(self, session: Session) -> None:
        """Runs the session's offloaded call in the pool; the session goes on afterwards."""
        call = session.take_offload()
        if call is None:
            return
        self._running += 1
        self._workers[WorkLane.READ].hand(session, call)

    def later(self, session: Session) -> None:
        """Lets a paused session go on once the others had their turn."""
        self._paused[session] = None
        self._wakeup.signal()

    async def run(self) -> None:
        """Takes back what the threads finished, and resumes who paused, until cancelled."""
        while True:
            await self._wakeup.wait_signalled()
            now = self._clock()
            self.collect(now)
            if self._paused:
                self._resume_some(now)
            self.poke(now)
            if self.quiet:
                self._quiet.set()

    def collect(self, now: Now) -> None:
        """Tells the engine and the sessions what the threads finished."""
        done = self._done
        while done:
            name, result, raised = done.popleft()
            self._running -= 1
            lane = getattr(name, "lane", None)
            if lane is None:
                name.offloaded(raised if raised is not None else result, now)
                name.carrier.flush(now)
            elif lane is WorkLane.FLUSH:
                self._flushing = False
                self.latency.observe(now.mono_us - self._flush_began_us)
                self._engine.flushed(name, self._disk_error(lane, raised), now)
            else:
                self._engine.finished(name, self._disk_error(lane, raised), now)

    def _resume_some(self, now: Now) -> None:
        """Resumes those who paused before this turn, as far as it lasts."""
        ends_ns = monotonic_ns() + TURN_NS_MAX
        for session in list(self._paused):
            del self._paused[session]
            if session.paused:
                session.resume(now)
                session.carrier.flush(now)
            if monotonic_ns() >= ends_ns:
                break
        if self._paused:
            self._wakeup.signal()

    def close(self) -> None:
        """Ends the threads; what is queued is done first."""
        for workers in self._workers.values():
            workers.close()
        self._wakeup.close()

    def _take_flush(self, now: Now) -> Now:
        """Begins the next flush; returns the time, which has gone on where that is done already."""
        if self._flushing or (flush := self._engine.take_flush()) is None:
            return now
        if flush.blocks or self.connections > INLINE_CONNECTIONS_MAX:
            self._flushing = True
            self._flush_began_us = now.mono_us
            self._hand(flush)
            return now
        raised: Exception | None = None
        try:
            flush.run()
        except Exception as error:
            raised = error
        now = self._clock()
        self._engine.flushed(flush, self._disk_error(flush.lane, raised), now)
        return now

    def _hand(self, work: Work) -> None:
        self._running += 1
        self._workers[work.lane].hand(work, work.run)

    def _disk_error(self, lane: Any, raised: Exception | None) -> OSError | None:
        """What the engine is told: a bug in a work fences the engine as a broken disk would."""
        if raised is None:
            return None
        _log.error("work failed", lane=lane.value, exc_info=raised)
        if isinstance(raised, OSError):
            return raised
        return OSError(errno.EIO, f"{type(raised).__name__}: {raised}")
