"""Renders replies as whole frames, in the form in which their requests came."""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct
from typing import TYPE_CHECKING

import orjson

from dragoman.codecs.base import Sent
from dragoman.codecs.rustlog.metrics import exposition
from dragoman.codecs.rustlog.record import BINARY, JSON, json_bytes, rendered
from dragoman.codecs.rustlog.translate import PLACES, told
from dragoman.codecs.rustlog.wire import Command
from dragoman.core.calls import (
    BatchSlice,
    Fetched,
    OffsetCommitted,
    OffsetFetched,
    Ponged,
    Produced,
    StatisticsRead,
    TopicCreated,
    TopicDescribed,
    TopicsListed,
)
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import flat_name

if TYPE_CHECKING:
    from dragoman.codecs.base import Buffer
    from dragoman.codecs.rendering import RenderingCache
    from dragoman.codecs.rustlog.parse import Tag
    from dragoman.core.calls import PartitionDescription, Reply

_LENGTH = Struct(">I")
_PRODUCED = Struct(">IBQI")
_FETCHED = Struct(">IBI")
_OFFSET = Struct(">Q")
_HAS = Struct(">IBBQ")
_TEXT = Struct(">H")
_PARTITION = Struct(">IQ")
_ERROR = Struct(">IBHH")
_DESCRIBED = Struct(">BH")
_FLAG = Struct(">IBB")

_NEVER_COMMITTED = PLACES | {ErrorCode.INVALID_NAME}
"""Where there is no such place, or no group can have this name, nothing was ever committed."""
_JSON_BOOL = {True: b"true", False: b"false"}


def _framed(payload: bytes) -> Sent:
    return Sent((_LENGTH.pack(len(payload)) + payload,))


def error_frame(tag: Tag, failure: Failure) -> Sent:
    """A failure as an error reply."""
    code, text = told(tag, failure)
    if tag.json:
        return _framed(orjson.dumps({"Error": {"message": text}}))
    message = text.encode()
    if len(message) > 0xFFFF:
        message = message[:0xFFFF].decode(errors="ignore").encode()
    return Sent((_ERROR.pack(5 + len(message), Command.ERROR, code, len(message)) + message,))


def failed(tag: Tag, failure: Failure) -> Sent:
    """The reply to a request that failed; some failures are answers of their own here.

    A commit or a committed offset of a place that does not exist is no error in either form, and a
    binary fetch of a group that never committed is empty whether or not the place exists.
    """
    if failure.code in _NEVER_COMMITTED:
        match tag.command:
            case Command.OFFSET_COMMIT if failure.code is not ErrorCode.INVALID_NAME or tag.json:
                return _committed(tag, success=not tag.json)
            case Command.OFFSET_FETCH:
                return _offset_fetched(tag, None)
            case Command.FETCH if tag.group and not tag.json:
                return _nothing_fetched(0)
            case _:
                pass
    elif tag.command is Command.OFFSET_COMMIT and tag.json:
        return _committed(tag, success=False)
    return error_frame(tag, failure)


