"""One dialect's door: accepts connections, gives each to the lane, or to a task where TLS is on."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import ssl
from functools import partial
from typing import TYPE_CHECKING

import structlog
import trio

from dragoman.codecs.base import Facts, Limits
from dragoman.core.outcome import Client
from dragoman.gateway.carrier import SLOW_READER_US
from dragoman.gateway.clock import read_clocks
from dragoman.gateway.config import is_loopback, parse_address
from dragoman.gateway.inflow import Inflow
from dragoman.gateway.lane import Lane, unread
from dragoman.gateway.session import Session
from dragoman.gateway.stream import HANDSHAKE_SECONDS_MAX, StreamConnection
from dragoman.gateway.table import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dragoman.codecs.base import Dialect
    from dragoman.codecs.rendering import RenderingCache
    from dragoman.core.clock import Now
    from dragoman.core.interface import LogEngine
    from dragoman.gateway.config import ListenerConfig
    from dragoman.gateway.flusher import Flusher
    from dragoman.gateway.reaper import Swept

ACCEPTS_MAX = 64
"""Connections accepted before other tasks have their turn."""
BACKLOG = 1024
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
        self._tls = _tls_context(config)
        self._room = trio.Event()
        self._empty = trio.Event()
        self._accepting = trio.CancelScope()
        self._streams: set[StreamConnection] = set()
        self._lane = Lane(
            flusher,
            idle_us=self._idle_us,
            slow_reader_us=slow_reader_us,
            inflow=self._inflow,
            on_closed=self._closed,
            clock=clock,
        )
        self.connections = 0
        self._socket = _bind(config)
        self.port: int = self._socket.getsockname()[1]

    def swept(self) -> Iterable[Swept]:
        """Everything with connections, for the reaper."""
        return (self._lane, *self._streams)

    async def run(self) -> None:
        """Serves until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._lane.run)
            with self._accepting, self._socket:
                while True:
                    if self.connections >= self.config.connections_max:
                        await self._wait_room()
                    await trio.lowlevel.wait_readable(self._socket)
                    await self._accept_some(nursery)

    def stop_accepting(self) -> None:
        """Closes the door; who is inside stays."""
        self._accepting.cancel()

    def drain(self) -> None:
        """Hears no connection any more; each closes once it has what it asked."""
        now = self._clock()
        self._lane.drain(now)
        for stream in list(self._streams):
            stream.drain(now)

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
            self._flusher.connections += 1
            try:
                self._open(accepted, address, nursery)
            except Exception:
                _log.exception("fault", dialect=self.dialect.name, peer=_shown(address))
                accepted.close()
                self._closed()

    def _open(
        self, accepted: socket.socket, address: tuple[str, int], nursery: trio.Nursery
    ) -> None:
        now = self._clock()
        if self._tls is None:
            session = self._session(accepted, address, now)
            self._lane.add(accepted, session, now)
        else:
            accepted.setblocking(False)
            nursery.start_soon(self._serve_tls, accepted, address)

    def _session(self, accepted: socket.socket, address: tuple[str, int], now: Now) -> Session:
        facts = Facts(
            limits=self._limits,
            renderings=self._renderings,
            peer=address[:2],
            local=accepted.getsockname()[:2],
            advertised=self._advertised,
            options=self.config.options,
            token=os.urandom(TOKEN_BYTES),
            loopback=self._loopback,
        )
        client = Client(next(self._numbers), self.dialect.name, _shown(address))
        return Session(self.dialect.codec(facts), self._engine, client, now)

    async def _serve_tls(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        assert self._tls is not None, "only TLS listeners serve streams"
        connection: StreamConnection | None = None
        try:
            stream = trio.SSLStream(
                trio.SocketStream(trio.socket.from_stdlib_socket(accepted)),
                self._tls,
                server_side=True,
                https_compatible=True,
            )
            shaken = False
            with trio.move_on_after(HANDSHAKE_SECONDS_MAX):
                await stream.do_handshake()
                shaken = True
            if not shaken:
                _log.info("handshake overdue", dialect=self.dialect.name, peer=_shown(address))
                return
            session = self._session(accepted, address, self._clock())
            connection = StreamConnection(
                stream,
                session,
                self._flusher,
                idle_us=self._idle_us,
                slow_reader_us=self._slow_reader_us,
                inflow=self._inflow,
                unread=partial(unread, accepted),
                clock=self._clock,
            )
            self._streams.add(connection)
            await connection.run()
        except trio.BrokenResourceError as error:
            _log.info(
                "handshake failed",
                dialect=self.dialect.name,
                peer=_shown(address),
                error=str(error.__cause__ or error),
            )
        except Exception:
            _log.exception("fault", dialect=self.dialect.name, peer=_shown(address))
        finally:
            if connection is not None:
                self._streams.discard(connection)
            accepted.close()
            self._closed()

    def _closed(self) -> None:
        self.connections -= 1
        self._flusher.connections -= 1
        self._room.set()
        if self.connections == 0:
            self._empty.set()


def _shown(address: tuple[str, int]) -> str:
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _tls_context(config: ListenerConfig) -> ssl.SSLContext | None:
    if config.tls_cert is None or config.tls_key is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.tls_cert, config.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"listeners.{config.dialect}: {config.tls_cert} and {config.tls_key} are not a "
            f"certificate and its key: {error}"
        ) from None
    return context


def _bind(config: ListenerConfig) -> socket.socket:
    where = f"listeners.{config.dialect}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigError(f"{where}.host: {config.host} is not an address: {error}") from None
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            with contextlib.suppress(OSError):
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind(address)
        bound.listen(BACKLOG)
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"{where}: port {config.port} of {config.host} is taken by another process"
            ) from None
        raise ConfigError(
            f"{where}: cannot listen on {config.host}:{config.port}: {error.strerror}"
        ) from None
    return bound
