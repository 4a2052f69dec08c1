"""The admin port: a bounded number of HTTP connections beside the listeners, a task each."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

import structlog
import trio

from dragoman.gateway.asgi import HttpConnection
from dragoman.gateway.door import open_door, shown
from dragoman.gateway.listener import NO_DESCRIPTORS
from dragoman.gateway.secure import SecureStream
from dragoman.gateway.tls import HandshakeRefused, shake_hands, subject_of, tls_of

if TYPE_CHECKING:
    import socket

    from dragoman.gateway.asgi import Application
    from dragoman.gateway.config import AdminConfig

IDLE_SECONDS_MIN = 0.5
"""How long a connection may rest whatever others need: at the limit, those that have rested longer
give way, so that no crowd of them keeps a health probe out."""
CLOSE_SECONDS_MAX = 1.0
"""How long a peer may take to hear that a connection ends."""

_log = structlog.get_logger("dragoman.admin")


class Admin:
    """Serves an application on the address of a configuration, which it binds at once.

    Attributes:
        port: Where it listens.
        connections: How many it serves now.
        tls: Its certificate, or None where it is plain.

    Raises:
        ConfigError: The port is taken, or a certificate is not one.
    """

    def __init__(self, config: AdminConfig, application: Application) -> None:
        self._config = config
        self._application = application
        self._room = trio.Event()
        self._serving: dict[HttpConnection, None] = {}
        self.tls = tls_of(config, "admin")
        self._socket = open_door(config.host, config.port, "admin")
        self.port: int = self._socket.getsockname()[1]
        self.connections = 0

    async def run(self) -> None:
        """Serves until cancelled."""
        async with trio.open_nursery() as nursery:
            with self._socket:
                while True:
                    await trio.lowlevel.wait_readable(self._socket)
                    while self.connections >= self._config.connections_max:
                        await self._wait_for_room()
                    try:
                        accepted, address = self._socket.accept()
                    except BlockingIOError:
                        continue
                    except OSError as error:
                        if error.errno in NO_DESCRIPTORS:
                            _log.error("cannot accept", error=str(error))
                            await trio.sleep(0.1)
                        continue
                    accepted.setblocking(False)
                    self.connections += 1
                    nursery.start_soon(self._serve, accepted, address)

    async def _wait_for_room(self) -> None:
        """Waits until a connection ends, or has rested for so long that it gives way."""
        self._room = trio.Event()
        now = trio.current_time()
        until = now + IDLE_SECONDS_MIN
        rested = [(each.waits_since, each) for each in self._serving]
        waiting = [(since, each) for since, each in rested if since is not None]
        if waiting:
            since, longest = min(waiting, key=itemgetter(0))
            if now - since >= IDLE_SECONDS_MIN:
                longest.give_way()
            else:
                until = since + IDLE_SECONDS_MIN
        with trio.move_on_at(until):
            await self._room.wait()

    async def _serve(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        stream: trio.abc.Stream | None = None
        try:
            local = accepted.getsockname()[:2]
            stream = await self._open(accepted, address)
            connection = HttpConnection(
                stream,
                self._application,
                peer=address[:2],
                local=local,
                scheme="http" if self.tls is None else "https",
            )
            self._serving[connection] = None
            try:
                await connection.run()
            finally:
                del self._serving[connection]
            with trio.move_on_after(CLOSE_SECONDS_MAX):
                await stream.aclose()
        except HandshakeRefused as error:
            _log.info(
                "handshake failed",
                dialect="admin",
                peer=shown(address),
                reason=error.reason,
                **({"looks_like": error.looks_like} if error.looks_like else {}),
            )
        except Exception:
            _log.exception("fault", peer=shown(address))
        finally:
            if stream is not None:
                await trio.aclose_forcefully(stream)
            accepted.close()
            self.connections -= 1
            self._room.set()

    async def _open(self, accepted: socket.socket, address: tuple[str, int]) -> trio.abc.Stream:
        if self.tls is None:
            return trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
        secure = await shake_hands(accepted, self.tls, self._config.handshake_timeout_s)
        if subject := subject_of(secure):
            _log.info(
                "client certificate accepted", dialect="admin", peer=shown(address), subject=subject
            )
        return SecureStream(secure)
