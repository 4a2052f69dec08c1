"""A client of one dialect: it asks in the dialect's bytes and hears what comes back, in order."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from dragoman.codecs.base import ProtocolError
from dragoman.core.error import Failure
from dragoman.simulation.rule import Broken, Rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dragoman.codecs.base import Dialect, Speaker
    from dragoman.core.calls import Request
    from dragoman.simulation.server import Server
    from dragoman.simulation.trace import Trace
    from dragoman.simulation.wire import Connection


class Pending(NamedTuple):
    """A request without its answer.

    Attributes:
        heard: Called with the reply.
        lost: Called where the connection ended first; with whether the server hears no more of it.
    """

    request: Request
    heard: Callable[[Any], object]
    lost: Callable[[bool], None]


def _nothing(is_over: bool) -> None:
    """What a request that changed nothing has to say about its loss."""


class Client:
    """One client, which has one connection at a time.

    Args:
        name: In the trace.
        make_speaker: The client's half of the dialect.
        pushed: Called with every push of a Follow.

    Attributes:
        connection: None while there is none.
        pending: What was asked and not answered on it.
        connections: How many it has had.
    """

    def __init__(
        self,
        name: str,
        server: Server,
        trace: Trace,
        dialect: Dialect,
        make_speaker: Callable[[], Speaker],
        pushed: Callable[[Any], None] | None = None,
    ) -> None:
        self.name = name
        self._server = server
        self._trace = trace
        self._dialect = dialect
        self._make_speaker = make_speaker
        self._speaker = make_speaker()
        self._pushed = pushed
        self.connection: Connection | None = None
        self.pending: deque[Pending] = deque()
        self.connections = 0

    @property
    def has_news(self) -> bool:
        """Whether something has reached it: bytes, or the end of the stream."""
        connection = self.connection
        return connection is not None and bool(connection.to_client or connection.is_gone)

    @property
    def is_connected(self) -> bool:
        """Whether it has a connection, as far as it knows."""
        return self.connection is not None

    @property
    def news(self) -> int:
        """Bytes that have reached it."""
        return 0 if self.connection is None else len(self.connection.to_client)

    def connect(self) -> bool:
        """Has a connection, if the server is up."""
        if self.connection is None:
            self.connection = self._server.connect(self._dialect)
            if self.connection is None:
                return False
            self.connections += 1
            self._speaker = self._make_speaker()
            self._trace.add(f"{self.name}: connects as {self.connection.number}")
        return True

    def ask(
        self,
        request: Request,
        heard: Callable[[Any], object],
        lost: Callable[[bool], None] = _nothing,
        *,
        answered: bool = True,
    ) -> None:
        """Sends a request on the open connection.

        Args:
            answered: It has a reply; a Follow has pushes alone.
        """
        assert self.connection is not None
        data = b"".join(map(bytes, self._speaker.ask(request)))
        self.connection.to_server += data
        if answered:
            self.pending.append(Pending(request, heard, lost))
        self._trace.add(f"{self.name}: {type(request).__name__}, {len(data)} bytes")

    def hear(self, size: int) -> None:
        """Up to `size` bytes that reached the client are read; or the end of the stream."""
        connection = self.connection
        assert connection is not None
        data = connection.take(size)
        if not data:
            if connection.is_gone:
                self._ended()
            return
        try:
            told = self._speaker.receive(data)
        except ProtocolError as error:
            raise Broken(Rule.PROTOCOL, f"{self.name} heard {error}") from None
        self._trace.add(f"{self.name}: hears {len(data)} bytes, {len(told)} replies")
        for reply, push in told:
            if self.connection is not connection:
                return  # it hung up over what it heard
            if push:
                assert self._pushed is not None
                self._pushed(reply)
                continue
            if not self.pending:
                raise Broken(Rule.ANSWER, f"{self.name} heard a reply to nothing: {reply}")
            asked = self.pending.popleft()
            if isinstance(reply, Failure):
                self._trace.add(f"{self.name}: {reply.code.name} {reply.detail}")
            asked.heard(reply)

    def hang_up(self, *, reset: bool) -> None:
        """Ends the connection; what was not answered never will be."""
        connection, self.connection = self.connection, None
        if connection is not None:
            self._trace.add(f"{self.name}: {'resets' if reset else 'hangs up'}")
            connection.hang_up(reset=reset)
            if connection.is_gone:
                self._server.forget(connection)
            self._lose(connection.is_gone)

    def _ended(self) -> None:
        """The server has ended the connection."""
        connection, self.connection = self.connection, None
        assert connection is not None
        self._trace.add(f"{self.name}: the connection ended")
        if not (connection.is_broken or connection.life.is_impaired):
            raise Broken(Rule.CLOSED, f"{self.name} was cut off")
        self._lose(True)

    def _lose(self, is_over: bool) -> None:
        while self.pending:
            self.pending.popleft().lost(is_over)
