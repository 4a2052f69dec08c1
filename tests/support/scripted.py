"""A server that plays a script: on real sockets of loopback, in a thread, for tests of clients.

A script is a list of steps. Each step is what the next frame must hold and what is sent back; a
connection that comes while the script waits for one is accepted. The server speaks Cursus frames.
"""

from __future__ import annotations

import selectors
import socket
import threading
from typing import TYPE_CHECKING, NamedTuple, Self

from support.cursus import framed

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    Body = bytes | str
    Reply = Body | Callable[[bytes], Body] | None

PATIENCE_S = 20.0


class Expect(NamedTuple):
    """A step: a frame, from whichever connection, and its answer.

    Attributes:
        needle: What the frame has in it.
        reply: What is sent back, or what makes it of the frame; None for nothing.
        closes: The connection is closed then.
        late: Sent before the reply of the next step, on the connection of this one if it is still
            there: an answer that comes too late.
    """

    needle: bytes
    reply: Reply = None
    closes: bool = False
    late: Body | None = None


class Scripted:
    """Listens on a free port and plays its script once.

    Args:
        steps: In their order.
        beside: Steps that may come at any time, as often as they like.

    Attributes:
        port: Where.
        seen: The bodies of all frames, in order, each with the number of its connection.
        missed: What went otherwise than the script has it; empty once all is well.
    """

    def __init__(self, *steps: Expect, beside: tuple[Expect, ...] = ()) -> None:
        self._steps = [*steps]
        self._beside = beside
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.seen: list[tuple[int, bytes]] = []
        self.missed = ""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._waker, self._wakee = socket.socketpair()
        self._selector.register(self._wakee, selectors.EVENT_READ)
        self._buffers: dict[socket.socket, bytearray] = {}
        self._numbers: dict[socket.socket, int] = {}
        self._late: tuple[socket.socket, Body] | None = None
        self._thread = threading.Thread(target=self._serve)

    @property
    def address(self) -> str:
        """As servers name each other."""
        return f"127.0.0.1:{self.port}"

    def play(self, *steps: Expect) -> Self:
        """Adds steps that need the port's number."""
        self._steps += steps
        return self

    @property
    def bodies(self) -> list[bytes]:
        """All frames' bodies in order."""
        return [body for _, body in self.seen]

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                ready = key.fileobj
                assert isinstance(ready, socket.socket)
                if ready is self._wakee:
                    return
                if ready is self._listener:
                    accepted, _ = ready.accept()
                    self._buffers[accepted] = bytearray()
                    self._numbers[accepted] = len(self._numbers)
                    self._selector.register(accepted, selectors.EVENT_READ)
                else:
                    self._received(ready)

    def _received(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(1 << 16)
        except ConnectionError:
            data = b""
        if not data:
            self._close(connection)
            return
        buffer = self._buffers[connection]
        buffer += data
        while len(buffer) >= 4:
            end = 4 + int.from_bytes(buffer[:4], "big")
            if len(buffer) < end:
                return
            body = bytes(buffer[4:end])
            del buffer[:end]
            if not self._step(connection, body):
                return

    def _step(self, connection: socket.socket, body: bytes) -> bool:
        """Plays the step of one frame; returns whether the connection goes on."""
        self.seen.append((self._numbers[connection], body))
        for step in self._beside:
            if step.needle in body:
                self._answer(connection, step, body)
                return True
        if not self._steps:
            self.missed = self.missed or f"nothing more was expected, but {body[:80]!r} came"
            self._close(connection)
            return False
        step = self._steps.pop(0)
        if step.needle not in body:
            self.missed = self.missed or f"{step.needle!r} was expected, but {body[:120]!r} came"
        if self._late is not None:
            self._say(*self._late)
            self._late = None
        self._answer(connection, step, body)
        if step.late is not None:
            self._late = connection, step.late
        if step.closes:
            self._close(connection)
        return not step.closes

    def _answer(self, connection: socket.socket, step: Expect, body: bytes) -> None:
        reply = step.reply(body) if callable(step.reply) else step.reply
        if reply is not None:
            self._say(connection, reply)

    def _say(self, connection: socket.socket, body: Body) -> None:
        try:
            connection.sendall(framed(body))
        except OSError:
            return  # it is gone, as a late answer may find

    def _close(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._buffers[connection]
        connection.close()

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
        self._thread.join(PATIENCE_S)
        for connection in [*self._buffers]:
            self._close(connection)
        self._listener.close()
        self._wakee.close()
        self._waker.close()
        self._selector.close()
        if kind is None:
            assert not self.missed, self.missed
            assert not self._steps, f"still expected: {[step.needle for step in self._steps]}"
