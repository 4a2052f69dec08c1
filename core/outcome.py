"""A reply, or the promise of one, and what must be true before it may leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.core.calls import Reply
    from dragoman.core.error import Failure


@dataclass(slots=True, eq=False)
class Client:
    """One connection as the engine knows it.

    Attributes:
        number: Unique in the life of the process.
        dialect: The wire language it speaks.
        peer: Its address for people and logs, `host:port`.
    """

    number: int
    dialect: str
    peer: str = ""


class Outcome:
    """What became of a request.

    The session may send `reply` once `ready`. Until then the engine holds the outcome; when it
    becomes ready the engine returns it once from `take_ready`, and the session finds itself in
    `owner`.

    A Follow's outcome is never ready as a whole: whenever there may be something to push (or it
    failed) the engine returns it from `take_ready`, and the session calls `Engine.pull` as often as
    it has room.

    Attributes:
        reply: The reply or the failure; None while it is still promised.
        sequence: The journal sequence that has to be durable first; 0 for none.
        ready: The reply may leave now.
        follows: This is a Follow, which is pulled.
        owner: Whoever waits; set by the session, never read by the engine.
        state: The engine's own; no one else looks at it.
    """

    __slots__ = ("follows", "owner", "ready", "reply", "sequence", "state")

    def __init__(
        self,
        reply: Reply | Failure | None,
        sequence: int = 0,
        *,
        ready: bool = True,
        follows: bool = False,
    ) -> None:
        self.reply = reply
        self.sequence = sequence
        self.ready = ready
        self.follows = follows
        self.owner: Any = None
        self.state: Any = None
