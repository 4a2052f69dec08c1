"""The client's half of a Cursus connection: requests out, replies and pushes in.

It writes `name=value` commands in envelopes and batches in layout L3, compressed where asked. What
the wire does not tell (watermarks, log starts, the partition that a text publish went to) is 0, or
-1 where 0 would be a place. A batch frame is a push while its partition is followed, else the
answer of a fetch.
"""

from __future__ import annotations

from collections import deque
from struct import Struct, error
from typing import TYPE_CHECKING

from dragoman.codecs.base import ProtocolError, Told, Unsayable, foreign_answer
from dragoman.codecs.compression import NONE, chosen
from dragoman.codecs.cursus import hearing, saying
from dragoman.codecs.cursus.fault import refused
from dragoman.codecs.cursus.hear_event import hear_head
from dragoman.codecs.cursus.inflate import pack
from dragoman.codecs.cursus.sentence import topic_of
from dragoman.codecs.cursus.wire import FRAME_BYTES_MAX, MAGIC
from dragoman.core import calls
from dragoman.core.error import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Buffer
    from dragoman.core.calls import Request

_U32 = Struct(">I")
_UNASKED = {ErrorCode.STALE_GENERATION, ErrorCode.NOT_LEADER}
"""What a server may say to a member that asks nothing."""


class CursusSpeaker:
    """Asks and hears, in order.

    Args:
        compression: The name of a registered one, for batches; commands are always plain.
    """

    def __init__(self, compression: str = NONE) -> None:
        self._compression = chosen(compression)
        self._asked: deque[Request] = deque()
        self._followed: dict[tuple[str, int], calls.Follow] = {}
        self._head: calls.EventsRead | None = None
        self._buffer = bytearray()

    def ask(self, request: Request) -> Sequence[Buffer]:
        """See `Speaker.ask`."""
        try:
            body = saying.say(request)
        except error:
            raise Unsayable("a number of the request is out of the wire's range") from None
        size = sum(map(len, body))
        if size > FRAME_BYTES_MAX:
            raise Unsayable(f"a Cursus frame holds {FRAME_BYTES_MAX} bytes, this takes {size}")
        if self._compression is not None and body[0][:2] == MAGIC:
            body = [pack(self._compression, b"".join(body), FRAME_BYTES_MAX)]
            size = len(body[0])
        if isinstance(request, calls.Fetch | calls.Follow):
            place = (topic_of(request.namespace, request.topic), request.partition)
            if isinstance(request, calls.Follow):
                self._followed[place] = request
                return [_U32.pack(size), *body]
            if place in self._followed:
                raise Unsayable("a connection that follows a partition cannot fetch from it")
        if isinstance(request, calls.ReadEvents) and self._followed:
            raise Unsayable("a connection that follows a partition reads no streams of events")
        self._asked.append(request)
        return [_U32.pack(size), *body]

    def receive(self, data: Buffer) -> list[Told]:
        """See `Speaker.receive`."""
        buffer = self._buffer
        buffer += data
        told: list[Told] = []
        at = 0
        while len(buffer) - at >= 4:
            (length,) = _U32.unpack_from(buffer, at)
            if length > FRAME_BYTES_MAX:
                shown = foreign_answer(bytes(buffer[at : at + 4]))
                raise ProtocolError(f"a frame of {length} bytes{shown}")
            end = at + 4 + length
            if end > len(buffer):
                break
            body = bytes(memoryview(buffer)[at + 4 : end])
            at = end
            if (heard := self._heard(body)) is not None:
                told.append(heard)
        del buffer[:at]
        return told

    def _heard(self, body: bytes) -> Told | None:
        """What one frame tells; None for a keep-alive."""
        if not body:
            return None
        if body[:2] == MAGIC:
            batch = hearing.batch_of(body)
            request = self._followed.get((batch.topic, batch.partition))
            if request is not None:
                if not batch.slices:
                    return None
                return Told(hearing.followed(request, batch), push=True)
            asked = self._asked.popleft() if self._asked else None
            if isinstance(asked, calls.ReadEvents) and (head := self._head) is not None:
                head.slices, self._head = batch.slices, None
                return Told(head)
            if not isinstance(asked, calls.Fetch):
                raise ProtocolError("a batch that nothing was asked for")
            return Told(hearing.fetched(asked, batch))
        if not self._asked:
            failure = refused(body)
            if failure is None or not (self._followed or failure.code in _UNASKED):
                raise ProtocolError("a reply that nothing was asked for")
            if self._followed:
                self._followed.popitem()
            return Told(failure, push=True)
        if isinstance(waiting := self._asked[0], calls.ReadEvents):
            return self._heard_head(waiting, body)
        return Told(hearing.understand(self._asked.popleft(), body))

    def _heard_head(self, request: calls.ReadEvents, body: bytes) -> Told | None:
        """The head of a stream, whose events are the next frame; or its refusal."""
        head = hear_head(request, body)
        if isinstance(head, calls.EventsRead):
            if self._head is not None:
                raise ProtocolError("a stream without a batch")
            self._head = head
            return None
        self._asked.popleft()
        return Told(head)
