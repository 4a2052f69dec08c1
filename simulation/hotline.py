"""A client without a wire: it asks the engine itself, as what runs inside the server does."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.error import Failure
from dragoman.core.outcome import Client as Asker

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dragoman.core.calls import Request
    from dragoman.core.interface import LogEngine
    from dragoman.core.outcome import Outcome
    from dragoman.simulation.clock import SimClock
    from dragoman.simulation.server import Life, Server
    from dragoman.simulation.trace import Trace


class Waiting(NamedTuple):
    """A request whose outcome is not ready.

    Attributes:
        heard: Called with the reply.
    """

    request: Request
    outcome: Outcome
    heard: Callable[[Any], object]


class Hotline:
    """Stands where a `simulation.client.Client` does, with the same words.

    Attributes:
        life: The server's, of which it asks; None while it asks nobody.
        pending: What was asked and is not ready, in order.
    """

    def __init__(self, name: str, server: Server, clock: SimClock, trace: Trace) -> None:
        self.name = name
        self._server = server
        self._clock = clock
        self._trace = trace
        self._engine: LogEngine | None = None
        self._asker = Asker(0, "inside")
        self.life: Life | None = None
        self.pending: deque[Waiting] = deque()

    @property
    def has_news(self) -> bool:
        """Whether the oldest outcome is ready, or the server is another one."""
        if self._engine is None:
            return False
        is_over = self._engine is not self._server.engine
        return is_over or bool(self.pending and self.pending[0].outcome.ready)

    @property
    def is_connected(self) -> bool:
        """Whether it has an engine to ask, as far as it knows."""
        return self._engine is not None

    @property
    def news(self) -> int:
        """Bytes that have reached it: answers come without any."""
        return 0

    def connect(self) -> bool:
        """Has an engine to ask, if the server is up."""
        if self._engine is None:
            self._engine = self._server.engine
            if self._engine is None:
                return False
            self.life = self._server.life
            self._asker = Asker(0, "inside")
            self._engine.connected(self._asker, self._clock.now)
        return True

    def ask(self, request: Request, heard: Callable[[Any], object]) -> None:
        """Asks; the answer comes by `hear`."""
        assert self._engine is not None
        if self._engine is self._server.engine:
            outcome = self._engine.handle(request, self._asker, self._clock.now)
            self.pending.append(Waiting(request, outcome, heard))
            self._trace.add(f"{self.name}: {request}")

    def hear(self, size: int) -> None:
        """Hears every answer that is ready; where the server is another one there is none."""
        if self._engine is not self._server.engine:
            self._engine = self.life = None
            self.pending.clear()
            self._trace.add(f"{self.name}: loses its engine")
            return
        while self.pending and self.pending[0].outcome.ready:
            asked = self.pending.popleft()
            reply = asked.outcome.reply
            if isinstance(reply, Failure):
                self._trace.add(f"{self.name}: {reply.code.name} {reply.detail}")
            asked.heard(reply)

    def hang_up(self, *, reset: bool) -> None:
        """Asks no more."""
        engine, self._engine = self._engine, None
        if engine is not None and engine is self._server.engine:
            engine.disconnected(self._asker, self._clock.now)
        self.life = None
        self.pending.clear()
