"""What both forms of the wire share when they read: a request's tag, and how bad bytes are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.error import ErrorCode

if TYPE_CHECKING:
    from dragoman.codecs.rustlog.wire import Command


class Tag(NamedTuple):
    """What the codec must remember of a request to shape its answer.

    Attributes:
        json: The answer is JSON; otherwise binary.
        topic, partition, offset: As the client wrote them.
        group: The fetch named a group.
        bytes_max: What the fetch asked for.
    """

    command: Command
    json: bool
    topic: str = ""
    partition: int = 0
    offset: int = 0
    group: bool = False
    bytes_max: int = 0


class Malformed(Exception):
    """A payload is not a request; the codec turns it into a `Refused`, and it goes no further."""

    def __init__(self, detail: str, code: ErrorCode = ErrorCode.MALFORMED) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