class ReplyWriter:
    """Renders the replies of one connection.

    Args:
        renderings: Where rendered batches are kept.
        reply_bytes_max: The largest payload of a reply; what would be longer becomes an error.
        skips_too_large: A record that no reply can hold is passed over instead, and counted as
            rendered inexactly.
    """

    __slots__ = ("_renderings", "_reply_bytes_max", "_skips_too_large")

    def __init__(
        self, renderings: RenderingCache, reply_bytes_max: int, *, skips_too_large: bool = False
    ) -> None:
        self._renderings = renderings
        self._reply_bytes_max = reply_bytes_max
        self._skips_too_large = skips_too_large

    def write(self, tag: Tag, reply: Reply) -> Sent:
        """The frame of a reply."""
        match reply:
            case Produced(base_offset=base_offset, count=count):
                return _produced(tag, base_offset, count)
            case Fetched():
                return self._fetched_json(tag, reply) if tag.json else self._fetched(tag, reply)
            case OffsetCommitted():
                return _committed(tag, success=True)
            case OffsetFetched(offset=offset):
                return _offset_fetched(tag, offset)
            case TopicCreated():
                if tag.json:
                    return _framed(b'{"CreateTopic":{"success":true}}')
                return Sent((_FLAG.pack(2, Command.CREATE_TOPIC, 1),))
            case TopicsListed():
                return self._bounded(tag, _listed(tag, reply))
            case TopicDescribed():
                return self._described(tag, reply)
            case StatisticsRead(values=values):
                text = exposition(values).encode()
                payload = bytes((Command.METRICS_FETCH,)) + _LENGTH.pack(len(text)) + text
                return self._bounded(tag, payload)
            case Ponged():
                return _framed(b'"Pong"') if tag.json else _framed(b"\xff")
            case _:  # pragma: no cover - this dialect asks for nothing else
                raise AssertionError(f"no RustLog request is answered by {type(reply).__name__}")

    def _bounded(self, tag: Tag, payload: bytes) -> Sent:
        if len(payload) > self._reply_bytes_max:
            detail = f"the reply has {len(payload)} bytes (max: {self._reply_bytes_max})"
            return error_frame(tag, Failure(ErrorCode.LIMIT_REACHED, detail))
        return _framed(payload)

    def _fetched(self, tag: Tag, reply: Fetched) -> Sent:
        """A binary fetch, whose records carry no offsets: one run without gaps, or nothing."""
        requested = tag.offset
        if tag.group:
            if reply.committed is None:
                return _nothing_fetched(0)
            requested = max(reply.committed, 0)
        if not reply.slices or tag.bytes_max == 0 or requested < reply.log_start_offset:
            return _nothing_fetched(requested)
        first = reply.slices[0]
        begin = first.batch.offset_at(first.first)
        if begin != requested:
            return _nothing_fetched(begin)
        room = self._reply_bytes_max - 13
        count = 0
        size = 0
        buffers: list[Buffer] = [b""]
        for piece in reply.slices:
            run = _run(piece, requested + count)
            if not run:
                break
            if run < piece.last - piece.first:
                piece = BatchSlice(piece.batch, piece.first, piece.first + run)
            data = rendered(self._renderings, piece, BINARY)
            size += len(data)
            buffers.append(data)
            count += run
        if size > room:
            # The numbers stay true: an empty reply names where to go on, as behind a gap.
            skipped = _nothing_fetched(begin + 1)
            return self._too_large(tag, begin, size, room, skipped)
        buffers[0] = _FETCHED.pack(13 + size, Command.FETCH, count)
        buffers.append(_OFFSET.pack(requested + count))
        return Sent(buffers)

    def _fetched_json(self, tag: Tag, reply: Fetched) -> Sent:
        if not reply.slices:
            return _nothing_fetched_json(reply.high_watermark)
        opening = b'{"Fetch":{"records":['
        closing = b'],"next_offset":%d}}' % reply.next_offset
        room = self._reply_bytes_max - len(opening) - len(closing)
        first = reply.slices[0]
        if len(reply.slices) == 1 and first.last - first.first == 1:
            # Only a record that comes alone can be larger than what was asked for.
            offsets = first.batch.values.offsets
            value = first.batch.values.blob[offsets[first.first] : offsets[first.first + 1]]
            offset = first.batch.offset_at(first.first)
            size = json_bytes(value) + len(b'{"offset":%d,"payload":[]}' % offset)
            if size > room:
                skipped = _nothing_fetched_json(reply.next_offset)
                return self._too_large(tag, offset, size, room, skipped)
        records = [rendered(self._renderings, piece, JSON) for piece in reply.slices]
        records[-1] = memoryview(records[-1])[:-1]
        size = len(opening) + len(closing) + sum(map(len, records))
        return Sent([_LENGTH.pack(size) + opening, *records, closing])

    def _too_large(self, tag: Tag, offset: int, size: int, room: int, skipped: Sent) -> Sent:
        """A record that no reply can hold: an error, or passed over where the listener says so."""
        if self._skips_too_large:
            self._renderings.inexact[BINARY] += 1
            return skipped
        facts: dict[str, int | str] = {"offset": offset, "size": size, "limit": room}
        return error_frame(tag, Failure(ErrorCode.RECORD_TOO_LARGE, "", facts))

    def _described(self, tag: Tag, reply: TopicDescribed) -> Sent:
        partitions = reply.topic.partitions
        match tag.command:
            case Command.DESCRIBE_TOPIC:
                name = tag.topic.encode()
                count = len(partitions)
                payload = b"".join(
                    [
                        _DESCRIBED.pack(Command.DESCRIBE_TOPIC, len(name)) + name,
                        _LENGTH.pack(count) * 2,
                        *[_PARTITION.pack(p.partition, p.high_watermark) for p in partitions],
                    ]
                )
                return self._bounded(tag, payload)
            case Command.DESCRIBE_PARTITION:
                partition = _partition(partitions, tag.partition)
                if partition is None:
                    return failed(tag, Failure(ErrorCode.UNKNOWN_PARTITION))
                name = tag.topic.encode()
                return _framed(
                    _DESCRIBED.pack(Command.DESCRIBE_PARTITION, len(name))
                    + name
                    + _PARTITION.pack(tag.partition, partition.high_watermark)
                )
            case _:
                # A produce without records asked whether the place exists.
                if _partition(partitions, tag.partition) is None:
                    return failed(tag, Failure(ErrorCode.UNKNOWN_PARTITION))
                return _produced(tag, 0, 0)


