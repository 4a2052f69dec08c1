"""The server's half of a RustLog connection: frames in, requests out, replies in, frames out.

Both forms of the wire share the framing, `u32be length | payload`; each payload is told apart by
its first byte and answered in its own form. A bad payload leaves the framing intact and the
connection open; a bad length does not, and ends it.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING

from dragoman.codecs.base import (
    NOTHING,
    HungUp,
    Offload,
    Refused,
    foreign_framing,
    foreign_protocol,
)
from dragoman.codecs.framing import Reassembly
from dragoman.codecs.rustlog import binary, document
from dragoman.codecs.rustlog.binary import RECORDS_INLINE_MAX, declared_count
from dragoman.codecs.rustlog.document import JSON_INLINE_BYTES_MAX
from dragoman.codecs.rustlog.parse import Malformed, Tag
from dragoman.codecs.rustlog.reply import ReplyWriter, failed
from dragoman.codecs.rustlog.wire import COMMANDS, REQUESTS, Command
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from dragoman.codecs.base import Asked, Buffer, Facts, Heard, Sent
    from dragoman.core.calls import Reply

_LENGTH = Struct(">I")
_HEAD_BYTES = 4
_WHITE = b" \t\r\n"


def is_json(data: bytes, at: int, end: int) -> bool:
    """Whether a payload is meant as JSON: by its first byte, or the first that is not white space.

    Tab, line feed and carriage return are also opcodes or look like them, so they count as white
    space only where text follows.
    """
    lead = data[at]
    if lead in _WHITE:
        rest = data[at : min(end, at + 64)].lstrip(_WHITE) or data[at:end].lstrip(_WHITE)
        return 0x20 < rest[0] < 0x7F if rest else lead == 0x20
    return 0x20 < lead < 0x7F


class RustLogCodec:
    """One connection."""

    __slots__ = ("_frame_bytes_max", "_json", "_replies", "_reply_bytes_max", "_rest")

    def __init__(self, facts: Facts) -> None:
        self._frame_bytes_max = facts.limits.frame_bytes_max
        self._reply_bytes_max = facts.limits.reply_bytes_max
        self._replies = ReplyWriter(
            facts.renderings,
            facts.limits.reply_bytes_max,
            skips_too_large=facts.options.get("too_large") == "skip",
        )
        self._rest = Reassembly()
        # The form of the last request, in which a bad length is told; None before there is one.
        self._json: bool | None = None

    def receive(self, data: Buffer) -> list[Heard]:
        """See `Codec.receive`."""
        if not data:
            return [HungUp("end of stream")]
        unread = self._rest.add(data)
        return [] if unread is None else self._frames(unread, 0)

    def wanted(self) -> int:
        """See `Codec.wanted`."""
        return self._rest.wanted

    def held(self) -> int:
        """See `Codec.held`."""
        return self._rest.held

    def send(self, tag: Tag, reply: Reply) -> Sent:
        """See `Codec.send`."""
        return self._replies.write(tag, reply)

    def send_failure(self, tag: Tag, failure: Failure) -> Sent:
        """See `Codec.send_failure`."""
        return failed(tag, failure)

    def send_idle(self, tag: Tag) -> Sent:
        """This dialect has nothing to follow and so no keep-alive."""
        return NOTHING

    def _frames(self, data: bytes, at: int) -> list[Heard]:
        """Every request from `at` on; what is not whole yet is kept."""
        heard: list[Heard] = []
        size = len(data)
        needed = _HEAD_BYTES
        while size - at >= _HEAD_BYTES:
            (length,) = _LENGTH.unpack_from(data, at)
            start = at + _HEAD_BYTES
            if not 0 < length <= self._frame_bytes_max:
                heard.append(self._bad_length(data, at, length))
                return heard
            end = start + length
            if end > size:
                needed = _HEAD_BYTES + length
                break
            self._json = json = is_json(data, start, end)
            if (
                length > JSON_INLINE_BYTES_MAX
                if json
                else data[start] == Command.PRODUCE
                and length > RECORDS_INLINE_MAX
                and declared_count(data, start, end) > RECORDS_INLINE_MAX
            ):
                heard.append(Offload(partial(self._resume, data, start, end, json=json)))
                return heard
            heard.append(self._request(data, start, end, json=json))
            at = end
        self._rest.keep(data[at:], needed)
        return heard

    def _resume(self, data: bytes, start: int, end: int, *, json: bool) -> list[Heard]:
        """Runs in a thread: reads a costly request, then goes on with what follows it."""
        return [self._request(data, start, end, json=json), *self._frames(data, end)]

    def _request(self, data: bytes, start: int, end: int, *, json: bool) -> Asked | Refused:
        try:
            if json:
                return document.read_request(data[start:end], self._reply_bytes_max)
            return binary.read_request(data, start, end, self._reply_bytes_max)
        except Malformed as fault:
            command = Command.NONE if json else COMMANDS.get(data[start], Command.NONE)
            return Refused(Tag(command, json), Failure(fault.code, fault.detail))

    def _bad_length(self, data: bytes, at: int, length: int) -> Refused:
        """A length of zero or above the limit: there is no telling where the next frame begins."""
        start = at + _HEAD_BYTES
        json = self._json
        if json is None:
            # A binary client's first byte is an opcode; where it has not come, JSON is assumed.
            json = start >= len(data) or data[start] not in REQUESTS
        tag = Tag(Command.NONE, json)
        if not length:
            failure = Failure(ErrorCode.MALFORMED, "zero-length frame", {"length": 0})
            return Refused(tag, failure, True)
        first = data[at : at + 4]
        stranger = foreign_protocol(first)
        looks_like = stranger or foreign_framing(first)
        failure = Failure(
            ErrorCode.WRONG_PROTOCOL if stranger else ErrorCode.FRAME_TOO_LARGE,
            f"a frame of {length} bytes" + (f"; it looks like {looks_like}" if looks_like else ""),
            {"size": length, "limit": self._frame_bytes_max},
        )
        return Refused(tag, failure, True)
