"""What a client raises. What the dialect cannot say at all is `codecs.base.Unsayable`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Unsayable
    from dragoman.core.calls import Reply
    from dragoman.core.error import ErrorCode, Failure


class ClientError(Exception):
    """The base of everything a client raises on its own."""


class Unreachable(ClientError):
    """No connection could be made; the message has the address and why."""


class ConnectionLost(ClientError):
    """The server closed the connection, or broke its protocol, with answers still owed."""


class NoAnswer(ClientError):
    """The server kept silent longer than the read timeout; the connection is closed."""


class PartlySent(ClientError):
    """Of several requests some were served before one that the dialect cannot say.

    Attributes:
        replies: Of those that were served.
    """

    def __init__(self, unsayable: Unsayable, replies: Sequence[Reply | Failure]) -> None:
        super().__init__(
            f"served as far as it could be said ({len(replies)} requests): {unsayable}"
        )
        self.replies = replies


class RequestRefused(ClientError):
    """The server understood and refused.

    Attributes:
        failure: The reason, in core's words, with its figures.
    """

    def __init__(self, failure: Failure) -> None:
        name = failure.code.name.lower().replace("_", " ")
        super().__init__(f"{name}: {failure.detail}" if failure.detail else name)
        self.failure = failure

    @property
    def code(self) -> ErrorCode:
        """The reason."""
        return self.failure.code
