"""A server in a thread over real sockets and a log in memory: for clients and commands.

Every dialect gets a port; all of them share one log. It is the conversation of
`support.conversation` with sockets around it, so what is under test is the client's side.
"""

from __future__ import annotations

import selectors
import socket
import threading
from typing import TYPE_CHECKING, Self

from dragoman.codecs.registry import dialect
from support.conversation import Conversation, Exchange

if TYPE_CHECKING:
    from types import TracebackType


class WiredServer:
    """Listens for some dialects on free ports of loopback.

    Attributes:
        ports: By dialect.
    """

    def __init__(self, *dialects: str) -> None:
        self.ports: dict[str, int] = {}
        self._exchange = Exchange()
        self._selector = selectors.DefaultSelector()
        self._connections: dict[socket.socket, Conversation] = {}
        for name in dialects:
            listener = socket.create_server(("127.0.0.1", 0))
            self.ports[name] = listener.getsockname()[1]
            self._selector.register(listener, selectors.EVENT_READ, name)
        self._waker, self._wakee = socket.socketpair()
        self._selector.register(self._wakee, selectors.EVENT_READ, "")
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                ready = key.fileobj
                assert isinstance(ready, socket.socket)
                if ready is self._wakee:
                    return
                if key.data is None:
                    self._received(ready)
                else:
                    accepted, _ = ready.accept()
                    self._connections[accepted] = Conversation(
                        dialect(key.data), exchange=self._exchange, port=self.ports[key.data]
                    )
                    self._selector.register(accepted, selectors.EVENT_READ)
            for connection, conversation in [*self._connections.items()]:
                self._say(connection, conversation.heard())

    def _received(self, connection: socket.socket) -> None:
        conversation = self._connections[connection]
        try:
            data = connection.recv(1 << 16)
        except ConnectionError:
            data = b""
        self._say(connection, conversation.send(data))
        if not data or conversation.closed:
            conversation.session.gone(conversation.now)
            self._selector.unregister(connection)
            del self._connections[connection]
            connection.close()

    def _say(self, connection: socket.socket, data: bytes) -> None:
        if data:
            try:
                connection.sendall(data)
            except ConnectionError:
                return  # its end of stream comes next

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._waker.send(b"!")
        self._thread.join()
        for key in [*self._selector.get_map().values()]:
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._waker.close()
        self._selector.close()