def _partition(partitions: list[PartitionDescription], number: int) -> PartitionDescription | None:
    return next((item for item in partitions if item.partition == number), None)


def _run(piece: BatchSlice, offset: int) -> int:
    """How many records of the slice have the offsets from `offset` on, without a gap."""
    batch, first, last = piece
    if batch.offset_at(first) != offset:
        return 0
    deltas = batch.offset_deltas
    if deltas is None:
        return last - first
    lead = deltas[first] - first
    return bisect_right(range(first, last), lead, key=lambda index: deltas[index] - index)


def _produced(tag: Tag, base_offset: int, count: int) -> Sent:
    if tag.json:
        offsets = orjson.dumps(list(range(base_offset, base_offset + count)))
        return _framed(b'{"Produce":{"offsets":%b}}' % offsets)
    return Sent((_PRODUCED.pack(13, Command.PRODUCE, base_offset, count),))


def _nothing_fetched(next_offset: int) -> Sent:
    return Sent((_FETCHED.pack(13, Command.FETCH, 0) + _OFFSET.pack(next_offset),))


def _committed(tag: Tag, *, success: bool) -> Sent:
    if tag.json:
        return _framed(b'{"OffsetCommit":{"success":%b}}' % _JSON_BOOL[success])
    return Sent((_FLAG.pack(2, Command.OFFSET_COMMIT, success),))


def _nothing_fetched_json(next_offset: int) -> Sent:
    return _framed(b'{"Fetch":{"records":[],"next_offset":%d}}' % next_offset)


def _offset_fetched(tag: Tag, offset: int | None) -> Sent:
    if offset is not None and offset < 0:
        # Another dialect may commit what this wire cannot say.
        offset = 0
    if tag.json:
        return _framed(orjson.dumps({"OffsetFetch": {"offset": offset}}))
    if offset is None:
        return Sent((_FLAG.pack(2, Command.OFFSET_FETCH, 0),))
    return Sent((_HAS.pack(10, Command.OFFSET_FETCH, 1, offset),))


def _listed(tag: Tag, reply: TopicsListed) -> bytes:
    topics = sorted(
        (flat_name(topic.namespace, topic.name).encode(), len(topic.partitions))
        for topic in reply.topics
    )
    if tag.json:
        rows = [{"name": name.decode(), "partition_count": count} for name, count in topics]
        return orjson.dumps({"ListTopics": {"topics": rows}})
    entries = [_TEXT.pack(len(name)) + name + _LENGTH.pack(count) for name, count in topics]
    return bytes((Command.LIST_TOPICS,)) + _LENGTH.pack(len(topics)) + b"".join(entries)
