"""A whole server without sockets, threads or time: one connection of a dialect, played by hand.

`Conversation("v1").send(b"...")` returns everything that the server has answered by then. What
would run in a thread runs inline, and the clock moves only by `advance`. `another` opens a second
connection, of any dialect, to the same log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.codecs.base import Facts
from dragoman.codecs.registry import dialect
from dragoman.codecs.rendering import RenderingCache
from dragoman.core.clock import Now
from dragoman.core.engine import Engine
from dragoman.core.memory import MemoryStore
from dragoman.core.outcome import Client
from dragoman.gateway.delivery import deliver
from dragoman.gateway.session import Session

if TYPE_CHECKING:
    from dragoman.codecs.base import Codec, Dialect
    from dragoman.core.interface import LogEngine

WALL_US = 1_700_000_000_000_000
"""What the wall clock shows at the start."""
_TICK_US = 50_000


class Exchange:
    """What several conversations share: the log, the clock and the renderings."""

    def __init__(self, engine: LogEngine | None = None) -> None:
        self.now = Now(WALL_US, 1_000_000)
        self.engine: LogEngine = Engine(MemoryStore()) if engine is None else engine
        self.renderings = RenderingCache()
        self.sessions: list[Session] = []

    def settle(self) -> None:
        """Runs flushes, thread work and offloads until nothing is left to do."""
        engine = self.engine
        moved = True
        while moved:
            moved = False
            while (flush := engine.take_flush()) is not None:
                flush.run()
                engine.flushed(flush, None, self.now)
                moved = True
            for work in engine.take_work():
                work.run()
                engine.finished(work, None, self.now)
                moved = True
            moved |= bool(deliver(engine, self.now))
            for session in self.sessions:
                if (call := session.take_offload()) is not None:
                    session.offloaded(call(), self.now)
                    moved = True
                if session.paused:
                    session.resume(self.now)
                    moved = True

    def advance(self, seconds: float) -> None:
        """Lets time pass in small steps, so that everything due happens in its order."""
        left = round(seconds * 1_000_000)
        step = max(_TICK_US, left // 200)
        while left > 0:
            passed = min(step, left)
            left -= passed
            self.now = Now(self.now.wall_us + passed, self.now.mono_us + passed)
            self.engine.tick(self.now)
            self.settle()
            for session in self.sessions:
                session.keep_alive(self.now)


class Conversation:
    """One connection of a dialect.

    Args:
        spoken: A dialect, or the name of one in the registry.
        exchange: The server to connect to; a new one where it is missing.
        port: Where the client reached it; 0 for the dialect's customary one.
        options: The listener's options of the dialect.

    Attributes:
        closed: The server has closed the connection; what it said before was returned.
    """

    def __init__(
        self,
        spoken: str | Dialect,
        *,
        exchange: Exchange | None = None,
        port: int = 0,
        **options: Any,
    ) -> None:
        self.exchange = Exchange() if exchange is None else exchange
        self.dialect: Dialect = dialect(spoken) if isinstance(spoken, str) else spoken
        number = len(self.exchange.sessions) + 1
        facts = Facts(
            limits=self.dialect.limits,
            renderings=self.exchange.renderings,
            peer=("127.0.0.1", 50_000 + number),
            local=("127.0.0.1", port or self.dialect.port),
            options=self.dialect.options(options),
            token=number.to_bytes(16, "big"),
        )
        self.codec: Codec = self.dialect.codec(facts)
        self.session = Session(
            self.codec,
            self.exchange.engine,
            Client(number, self.dialect.name, f"127.0.0.1:{50_000 + number}"),
            self.exchange.now,
        )
        self.exchange.sessions.append(self.session)
        self.closed = False

    @property
    def engine(self) -> LogEngine:
        """The log that all conversations of this exchange share."""
        return self.exchange.engine

    @property
    def now(self) -> Now:
        """The manual clock."""
        return self.exchange.now

    def another(self, spoken: str | Dialect, **options: Any) -> Conversation:
        """A second connection to the same log."""
        return Conversation(spoken, exchange=self.exchange, **options)

    def send(self, data: bytes) -> bytes:
        """Sends bytes; returns everything that was answered by now."""
        if not self.closed:
            self.session.received(data, self.exchange.now)
        return self.heard()

    def advance(self, seconds: float) -> bytes:
        """Lets time pass; returns what was said meanwhile."""
        self.exchange.advance(seconds)
        return self.heard()

    def hang_up(self) -> bytes:
        """Ends our half of the stream; returns what was still owed."""
        return self.send(b"")

    def heard(self) -> bytes:
        """What the server has said since the last call."""
        pieces = []
        self.exchange.settle()
        while self.session.outbox.size:
            pieces.append(self.session.outbox.take())
            self.session.advance(self.exchange.now)
            self.exchange.settle()
        if self.session.closing and not self.closed:
            self.closed = True
            self.session.gone(self.exchange.now)
            self.exchange.settle()
        return b"".join(pieces)
