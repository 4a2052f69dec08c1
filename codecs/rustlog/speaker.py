"""The client's half of a RustLog connection: requests out, replies in, both in core's vocabulary.

It speaks the binary form, or with `json=True` the JSON of the protocol document, which has words
for fewer requests. The wire tells neither watermarks nor log starts of what is fetched, nor
anything of a listed topic's partitions but their number: such fields are 0.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import TYPE_CHECKING

from dragoman.codecs.base import ProtocolError, Told, Unsayable, foreign_answer
from dragoman.codecs.rustlog import speaker_binary, speaker_json
from dragoman.codecs.rustlog.wire import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Buffer
    from dragoman.core.calls import Request

_LENGTH = Struct(">I")


class RustLogSpeaker:
    """One connection.

    Args:
        json: Speak JSON instead of the binary form.
    """

    def __init__(self, *, json: bool = False) -> None:
        self._json = json
        self._asked: deque[Request] = deque()
        self._buffer = bytearray()

    def ask(self, request: Request) -> Sequence[Buffer]:
        """See `Speaker.ask`."""
        payload = speaker_json.say(request) if self._json else speaker_binary.say(request)
        if len(payload) > FRAME_BYTES_MAX:
            raise Unsayable(
                f"a RustLog frame holds at most {FRAME_BYTES_MAX} bytes, this takes {len(payload)}"
            )
        self._asked.append(request)
        return (_LENGTH.pack(len(payload)) + payload,)

    def receive(self, data: Buffer) -> list[Told]:
        """See `Speaker.receive`."""
        buffer = self._buffer
        buffer += data
        told: list[Told] = []
        at = 0
        while len(buffer) - at >= 4:
            (length,) = _LENGTH.unpack_from(buffer, at)
            if not 0 < length <= FRAME_BYTES_MAX:
                shown = foreign_answer(bytes(buffer[at : at + 4]))
                raise ProtocolError(f"a reply of {length} bytes{shown}")
            end = at + 4 + length
            if end > len(buffer):
                break
            payload = bytes(memoryview(buffer)[at + 4 : end])
            at = end
            if not self._asked:
                raise ProtocolError("a reply that nothing was asked for")
            request = self._asked.popleft()
            if payload[:1] == b"{" or payload[:1] == b'"':
                told.append(Told(speaker_json.understand(request, payload)))
            else:
                told.append(Told(speaker_binary.understand(request, payload)))
        del buffer[:at]
        return told
