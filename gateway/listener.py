"""One dialect's door: accepts connections and gives each to the lane, after its handshake where TLS
is on."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import structlog
import trio

from dragoman.codecs.base import Facts, Limits
from dragoman.core.outcome import Client
from dragoman.gateway.carrier import SLOW_READER_US
from dragoman.gateway.clock import read_clocks
from dragoman.gateway.door import is_loopback, open_door, parse_address, shown
from dragoman.gateway.inflow import Inflow
from dragoman.gateway.lane import Lane
from dragoman.gateway.meter import Meter
from dragoman.gateway.session import Session
from dragoman.gateway.tls import HandshakeRefused, shake_hands, subject_of, tls_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator

    from dragoman.codecs.base import Dialect
    from dragoman.codecs.rendering import RenderingCache
    from dragoman.core.clock import Now
    from dragoman.core.interface import LogEngine
    from dragoman.gateway.config import ListenerConfig
    from dragoman.gateway.flusher import Flusher
    from dragoman.gateway.reaper import Swept
    from dragoman.gateway.secure import SecureSocket
    from dragoman.gateway.tls import Tls

ACCEPTS_MAX = 64
"""Connections accepted before other tasks have their turn."""
TOKEN_BYTES = 16
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_log = structlog.get_logger("dragoman.listener")


class Listener:
    """Serves one dialect on one address.

    Args:
        numbers: Gives every session of the process its number.
        inflow: The budget of what arrives on all listeners.
        slow_reader_us: A reader that takes nothing for so long is closed.

    Attributes:
        port: Where it listens.
        connections: How many it serves now.
        accepted: How many it has taken in.
        handshakes_refused: Those that got no further than TLS.
        is_accepting: Its door is open.
        meter: What its connections count.
        tls: Its certificate, or None where it is plain.
    """

    def __init__(
        self,
        config: ListenerConfig,
        dialect: Dialect,
        *,
        engine: LogEngine,
        flusher: Flusher,
        renderings: RenderingCache,
        numbers: Iterator[int],
        inflow: Inflow | None = None,
        slow_reader_us: int = SLOW_READER_US,
        clock: Callable[[], Now] = read_clocks,
    ) -> None:
        self.config = config
        self.dialect = dialect
        self._engine = engine
        self._flusher = flusher
        self._renderings = renderings
        self._numbers = numbers
        self._clock = clock
        self._idle_us = round(config.idle_timeout_s * 1_000_000)
        self._inflow = Inflow() if inflow is None else inflow
        self._slow_reader_us = slow_reader_us
        self._limits = Limits(config.frame_bytes_max, dialect.limits.reply_bytes_max)
        self._advertised = (
            None
            if config.advertised is None
            else parse_address(config.advertised, f"listeners.{config.dialect}.advertised")
        )
        self._loopback = is_loopback(config.host)
        self.tls = tls_of(config, f"listeners.{config.dialect}")
        self._room = trio.Event()
        self._empty = trio.Event()
        self._accepting = trio.CancelScope()
        self._handshakes: set[trio.CancelScope] = set()
        self._lane = Lane(
            flusher,
            idle_us=self._idle_us,
            slow_reader_us=slow_reader_us,
            inflow=self._inflow,
            on_closed=self._closed,
            clock=clock,
        )
        self.connections = 0
        self.accepted = 0
        self.meter = Meter()
        self.handshakes_refused = 0
        self.is_accepting = False
        self._socket = open_door(config.host, config.port, f"listeners.{config.dialect}")
        self.port: int = self._socket.getsockname()[1]

    @property
    def requests(self) -> int:
        """How many were heard, of connections that are gone and of those that live."""
        return self.meter.requests + sum(one.session.requests for one in self._lane.connections)

    def swept(self) -> Iterable[Swept]:
        """Everything with connections, for the reaper."""
        return (self._lane,)

    async def run(self) -> None:
        """Serves until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._lane.run)
            with self._accepting, self._socket:
                self.is_accepting = True
                while True:
                    if self.connections >= self.config.connections_max:
                        await self._wait_room()
                    await trio.lowlevel.wait_readable(self._socket)
                    await self._accept_some(nursery)

    def stop_accepting(self) -> None:
        """Closes the door; who is inside stays."""
        self.is_accepting = False
        self._accepting.cancel()

    def drain(self) -> None:
        """Hears no connection any more; each closes once it has what it asked. Who has not done
        with TLS has asked nothing."""
        for handshake in self._handshakes:
            handshake.cancel()
        self._lane.drain(self._clock())

    async def wait_empty(self) -> None:
        """Returns once no connection is left."""
        while self.connections:
            self._empty = trio.Event()
            await self._empty.wait()

    def close(self) -> None:
        """Gives the port back where `run` never did."""
        self._socket.close()

    async def _wait_room(self) -> None:
        _log.warning(
            "connection limit reached; accepting pauses",
            dialect=self.dialect.name,
            connections=self.connections,
        )
        while self.connections >= self.config.connections_max:
            self._room = trio.Event()
            await self._room.wait()
        _log.info("accepting again", dialect=self.dialect.name, connections=self.connections)

    async def _accept_some(self, nursery: trio.Nursery) -> None:
        for _ in range(min(ACCEPTS_MAX, self.config.connections_max - self.connections)):
            try:
                accepted, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in NO_DESCRIPTORS:
                    _log.error("cannot accept", dialect=self.dialect.name, error=str(error))
                    await trio.sleep(0.1)
                    return
                continue
            self.connections += 1
            self.accepted += 1
            self._flusher.connections += 1
            try:
                self._open(accepted, address, nursery)
            except Exception:
                _log.exception("fault", dialect=self.dialect.name, peer=shown(address))
                self._refuse(accepted)

    def _open(
        self, accepted: socket.socket, address: tuple[str, int], nursery: trio.Nursery
    ) -> None:
        if self.tls is None:
            now = self._clock()
            session = self._session(accepted, address, now)
            self._lane.add(accepted, session, now)
        else:
            accepted.setblocking(False)
            nursery.start_soon(self._open_tls, accepted, address)

    def _session(
        self, accepted: socket.socket, address: tuple[str, int], now: Now, subject: str = ""
    ) -> Session:
        facts = Facts(
            limits=self._limits,
            renderings=self._renderings,
            peer=address[:2],
            local=accepted.getsockname()[:2],
            advertised=self._advertised,
            options=self.config.options,
            token=os.urandom(TOKEN_BYTES),
            loopback=self._loopback,
            tls_subject=subject,
        )
        client = Client(next(self._numbers), self.dialect.name, shown(address))
        return Session(self.dialect.codec(facts), self._engine, client, now, self.meter)

    async def _open_tls(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        """Hands the lane a connection that has done with its handshake."""
        assert self.tls is not None, "a plain listener has no handshakes"
        try:
            accepted = await self._shake_hands(accepted, self.tls)
            subject = subject_of(accepted)
            now = self._clock()
            session = self._session(accepted, address, now, subject)
            if subject:
                client = session.client
                _log.info(
                    "client certificate accepted",
                    session=client.number,
                    dialect=client.dialect,
                    peer=client.peer,
                    subject=subject,
                )
            self._lane.add(accepted, session, now)
        except HandshakeRefused as error:
            self.handshakes_refused += 1
            _log.info(
                "handshake failed",
                dialect=self.dialect.name,
                peer=shown(address),
                reason=error.reason,
                **({"looks_like": error.looks_like} if error.looks_like else {}),
            )
            self._refuse(accepted)
        except Exception:
            _log.exception("fault", dialect=self.dialect.name, peer=shown(address))
            self._refuse(accepted)
        except BaseException:
            self._refuse(accepted)
            raise

    def _refuse(self, accepted: socket.socket) -> None:
        accepted.close()
        self._closed()

    async def _shake_hands(self, accepted: socket.socket, tls: Tls) -> SecureSocket:
        with trio.CancelScope() as scope:
            self._handshakes.add(scope)
            try:
                secure = await shake_hands(accepted, tls, self.config.handshake_timeout_s)
            finally:
                self._handshakes.discard(scope)
            if not scope.cancel_called:
                return secure
            secure.close()  # it was done just as the drain began, which the lane has heard of
        raise HandshakeRefused("the server stops")

    def _closed(self) -> None:
        self.connections -= 1
        self._flusher.connections -= 1
        self._room.set()
        if self.connections == 0:
            self._empty.set()
