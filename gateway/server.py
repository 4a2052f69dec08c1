"""The whole server: one engine, a listener a dialect, and the order of their lives.

Nurseries own everything that runs. A stop (SIGTERM, SIGINT) stops accepting, answers what was
asked, flushes, makes a checkpoint and ends; a second one does not wait.
"""

from __future__ import annotations

import itertools
import signal
from typing import TYPE_CHECKING

import structlog
import trio

from dragoman.codecs.registry import dialect
from dragoman.codecs.rendering import RenderingCache
from dragoman.gateway.admin import Admin
from dragoman.gateway.admin_app import make_application
from dragoman.gateway.clock import read_clocks
from dragoman.gateway.descriptor import fit_connections, raise_descriptor_limit
from dragoman.gateway.door import is_loopback
from dragoman.gateway.flusher import Flusher
from dragoman.gateway.health import Health, Phase
from dragoman.gateway.inflow import Inflow
from dragoman.gateway.listener import Listener
from dragoman.gateway.metrics import Metrics
from dragoman.gateway.reaper import Reaper
from dragoman.gateway.table import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dragoman.core.interface import LogEngine
    from dragoman.gateway.config import AdminConfig, Config, ListenerConfig
    from dragoman.gateway.reaper import Swept
    from dragoman.gateway.tls import Tls

LAST_CHECKPOINT_SECONDS_MAX = 60
"""How long the last flush and checkpoint may take before the process ends without them."""

_log = structlog.get_logger("dragoman.server")


class Server:
    """Serves an engine on the listeners of a configuration.

    Binds every port at once, so that what cannot be served is refused before anything is.

    Raises:
        ConfigError: A port is taken, a certificate is not one, or limits do not fit the system.
    """

    def __init__(self, config: Config, engine: LogEngine) -> None:
        config = fit_connections(config, raise_descriptor_limit())
        self._config = config
        self._engine = engine
        self._flusher = Flusher(engine)
        self._stopping = trio.Event()
        self._renderings = renderings = RenderingCache()
        numbers = itertools.count(1)
        shared = config.server
        self._inflow = Inflow(
            shared.in_flight_bytes_max, round(shared.frame_stall_timeout_s * 1_000_000)
        )
        self._listeners: list[Listener] = []
        self._health = Health(engine, self._flusher, self._listeners)
        self._metrics = Metrics(
            engine,
            flusher=self._flusher,
            listeners=self._listeners,
            renderings=renderings,
            inflow=self._inflow,
            health=self._health,
            lag_series_max=config.admin.lag_series_max,
            admin_connections=lambda: 0 if self._admin is None else self._admin.connections,
        )
        self._admin: Admin | None = None
        try:
            for listener in config.listeners:
                self._listeners.append(
                    Listener(
                        listener,
                        dialect(listener.dialect),
                        engine=engine,
                        flusher=self._flusher,
                        renderings=renderings,
                        numbers=numbers,
                        inflow=self._inflow,
                        slow_reader_us=round(shared.slow_reader_timeout_s * 1_000_000),
                    )
                )
            if config.admin.enabled:
                self._admin = Admin(config.admin, make_application(self._health, self._metrics))
        except ConfigError:
            for opened in self._listeners:
                opened.close()
            raise

    @property
    def ports(self) -> Mapping[str, int]:
        """Where each dialect listens, and `admin`, where that is served."""
        ports = {listener.dialect.name: listener.port for listener in self._listeners}
        return ports if self._admin is None else {**ports, "admin": self._admin.port}

    def reload(self) -> None:
        """Reads the certificates of all listeners again; says in the log what became of it."""
        reloaded = []
        for name, tls in self._secured().items():
            try:
                tls.reload()
                reloaded.append(name)
            except ConfigError as error:
                _log.error("the old certificate stays", listener=name, error=str(error))
        _log.info(
            "SIGHUP: certificates are read again; all else is read at start only",
            certificates=", ".join(reloaded) or "none",
        )

    def _secured(self) -> dict[str, Tls]:
        """What speaks TLS, by name."""
        doors = {one.dialect.name: one.tls for one in self._listeners}
        doors["admin"] = None if self._admin is None else self._admin.tls
        return {name: tls for name, tls in doors.items() if tls is not None}

    def _tell(self) -> None:
        """Says where clients are welcome, and where nothing keeps strangers out."""
        secured = self._secured()
        tls = {"tls": ", ".join(secured)} if secured else {}
        _log.info("serving", **self.ports, **tls)
        doors: dict[str, ListenerConfig | AdminConfig] = {}
        doors |= {one.dialect: one for one in self._config.listeners}
        if self._config.admin.enabled:
            doors["admin"] = self._config.admin
        if public := {
            name: one.host
            for name, one in doors.items()
            if not is_loopback(one.host) and one.tls_client_ca is None
        }:
            _log.warning("whoever reaches these addresses is served; nobody is asked who", **public)

    def stop(self) -> None:
        """Asks for an orderly end."""
        self._stopping.set()

    async def run(self, started: Callable[[Mapping[str, int]], None] = lambda _: None) -> None:
        """Serves until stopped.

        Args:
            started: Told the ports once every listener accepts.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._flusher.run)
                nursery.start_soon(Reaper(self._engine, self._flusher, self._swept).run)
                for listener in self._listeners:
                    nursery.start_soon(listener.run)
                if self._admin is not None:
                    nursery.start_soon(self._admin.run)
                    nursery.start_soon(self._metrics.run)
                while not all(listener.is_accepting for listener in self._listeners):
                    await trio.lowlevel.checkpoint()
                self._health.phase = Phase.SERVING
                self._tell()
                started(self.ports)
                await self._stopping.wait()
                await self._drain()
                nursery.cancel_scope.cancel()
        finally:
            self._flusher.close()
            self._engine.close()

    async def run_until_signalled(self, started: Callable[[Mapping[str, int]], None]) -> None:
        """Serves until SIGTERM or SIGINT; the second one does not wait for anybody."""
        watched = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        with trio.open_signal_receiver(*watched) as signals:
            async with trio.open_nursery() as nursery:

                async def serve() -> None:
                    await self.run(started)
                    _log.info("stopped")
                    nursery.cancel_scope.cancel()

                nursery.start_soon(serve)
                async for number in signals:
                    if number == signal.SIGHUP:
                        self.reload()
                    elif self._stopping.is_set():
                        _log.warning("stopping at once")
                        nursery.cancel_scope.cancel()
                    else:
                        _log.info("stopping", signal=signal.Signals(number).name)
                        self.stop()

    def _swept(self) -> Iterable[Swept]:
        return [self._inflow, *(one for door in self._listeners for one in door.swept())]

    async def _drain(self) -> None:
        """Stops accepting, answers what was asked, makes everything durable; the admin port tells
        of it until the end."""
        self._health.phase = Phase.DRAINING
        with trio.move_on_after(self._config.drain_timeout_s) as waiting:
            for listener in self._listeners:
                listener.stop_accepting()
                listener.drain()
            for listener in self._listeners:
                await listener.wait_empty()
        left = sum(listener.connections for listener in self._listeners)
        if waiting.cancelled_caught and left:
            _log.warning("connections were still owed replies", connections=left)
        if inexact := self._renderings.inexact:
            _log.info("records were rendered inexactly", **inexact)
        self._engine.begin_close(read_clocks())
        with trio.move_on_after(LAST_CHECKPOINT_SECONDS_MAX) as closing:
            self._flusher.poke(read_clocks())
            await self._flusher.wait_quiet()
        if closing.cancelled_caught:
            _log.error("the last checkpoint did not end in time; the next start replays more")
