"""HTTP/1.1 over one stream, for an ASGI application: h11 reads and writes heads, Trio waits.

Of ASGI it serves HTTP alone: there is no lifespan, and an application that wants one has it begun
and ended by who makes it.

Everything has a deadline: a request's head, a piece of its body, a piece of the answer. Cancelling
a connection ends it at once, whatever its peer does; servers that shield what they send wait for a
reader that takes nothing, and a stop of ours would wait with them.
"""

from __future__ import annotations

import contextlib
import re
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import h11
import orjson
import structlog
import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    Application = Callable[
        [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
        Awaitable[None],
    ]

HEAD_BYTES_MAX = 16 * 1024
"""The largest head of a request; above it 431."""
HEAD_SECONDS_MAX = 30.0
"""How long a connection may take until the head of its next request is there."""
BODY_SECONDS_MAX = 30.0
"""How long a peer may take for a piece of a request's body."""
SEND_SECONDS_MAX = 30.0
"""How long a peer may take for a piece of an answer."""
LINGER_SECONDS_MAX = 1.0
"""How long a refused peer is read on, so that a reset does not eat our answer."""
RECEIVE_BYTES = 64 * 1024
PROBLEM = "application/problem+json"
_ORIGIN = re.compile(rb"^https?://[^/?]*", re.IGNORECASE)

_log = structlog.get_logger("dragoman.admin")


def problem_of(status: int, detail: str = "") -> bytes:
    """The body of a refusal, as RFC 9457 has it."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    return orjson.dumps(body | ({"detail": detail} if detail else {}))


class Gone(ConnectionError):
    """The peer of an answer is gone, or takes nothing of it."""


class HttpConnection:
    """Serves the requests of one connection, one after the other.

    Args:
        peer, local: Both ends, for the application.
        scheme: `http` or `https`.

    Attributes:
        waits_since: Since when it waits for the head of a request; None while it serves one.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        application: Application,
        *,
        peer: tuple[str, int],
        local: tuple[str, int],
        scheme: str = "http",
    ) -> None:
        self._stream = stream
        self._application = application
        self._peer = peer
        self._local = local
        self._scheme = scheme
        self._wire = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        self._wait = trio.CancelScope()
        self.waits_since: float | None = None

    async def run(self) -> None:
        """Serves until either side has enough."""
        wire = self._wire
        try:
            while (request := await self._next_request()) is not None:
                await _Exchange(self, request).run()
                if not self._is_between():
                    break
                wire.start_next_cycle()
            if not self._wait.cancel_called:
                await self._linger()
        except Gone:
            pass

    def give_way(self) -> None:
        """Ends a connection that waits for the head of a request: another one needs its place."""
        self._wait.cancel()

    async def _next_request(self) -> h11.Request | None:
        self.waits_since = trio.current_time()
        with trio.move_on_after(HEAD_SECONDS_MAX) as self._wait:
            try:
                event = await self.next_event()
                self.waits_since = None
            except h11.RemoteProtocolError as error:
                # Behind the colon stand the peer's own bytes.
                await self._refuse(error.error_status_hint, str(error).partition(":")[0])
                return None
            if not isinstance(event, h11.Request):
                return None
            if not event.http_version.startswith(b"1."):
                await self._refuse(505, "this port speaks HTTP/1.1")
            elif len(event.target) + sum(map(_size, event.headers)) > HEAD_BYTES_MAX:
                await self._refuse(431, "the head of the request is too large")
            elif {b"content-length", b"transfer-encoding"} <= {name for name, _ in event.headers}:
                # A proxy in front may have believed the other one; RFC 9112 6.1.
                await self._refuse(400, "the length of the body is said twice")
            else:
                return event
        return None

    def _is_between(self) -> bool:
        """Whether both sides are done with a request, so that another may follow: a body that the
        application did not want is passed over as far as it is there, and not waited for."""
        wire = self._wire
        while wire.their_state is h11.SEND_BODY:
            try:
                if wire.next_event() is h11.NEED_DATA:
                    return False
            except h11.RemoteProtocolError:
                return False
        return wire.our_state is h11.DONE and wire.their_state is h11.DONE

    async def next_event(self) -> h11.Event | type[h11.PAUSED]:
        """What the peer says next.

        Raises:
            h11.RemoteProtocolError: It is not HTTP.
            Gone: The connection broke.
        """
        while (event := self._wire.next_event()) is h11.NEED_DATA:
            try:
                data = await self._stream.receive_some(RECEIVE_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                raise Gone("the peer is gone") from None
            self._wire.receive_data(bytes(data))
        assert not isinstance(event, type) or event is h11.PAUSED, "all else was asked for"
        return event

    async def say(self, *events: h11.Event) -> None:
        """Sends a part of an answer.

        Raises:
            Gone: The peer does not take it.
        """
        data = b"".join(self._wire.send(event) or b"" for event in events)
        try:
            with trio.fail_after(SEND_SECONDS_MAX):
                await self._stream.send_all(data)
        except trio.TooSlowError:
            raise Gone("the peer takes nothing of its answer") from None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise Gone("the peer is gone") from None

    @property
    def awaits_leave(self) -> bool:
        """Whether the peer holds its body back until it is told to go on."""
        return self._wire.they_are_waiting_for_100_continue

    async def answer_problem(self, status: int, detail: str = "") -> None:
        """Answers in one go, and ends the connection."""
        body = problem_of(status, detail)
        headers = [
            ("content-type", PROBLEM),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        await self.say(_head(status, headers), h11.Data(data=body), h11.EndOfMessage())

    async def _refuse(self, status: int, detail: str) -> None:
        if self._wire.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self.answer_problem(status, detail)

    async def _linger(self) -> None:
        """Says that there is no more, and reads what the peer may still send, for a moment."""
        if not isinstance(self._stream, trio.SocketStream):
            return
        with (
            trio.move_on_after(LINGER_SECONDS_MAX),
            contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError),
        ):
            await self._stream.send_eof()
            while await self._stream.receive_some(RECEIVE_BYTES):
                pass

    def scope_of(self, request: h11.Request) -> Message:
        """A request as ASGI has it; a proxy's client names the whole address as its target."""
        raw_path, _, query = _ORIGIN.sub(b"", request.target).partition(b"?")
        raw_path = raw_path or b"/"
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": request.http_version.decode(),
            "method": request.method.decode(),
            "scheme": self._scheme,
            "path": unquote(raw_path.decode("latin-1")),
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": list(request.headers),
            "client": self._peer,
            "server": self._local,
        }

    async def call(
        self,
        request: h11.Request,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Lets the application serve a request."""
        await self._application(self.scope_of(request), receive, send)


class _Exchange:
    """One request and its answer."""

    def __init__(self, connection: HttpConnection, request: h11.Request) -> None:
        self._connection = connection
        self._request = request
        self._heard_all = False
        self._head: h11.Response | None = None
        self._has_begun = False
        self._ended = trio.Event()

    async def run(self) -> None:
        """Runs the application; a fault of ours ends the connection, after a 500 where none of the
        answer has left."""
        try:
            await self._connection.call(self._request, self._receive, self._send)
        except (Gone, h11.RemoteProtocolError) as error:
            raise Gone(str(error)) from None
        except Exception:
            _log.exception("fault", path=self._request.target.decode("latin-1"))
            if self._has_begun:
                raise Gone("the answer is not whole") from None
            await self._connection.answer_problem(500)
            return
        if not self._ended.is_set():
            raise Gone("the application did not finish its answer")

    async def _receive(self) -> Message:
        connection = self._connection
        if self._heard_all:
            await self._ended.wait()
            return {"type": "http.disconnect"}
        if connection.awaits_leave:
            await connection.say(h11.InformationalResponse(status_code=100, headers=[]))
        with trio.move_on_after(BODY_SECONDS_MAX):
            event = await connection.next_event()
            if isinstance(event, h11.Data):
                return {"type": "http.request", "body": bytes(event.data), "more_body": True}
            self._heard_all = True
            return {"type": "http.request", "body": b"", "more_body": False}
        raise Gone("the peer does not send its body")

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
            self._head = _head(message["status"], headers)
            return
        events: list[h11.Event] = []
        if not self._has_begun:
            assert self._head is not None, "an answer has a head"
            events.append(self._head)
            self._has_begun = True
        if (body := message.get("body", b"")) and self._request.method != b"HEAD":
            events.append(h11.Data(data=body))
        is_last = not message.get("more_body", False)
        if is_last:
            events.append(h11.EndOfMessage())
        await self._connection.say(*events)
        if is_last:
            self._ended.set()


def _head(status: int, headers: list[Any]) -> h11.Response:
    dated = [("date", formatdate(usegmt=True)), *headers]
    return h11.Response(status_code=status, headers=dated, reason=HTTPStatus(status).phrase)


def _size(header: tuple[bytes, bytes]) -> int:
    name, value = header
    return len(name) + len(value)
