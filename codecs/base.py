"""The contract between a dialect and the rest: what goes into a codec and what comes out.

A codec has no I/O, no clock and no engine. Garbage from a peer is data (`Refused`), never an
exception; an exception out of a codec is our own bug. `Codec` is the server's half of a connection,
`Speaker` the client's half of the same wire.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dragoman.codecs.rendering import RenderingCache
    from dragoman.core.calls import Reply, Request
    from dragoman.core.error import ErrorCode, Failure

Buffer = bytes | bytearray | memoryview


class Asked(NamedTuple):
    """A complete request. `tag` is what the codec needs to shape the answer.

    A tag with a true `droppable` says that the answer may be left out where the peer leaves its
    answers lying.
    """

    tag: Any
    request: Request


class Refused(NamedTuple):
    """Something that is not a request. Answered in its turn by `send_failure(tag, failure)`.

    `fatal` only where the position in the stream is lost: after the answer the connection closes.
    """

    tag: Any
    failure: Failure
    fatal: bool = False


class Offload(NamedTuple):
    """Work above 256 KiB: the session runs `call` in a thread, receives nothing more meanwhile,
    and treats what it returns as if `receive` had."""

    call: Callable[[], list[Heard]]


class HungUp(NamedTuple):
    """The stream is over (end of file, or a command that ends it): answer what was asked, then
    close."""

    reason: str = ""


class IfTopic(NamedTuple):
    """Something that means one thing where a topic exists when its turn comes, and another where it
    does not; the session decides, and goes on as if `receive` had returned the one or the other."""

    topic: str
    namespace: str
    there: list[Heard]
    missing: list[Heard]


Heard = Asked | Refused | Offload | HungUp | IfTopic


class Sent(NamedTuple):
    """Bytes to send, in order, without joining."""

    buffers: Sequence[Buffer]
    close_after: bool = False


NOTHING = Sent(())


@dataclass(slots=True)
class Limits:
    """What one connection may ask for; every dialect has its own defaults (see `Dialect.limits`).

    Attributes:
        frame_bytes_max: Largest frame or line accepted, without its length prefix.
        reply_bytes_max: Largest reply sent; at least one record, unless the dialect cannot.
    """

    frame_bytes_max: int
    reply_bytes_max: int


@dataclass(slots=True)
class Facts:
    """What a codec is told about its connection and listener.

    Attributes:
        peer, local: `(host, port)` of both ends.
        advertised: `(host, port)` for dialects that tell clients where to connect, or None: use
            `local`.
        renderings: Where rendered batches are kept, shared by all connections.
        options: The listener's options for this dialect, already validated by `Dialect.options`.
        loopback: The listener can be reached from its own machine only.
        token: Unpredictable bytes that no other connection has, of which a codec makes the ids that
            its dialect wants made; codecs roll no dice.
        tls_subject: Whom the client's certificate names, where the listener asks for one.
    """

    limits: Limits
    renderings: RenderingCache
    peer: tuple[str, int] = ("", 0)
    local: tuple[str, int] = ("127.0.0.1", 0)
    advertised: tuple[str, int] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    token: bytes = b""
    loopback: bool = True
    tls_subject: str = ""

    @property
    def address(self) -> tuple[str, int]:
        """Where clients should be told to connect."""
        return self.advertised or self.local


class Codec(Protocol):
    """One connection's speaker on the server's side."""

    def receive(self, data: Buffer) -> list[Heard]:
        """Takes what arrived (b"" = end of stream) and returns every complete request in it, in
        order.

        Never raises on what a peer sent. After a fatal `Refused` or a `HungUp` it is not called
        again.
        """

    def wanted(self) -> int:
        """Bytes still missing of the current frame, 0 where unknown; a hint for the next read's
        size."""

    def held(self) -> int:
        """Bytes of a frame that has begun and is not whole yet; 0 between two frames."""

    def send(self, tag: Any, reply: Reply) -> Sent:
        """Renders a reply; for the tag of a Follow it is called for every push."""

    def send_failure(self, tag: Any, failure: Failure) -> Sent:
        """Renders a failure in the dialect's own words."""

    def send_idle(self, tag: Any) -> Sent:
        """The keep-alive of a Follow; NOTHING for dialects without one."""


class Told(NamedTuple):
    """What a speaker heard: the reply to one of its requests, in order; or a push of a Follow."""

    reply: Reply | Failure
    push: bool = False


class Speaker(Protocol):
    """One connection's speaker on the client's side. Requests are answered in order."""

    def ask(self, request: Request) -> Sequence[Buffer]:
        """Renders a request.

        Raises:
            Unsayable: This dialect has no words for it.
        """

    def receive(self, data: Buffer) -> list[Told]:
        """Takes what arrived and returns every complete reply or push.

        Raises:
            ProtocolError: The server broke the protocol; the connection is of no more use.
        """


class Unsayable(ValueError):
    """A request or value that a dialect has no words for; the message names it."""


class ProtocolError(ValueError):
    """A server's bytes are not the dialect's."""


def no_options(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """For a dialect without options: refuses any."""
    if given:
        raise ValueError(f"unknown option {next(iter(given))!r}")
    return given


@dataclass(frozen=True, slots=True)
class Dialect:
    """Everything that the gateway and the clients need to know about one wire language.

    Attributes:
        name: As in configuration, logs and on the command line.
        port: Its customary port.
        connections_max, idle_timeout_s: The listener's defaults; idle 0 = never.
        options: Validates a listener's options of this dialect and fills in defaults.
            Raises ValueError with a sentence for people.
        speaker_options: Validates what `speaker` is called with, in the same manner.
    """

    name: str
    port: int
    limits: Limits
    codec: Callable[[Facts], Codec]
    speaker: Callable[..., Speaker]
    errors: Mapping[ErrorCode, object]
    options: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    connections_max: int = 10_000
    idle_timeout_s: float = 0.0
    speaker_options: Callable[[Mapping[str, Any]], Mapping[str, Any]] = no_options

    def speak(self, given: Mapping[str, Any]) -> Speaker:
        """A speaker with the options of a client.

        Raises:
            ValueError: This dialect's clients have no such option, or not this value of it.
        """
        try:
            return self.speaker(**self.speaker_options(given))
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None


_VERBS = (b"GET ", b"PUT ", b"POST", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ")


def foreign_protocol(first: bytes) -> str:
    """Names what the first bytes of a connection look like, or returns ""; for logs and error
    texts.

    Args:
        first: At least 4 bytes, as received.
    """
    if first[:1] == b"\x16" and first[1:2] == b"\x03":
        return "a TLS handshake"
    if first[:4] in _VERBS:
        return "an HTTP request"
    if first[:4] == b"SSH-":
        return "an SSH banner"
    return ""


def foreign_framing(first: bytes) -> str:
    """Names the framing that a connection begins with, or returns ""; asked by dialects for whom
    those bytes cannot be the beginning of a frame.

    Args:
        first: At least 4 bytes, as received.
    """
    if first[:3] == b"V1|":
        return "a V1 line"
    if first[:1] == b"\0":
        return "a frame with a big-endian length (Cursus, RustLog, Kafka)"
    if first[2:4] == b"\0\0":
        return "a frame with a little-endian length (Iggy)"
    return ""


def foreign_answer(first: bytes) -> str:
    """The end of a sentence that names what an answer looks like that cannot be one, or "".

    Args:
        first: At least 4 bytes, as received.
    """
    looks_like = "an HTTP answer" if first[:4] == b"HTTP" else foreign_framing(first)
    return f"; it looks like {looks_like}" if looks_like else ""
