"""Members of a group that are pushed to: they subscribe, listen, ask again, and go.

They speak the document's form of Cursus, in which a push is a frame with the value alone.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from dragoman.codecs.base import Told
from dragoman.codecs.cursus.fault import refused
from dragoman.codecs.registry import dialect
from dragoman.core.calls import Answered, JoinGroup
from dragoman.simulation.actor import Actor
from dragoman.simulation.client import Client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Buffer
    from dragoman.core.calls import Request
    from dragoman.simulation.actor import World
    from dragoman.simulation.wire import Connection

_U32 = Struct(">I")
ANSWER = b"OK topic="


class SubscribeSpeaker:
    """The client's half of SUBSCRIBE; what is pushed is told as an answer of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._unanswered = 0

    def ask(self, request: Request) -> Sequence[Buffer]:
        """See `Speaker.ask`."""
        assert isinstance(request, JoinGroup), "a subscriber asks for nothing else"
        self._unanswered += 1
        body = f"SUBSCRIBE {request.topic} {request.group}".encode()
        return [_U32.pack(len(body)), body]

    def receive(self, data: Buffer) -> list[Told]:
        """See `Speaker.receive`."""
        return [self._told(body) for body in self.bodies(data) if body]

    def bodies(self, data: Buffer) -> list[bytes]:
        """The bodies of all frames that are complete now."""
        buffer = self._buffer
        buffer += data
        found: list[bytes] = []
        at = 0
        while len(buffer) - at >= 4:
            end = at + 4 + _U32.unpack_from(buffer, at)[0]
            if end > len(buffer):
                break
            found.append(bytes(buffer[at + 4 : end]))
            at = end
        del buffer[:at]
        return found

    def _told(self, body: bytes) -> Told:
        failure = refused(body)
        is_answer = bool(self._unanswered) and (failure is not None or body.startswith(ANSWER))
        self._unanswered -= is_answer
        return Told(failure or Answered(body), push=not is_answer)


class Subscriber(Actor):
    """One who is pushed what its group assigns to its connection."""

    def __init__(self, name: str, world: World, topic: str, group: str) -> None:
        super().__init__(name, world, "cursus", 1)
        known = dialect("cursus")
        self.client = Client(
            self.name, world.server, world.trace, known, SubscribeSpeaker, self.pushed
        )
        self._request = JoinGroup(topic, group, name, bound=True)
        self._audience = world.audience(topic, group)
        self._is_subscribed = False

    def connected(self) -> None:
        """A new connection, which the audience listens to."""
        self._is_subscribed = False
        connection = self.client.connection
        assert connection is not None
        frames = SubscribeSpeaker()
        connection.witness = lambda data: self._witness(connection, frames.bodies(data))

    def do(self) -> None:
        """Subscribes; then mostly listens, and now and then asks again or goes."""
        random = self.world.random
        if not self._is_subscribed or random.random() < 0.05:
            self._is_subscribed = True
            self.ask(self._request, self._answered)
        elif random.random() < 0.05:
            self.client.hang_up(reset=random.random() < 0.5)

    def pushed(self, reply: Any) -> None:
        """A value, or why there are no more."""
        self._answered(reply)

    def _answered(self, reply: object) -> None:
        if self.is_refused(reply, None):
            self.client.hang_up(reset=True)

    def _witness(self, connection: Connection, bodies: list[bytes]) -> None:
        for body in bodies:
            if body.startswith(ANSWER):
                self._audience.subscribed(connection)
            elif refused(body) is not None:
                self._audience.ended(connection)
            elif body:
                self._audience.pushed(connection, body)
