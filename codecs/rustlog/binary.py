"""Reads binary requests: straight code that agrees with the declarations of `wire`.

A payload is `data[at:end]` within what was received, so that a frame is not copied before its
records are. Every length and count is checked against what is there before anything is built of it.
"""

from __future__ import annotations

from array import array
from struct import Struct, error
from typing import TYPE_CHECKING

from dragoman.codecs.rustlog import asking
from dragoman.codecs.rustlog.parse import Malformed
from dragoman.codecs.rustlog.wire import Command
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.codecs.base import Asked, Refused

U16 = Struct(">H")
U32 = Struct(">I")
U64 = Struct(">Q")
_PLACE = Struct(">II")
RECORDS_INLINE_MAX = 16_384
"""A produce that declares more records is read in a thread: records of differing sizes cost about
200 ns each, and a round of the loop should stay far below 50 ms."""
_STRIDED_BYTES_MAX = 512
"""Up to this size of equal records, cutting out the lengths in place is faster than joining."""


def _text(data: bytes, at: int, end: int, name: str) -> tuple[str, int]:
    """A string and where it ends."""
    start = at + 2
    if start > end:
        raise Malformed(f"decode error: missing {name} length")
    stop = start + U16.unpack_from(data, at)[0]
    if stop > end:
        raise Malformed(f"decode error: truncated {name}")
    try:
        return data[start:stop].decode(), stop
    except UnicodeDecodeError as fault:
        if fault.reason == "unexpected end of data":
            what = f"incomplete utf-8 byte sequence from index {fault.start}"
        else:
            size = fault.end - fault.start
            what = f"invalid utf-8 sequence of {size} bytes from index {fault.start}"
        raise Malformed(f"decode error: invalid utf8 {name}: {what}") from None


def _u32(data: bytes, at: int, end: int, name: str) -> int:
    if at + 4 > end:
        raise Malformed(f"decode error: missing {name}")
    value: int = U32.unpack_from(data, at)[0]
    return value


def _u64(data: bytes, at: int, end: int, name: str) -> int:
    if at + 8 > end:
        raise Malformed(f"decode error: missing {name}")
    value: int = U64.unpack_from(data, at)[0]
    return value


def read_records(data: bytes, at: int, end: int, count: int) -> VarColumn:
    """The column of `count` records, each `u32 length | payload`; `count` is at least 1.

    Raises:
        Malformed: They do not fit between `at` and `end`.
    """
    if at + 4 <= end:
        (size,) = U32.unpack_from(data, at)
        stride = 4 + size
        if at + stride * count <= end:
            if count == 1:
                return VarColumn.single(data[at + 4 : at + stride])
            column = _equal_records(data, at, size, count)
            if column is not None:
                return column
    return _mixed_records(data, at, end, count)


def _equal_records(data: bytes, at: int, size: int, count: int) -> VarColumn | None:
    """The column of records that all have one size, or None where they do not.

    Four strided slices compare every length at once: where each position that would hold a length
    holds this one, reading one record after the other finds exactly these.
    """
    stride = 4 + size
    end = at + stride * count
    for place in range(at, at + 4):
        if data[place:end:stride].count(data[place]) != count:
            return None
    if not size:
        return VarColumn.uniform(b"", 0, count)
    if size <= _STRIDED_BYTES_MAX:
        blob = bytearray(memoryview(data)[at:end])
        for width in range(stride, size, -1):
            del blob[0::width]
        return VarColumn.uniform(blob, size, count)
    pieces = [data[start : start + size] for start in range(at + 4, end, stride)]
    return VarColumn.uniform(b"".join(pieces), size, count)


def _mixed_records(data: bytes, at: int, end: int, count: int) -> VarColumn:
    length_at = U32.unpack_from
    pieces: list[bytes] = []
    take = pieces.append
    ends = array("i", (0,))
    total = 0
    end_at = ends.append
    try:
        for _ in range(count):
            (size,) = length_at(data, at)
            start = at + 4
            at = start + size
            if at > end:
                what = "record length" if start > end else "record"
                raise Malformed(f"decode error: truncated {what}")
            take(data[start:at])
            total += size
            end_at(total)
    except error:
        raise Malformed("decode error: truncated record length") from None
    return VarColumn(b"".join(pieces), ends)


