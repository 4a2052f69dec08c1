"""The server's half of an Iggy connection: frames in, requests out; replies in, frames out.

A frame is `u32 length | u32 code | body`, its length counting the code and the body. Frames are
answered in order; the clients of this generation have one in flight, but pipelining works. What is
wrong inside a frame is answered by its error number and the connection goes on; a length that
cannot be is where the position in the stream is lost.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING, Final

import mmh3

from dragoman.codecs.base import (
    Asked,
    HungUp,
    Offload,
    Refused,
    Sent,
    foreign_framing,
    foreign_protocol,
)
from dragoman.codecs.framing import Reassembly
from dragoman.codecs.iggy import command as cmd
from dragoman.codecs.iggy import error, polled, translate, wire
from dragoman.codecs.iggy.error import REASONS, Tag, number_of
from dragoman.codecs.iggy.group import member_id
from dragoman.codecs.iggy.message import Bad, IdSource, check_headers, check_payloads
from dragoman.codecs.kernels import iggy_send
from dragoman.codecs.malformed import Malformed
from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from dragoman.codecs.base import Buffer, Facts, Heard

_LENGTH = struct.Struct("<I").unpack_from
_CODE = struct.Struct("<4xI").unpack_from
_ANSWER = struct.Struct("<II").pack
DONE: Final = Sent((_ANSWER(0, 0),))
"""Success without data."""
_SILENT: Final = Tag(0)
"""The tag of what is not answered at all."""
_PING: Final = Asked(Tag(cmd.PING), calls.Ping())
_OFFLOAD_BYTES: Final = 256 * 1024
RENDERING: Final = "iggy"
_VSR_HEAD_BYTES: Final = 61


class IggyCodec:
    """Speaks the generation of August 2023 on one connection."""

    def __init__(self, facts: Facts) -> None:
        self._limits = facts.limits
        self._renderings = facts.renderings
        token = facts.token or f"{facts.peer}{facts.local}".encode()
        self._ids = IdSource(token)
        self._member = member_id(facts.peer, token)
        self._rest = Reassembly()
        self._fresh = True

    # ------------------------------------------------------------ bytes in

    def receive(self, data: Buffer) -> list[Heard]:
        """Takes what arrived and returns every complete request in it."""
        if not data:
            return [HungUp("cut off inside a frame" if self._rest.held else "end of stream")]
        unread = self._rest.add(data)
        return [] if unread is None else self._frames(unread, 0, offloaded=False)

    def wanted(self) -> int:
        """Bytes still missing of the current frame."""
        return self._rest.wanted

    def held(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return self._rest.held

    def _frames(self, data: bytes, at: int, *, offloaded: bool) -> list[Heard]:
        heard: list[Heard] = []
        size = len(data)
        needed = 4
        limit = self._limits.frame_bytes_max
        while (left := size - at) >= 4:
            (length,) = _LENGTH(data, at)
            if not 4 <= length <= limit:
                heard.append(self._lost(data[at : at + _VSR_HEAD_BYTES], length))
                return heard
            if left < 8:
                needed = 8
                break
            (code,) = _CODE(data, at)
            if self._fresh and (stranger := self._stranger(data[at : at + 4], code)):
                heard.append(stranger)
                return heard
            end = at + 4 + length
            if size < end:
                needed = 4 + length
                break
            if code == cmd.SEND_MESSAGES:
                if length > _OFFLOAD_BYTES and not offloaded:
                    heard.append(Offload(partial(self._frames, data, at, offloaded=True)))
                    return heard
                heard.append(self._send_messages(data, at + 8, end))
            else:
                heard.append(self._request(code, data[at + 8 : end]))
            at = end
        self._rest.keep(data[at:], needed)
        return heard

    def _lost(self, first: bytes, length: int) -> Refused:
        """A length that cannot be; only a short one is answered, since a client may wait for it."""
        stranger = foreign_protocol(first[:4])
        if stranger or length >= 4:
            code = ErrorCode.WRONG_PROTOCOL if stranger else ErrorCode.FRAME_TOO_LARGE
            limit = self._limits.frame_bytes_max
            detail = stranger or f"a frame of {length} bytes; {limit} are allowed"
            if not stranger and (framing := foreign_framing(first)):
                detail += f"; it looks like {framing}"
            return Refused(_SILENT, Failure(code, detail, {"size": length}), fatal=True)
        if length == 0 and (len(first) < 8 or not any(first[4:8])):
            detail = "a frame of length 0, as the protocol of Iggy SDKs 0.11 and later begins"
            failure = Failure(ErrorCode.WRONG_PROTOCOL, detail)
        else:
            failure = Failure(ErrorCode.MALFORMED, f"a frame of length {length}")
        return Refused(Tag(-1, number=error.INVALID_COMMAND), failure, fatal=True)

    def _stranger(self, first: bytes, code: int) -> Refused | None:
        """Another protocol, whose first bytes make a possible length but an impossible code."""
        self._fresh = False
        if code in wire.REQUESTS or code in cmd.UNSERVED:
            return None
        # A first length of whole 64 KiB before no code at all is another's, high byte first.
        stranger = foreign_protocol(first) or (foreign_framing(first) if not any(first[:2]) else "")
        if not stranger:
            return None
        return Refused(_SILENT, Failure(ErrorCode.WRONG_PROTOCOL, stranger), fatal=True)

    def _request(self, code: int, body: bytes) -> Heard:
        """One frame's request, or why it is none."""
        try:
            if code == cmd.POLL_MESSAGES:
                return Asked(*translate.poll(body, self._limits.reply_bytes_max))
            if code == cmd.STORE_CONSUMER_OFFSET:
                return Asked(*translate.store_offset(body))
            if code == cmd.GET_CONSUMER_OFFSET:
                return Asked(*translate.get_offset(body))
            if code in (cmd.PING, cmd.GET_STREAMS):
                if body:
                    raise Bad(error.INVALID_COMMAND, f"command {code} has no body")
                return _PING if code == cmd.PING else Asked(Tag(code), calls.ListNamespaces())
            if code in wire.REQUESTS:
                return Asked(*translate.administer(code, body, self._member))
        except Bad as bad:
            return _refused(code, bad)
        except (struct.error, IndexError):
            return _refused(code, Bad(error.INVALID_COMMAND, f"command {code} is cut off"))
        if name := cmd.UNSERVED.get(code):
            return Refused(Tag(code), Failure(ErrorCode.UNSUPPORTED, f"{name} is not served"))
        return Refused(Tag(code), Failure(ErrorCode.UNKNOWN_COMMAND, f"no command {code}"))

    def _send_messages(self, data: bytes, at: int, end: int) -> Heard:
        """SEND_MESSAGES, straight from the frame into columns."""
        try:
            head, at = iggy_send.decode_head(data, at, end)
            stream = translate.key_of(head.stream_kind, head.stream_value)
            topic = translate.key_of(head.topic_kind, head.topic_value)
            key = head.partitioning_value
            if at == end:
                raise Bad(error.INVALID_MESSAGES_COUNT, "a send carries no message")
            route = _route(head.partitioning_kind, key)
            columns = iggy_send.decode_records(data, at, end)
            count, values, raw = columns.count, columns.payload, columns.headers
            check_payloads(values, count)
            headers = None
            if raw:
                if isinstance(raw, bytes):
                    check_headers([raw] * count)
                    headers = VarColumn.uniform(raw * count, len(raw), count)
                else:
                    check_headers(raw.slices(0, count))
                    headers = raw
        except Malformed as malformed:
            return _refused(cmd.SEND_MESSAGES, Bad(error.INVALID_COMMAND, str(malformed)))
        except Bad as bad:
            return _refused(cmd.SEND_MESSAGES, bad)
        keys = None
        if head.partitioning_kind == cmd.MESSAGES_KEY:
            keys = VarColumn.uniform(key * count, len(key), count)
        batch = RecordBatch(
            count,
            values,
            origin=Origin.IGGY,
            keys=keys,
            headers=headers,
            ids=self._ids.fill(columns.id),
        )
        tag = Tag(cmd.SEND_MESSAGES, type(stream) is str, type(topic) is str)
        return Asked(tag, calls.Produce(topic, batch, route, stream))

    # ------------------------------------------------------------ bytes out

    def send(self, tag: Tag, reply: calls.Reply) -> Sent:
        """Renders a reply."""
        match reply:
            case calls.Fetched():
                return self._polled(reply)
            case calls.OffsetFetched():
                return Sent((translate.offset_info(reply),))
        body = translate.description(reply)
        return Sent((_ANSWER(0, len(body)), body)) if body else DONE

    def _polled(self, reply: calls.Fetched) -> Sent:
        buffers: list[Buffer] = [b""]
        size = 0
        renderings = self._renderings
        for batch, first, last in reply.slices:
            rendering = renderings.get(batch, RENDERING)
            if rendering is None:
                rendering = polled.render(batch)
                renderings.put(batch, RENDERING, rendering)
            piece = rendering.slice(first, last, batch.count)
            size += len(piece)
            buffers.append(piece)
        buffers[0] = translate.polled_head(reply, size)
        return Sent(buffers)

    def send_failure(self, tag: Tag, failure: Failure) -> Sent:
        """Renders a failure: its number, and never a body."""
        if tag is _SILENT:
            return Sent((), close_after=True)
        if failure.code is ErrorCode.INVALID_OFFSET and tag.offset == 0:
            # Only an empty partition refuses offset 0, which this generation accepts there. Nothing
            # is stored, so that the first record is not skipped when it comes.
            return DONE
        return Sent((_ANSWER(number_of(failure.code, tag), 0),), close_after=tag.command < 0)

    def send_idle(self, tag: Tag) -> Sent:
        """Nothing: this dialect has no push."""
        return Sent(())


def _refused(code: int, bad: Bad) -> Refused:
    failure = Failure(REASONS.get(bad.number, ErrorCode.MALFORMED), bad.detail)
    return Refused(Tag(code, number=bad.number), failure)


def _route(kind: int, value: bytes) -> calls.Route:
    """Where the messages go; 3007 for partition 0 comes after the look-up of stream and topic."""
    if kind == cmd.BALANCED:
        return calls.ROUND_ROBIN
    if kind in (cmd.PARTITION_ID, cmd.MESSAGES_KEY) and not value:
        raise Bad(error.INVALID_KEY_LENGTH, "a partitioning without its value")
    if kind == cmd.PARTITION_ID:
        if len(value) != 4:
            raise Bad(error.CANNOT_PARSE_SLICE, f"a partition id of {len(value)} bytes")
        (number,) = _LENGTH(value)
        return number - 1 if number else translate.NOWHERE
    if kind == cmd.MESSAGES_KEY:
        # The dialect's rule is `hash mod n` of 1-based partitions, where 0 becomes n.
        return calls.ByHash(mmh3.hash128(value, 0, True, signed=False) - 1)
    raise Bad(error.INVALID_COMMAND, f"a partitioning of kind {kind}")
