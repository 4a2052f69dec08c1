"""One connection of a run: bytes on their way in both directions, a session at the server's end.

Bytes arrive when the run says so, cut wherever it likes; either end may hang up with bytes still on
their way. The server's end keeps the carrier's part of the contract with the session
(`gateway.lane`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.codecs.base import Facts
from dragoman.core.outcome import Client
from dragoman.gateway.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.codecs.base import Dialect
    from dragoman.codecs.rendering import RenderingCache
    from dragoman.core.interface import LogEngine
    from dragoman.simulation.clock import SimClock
    from dragoman.simulation.server import Life

SOCKET_BYTES_MAX = 16 * 1024
"""So many bytes are on their way to a client at most; the rest waits in the session's outbox."""


class Connection:
    """Both directions of one connection, and the session that serves it.

    Attributes:
        life: The server's, in which it began.
        to_server, to_client: Bytes on their way.
        has_hung_up: The client has closed its half: after `to_server` the stream ends.
        has_ended: The server has read to the end of the stream.
        is_gone: The server has let go of it.
        is_broken: Because the server is no more.
        is_reset: The client is no more: nothing reaches it.
        witness: Told everything that leaves the server, whether it reaches the client or not.
    """

    def __init__(
        self,
        number: int,
        dialect: Dialect,
        engine: LogEngine,
        life: Life,
        renderings: RenderingCache,
        clock: SimClock,
    ) -> None:
        peer = ("127.0.0.1", 20_000 + number)
        facts = Facts(
            limits=dialect.limits,
            renderings=renderings,
            peer=peer,
            local=("127.0.0.1", dialect.port),
            options=dialect.options({}),
            token=number.to_bytes(16, "big"),
        )
        self.number = number
        self.life = life
        self._clock = clock
        self._engine = engine
        self.session = Session(
            dialect.codec(facts),
            engine,
            Client(number, dialect.name, f"{peer[0]}:{peer[1]}"),
            clock.now,
        )
        self.session.carrier = self
        self.to_server = bytearray()
        self.to_client = bytearray()
        self.has_hung_up = False
        self.has_ended = False
        self.is_gone = False
        self.is_broken = False
        self.is_reset = False
        self.witness: Callable[[bytes], None] | None = None

    # ------------------------------------------------------------ the client's end

    def hang_up(self, *, reset: bool) -> None:
        """The client ends it.

        Args:
            reset: At once, with what is on its way; otherwise the server still hears everything.
        """
        self.has_hung_up = self.is_reset = True
        self.to_client.clear()
        if reset:
            self.to_server.clear()
            self._let_go()

    def take(self, size: int) -> bytes:
        """Up to `size` bytes that have reached the client."""
        data = bytes(self.to_client[:size])
        del self.to_client[:size]
        if not self.is_gone:
            self.attend()
        return data

    # ------------------------------------------------------------ the server's end

    @property
    def is_heard(self) -> bool:
        """Whether the server would read now, and there is something to read."""
        session = self.session
        return bool(
            not self.is_gone
            and not self.has_ended
            and (self.to_server or self.has_hung_up)
            and session.wants_read
            and not (session.produces and self._engine.overloaded())
        )

    def arrive(self, size: int) -> None:
        """Up to `size` bytes, or the end of the stream, reach the server."""
        data = bytes(self.to_server[:size])
        del self.to_server[:size]
        if not data:
            self.has_ended = True
        self.session.received(data, self._clock.now)
        self.attend()

    def attend(self) -> None:
        """Sends what the session has, as far as there is room, and lets it go on."""
        session, now = self.session, self._clock.now
        outbox = session.outbox
        for _ in range(1000):
            self._move()
            if session.held and not outbox.size:
                session.advance(now)
            elif (call := session.take_offload()) is not None:
                session.offloaded(call(), now)
            elif session.paused:
                session.resume(now)
            else:
                break
        if session.closing and not outbox.size and not self.is_gone:
            self._let_go()

    def flush(self, now: object) -> None:
        """Its session has something to send."""
        self.attend()

    def broken(self) -> None:
        """The server is no more: nothing more comes but what is on its way."""
        self._drop()
        self.to_server.clear()
        self.is_gone = self.is_broken = True

    def _move(self) -> None:
        outbox = self.session.outbox
        if not outbox.size:
            return
        if self.is_reset:
            self._drop()
            return
        room = SOCKET_BYTES_MAX - len(self.to_client)
        if room > 0:
            data = b"".join(outbox.buffers)[:room]
            self.to_client += data
            if self.witness is not None:
                self.witness(data)
            outbox.sent(len(data))

    def _drop(self) -> None:
        """Nobody is there to take what the session has left."""
        outbox = self.session.outbox
        if self.witness is not None:
            self.witness(b"".join(outbox.buffers))
        outbox.clear()

    def _let_go(self) -> None:
        self._drop()
        self.is_gone = True
        self.to_server.clear()
        self.session.gone(self._clock.now)