def declared_count(data: bytes, at: int, end: int) -> int:
    """The record count that a produce payload declares, or 0 where it has none."""
    if at + 3 > end:
        return 0
    at += 7 + int(U16.unpack_from(data, at + 1)[0])
    return int(U32.unpack_from(data, at)[0]) if at + 4 <= end else 0


def _produce(data: bytes, at: int, end: int, reply_bytes_max: int) -> Asked:
    topic, at = _text(data, at, end, "topic")
    if at + 8 > end:
        missing = "partition" if at + 4 > end else "record count"
        raise Malformed(f"decode error: missing {missing}")
    partition, count = _PLACE.unpack_from(data, at)
    values = read_records(data, at + 8, end, count) if count else None
    return asking.produce(topic, partition, values, json=False)


def _fetch(data: bytes, at: int, end: int, reply_bytes_max: int) -> Asked:
    group, at = _text(data, at, end, "group_id")
    topic, at = _text(data, at, end, "topic")
    partition = _u32(data, at, end, "partition")
    offset = _u64(data, at + 4, end, "offset")
    bytes_max = _u32(data, at + 12, end, "max_bytes")
    return asking.fetch_binary(group, topic, partition, offset, bytes_max, reply_bytes_max)


def _commit(data: bytes, at: int, end: int, reply_bytes_max: int) -> Asked | Refused:
    group, at = _text(data, at, end, "group")
    topic, at = _text(data, at, end, "topic")
    partition = _u32(data, at, end, "partition")
    return asking.commit(group, topic, partition, _u64(data, at + 4, end, "offset"), json=False)


def _fetch_offset(data: bytes, at: int, end: int, reply_bytes_max: int) -> Asked:
    group, at = _text(data, at, end, "group")
    topic, at = _text(data, at, end, "topic")
    return asking.fetch_offset(group, topic, _u32(data, at, end, "partition"), json=False)


def _create_topic(data: bytes, at: int, end: int, reply_bytes_max: int) -> Asked | Refused:
    topic, at = _text(data, at, end, "topic")
    return asking.create_topic(topic, _u32(data, at, end, "partition count"), json=False)


def _list_topics(data: bytes, at: int, end: int, reply_bytes_max: int) -> Asked:
    return asking.list_topics(json=False)


def _describe_topic(data: bytes, at: int, end: int, reply_bytes_max: int) -> Asked:
    return asking.describe_topic(_text(data, at, end, "topic")[0])


def _describe_partition(data: bytes, at: int, end: int, reply_bytes_max: int) -> Asked:
    topic, at = _text(data, at, end, "topic")
    return asking.describe_partition(topic, _u32(data, at, end, "partition"))


def _metrics(data: bytes, at: int, end: int, reply_bytes_max: int) -> Asked:
    return asking.read_metrics()


def _ping(data: bytes, at: int, end: int, reply_bytes_max: int) -> Asked:
    return asking.ping(json=False)


_READERS: dict[int, Callable[[bytes, int, int, int], Asked | Refused]] = {
    Command.PRODUCE: _produce,
    Command.FETCH: _fetch,
    Command.OFFSET_COMMIT: _commit,
    Command.OFFSET_FETCH: _fetch_offset,
    Command.CREATE_TOPIC: _create_topic,
    Command.LIST_TOPICS: _list_topics,
    Command.DESCRIBE_TOPIC: _describe_topic,
    Command.DESCRIBE_PARTITION: _describe_partition,
    Command.METRICS_FETCH: _metrics,
    Command.PING: _ping,
}


def read_request(data: bytes, at: int, end: int, reply_bytes_max: int) -> Asked | Refused:
    """The request of one payload, which has at least one byte.

    Raises:
        Malformed: It is none; the detail is what the published server says of it.
    """
    reader = _READERS.get(data[at])
    if reader is None:
        raise Malformed(f"unknown request type: {data[at]}", ErrorCode.UNKNOWN_COMMAND)
    return reader(data, at + 1, end, reply_bytes_max)
