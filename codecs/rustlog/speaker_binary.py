"""The binary form as a client speaks it."""

from __future__ import annotations

from struct import Struct, error
from typing import TYPE_CHECKING

from construct import ConstructError

from dragoman.codecs.base import ProtocolError, Unsayable
from dragoman.codecs.rustlog import sayable
from dragoman.codecs.rustlog.wire import REPLIES, Command
from dragoman.core.calls import (
    CommitOffset,
    CreateTopic,
    DescribeTopic,
    Fetch,
    FetchOffset,
    ListTopics,
    OffsetCommitted,
    OffsetFetched,
    Ping,
    Ponged,
    Produce,
    Produced,
    ReadStatistics,
    StatisticsRead,
    TopicCreated,
    TopicDescribed,
    TopicsListed,
    Whence,
)
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from dragoman.core.calls import Reply, Request

_U16 = Struct(">H")
_U32 = Struct(">I")
_PLACE = Struct(">II")
_OFFSET = Struct(">IQ")
_FETCH = Struct(">IQI")
_FETCHED = Struct(">BI")
_U64 = Struct(">Q")

_CODES = {
    1: ErrorCode.MALFORMED,
    2: ErrorCode.MALFORMED,
    10: ErrorCode.UNKNOWN_TOPIC,
    11: ErrorCode.TOPIC_EXISTS,
    12: ErrorCode.INVALID_PARTITION_COUNT,
    13: ErrorCode.UNKNOWN_TOPIC,
    14: ErrorCode.UNKNOWN_PARTITION,
}


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) > 0xFFFF:
        raise Unsayable("a RustLog name has at most 65535 bytes")
    return _U16.pack(len(data)) + data


def say(request: Request) -> bytes:
    """The payload of a request.

    Raises:
        Unsayable: The binary form has no words for it.
    """
    try:
        return _say(request)
    except error:
        raise Unsayable("a number of the request is out of the wire's range") from None


def _say(request: Request) -> bytes:
    match request:
        case Produce(namespace=namespace, topic=topic):
            partition, values = sayable.records_of(request)
            head = b"\x01" + _text(sayable.topic_text(namespace, topic))
            parts = [head, _PLACE.pack(partition, len(values))]
            for value in values:
                parts += (_U32.pack(len(value)), value)
            return b"".join(parts)
        case Fetch(partition=partition, offset=offset):
            topic_text, group = sayable.fetch_place(request)
            if request.whence is Whence.MAX_COMMITTED:
                raise Unsayable("a binary RustLog group reads from its committed offset alone")
            bytes_max = min(max(request.bytes_max, 1), sayable.U32_MAX)
            return (
                b"\x02"
                + _text(group)
                + _text(topic_text)
                + _FETCH.pack(partition, offset, bytes_max)
            )
        case CommitOffset(group=group):
            topic_text, partition, offset = sayable.commit_place(request)
            return b"\x03" + _text(group) + _text(topic_text) + _OFFSET.pack(partition, offset)
        case FetchOffset(group=group, partition=partition):
            topic_text = sayable.offset_place(request)
            return b"\x04" + _text(group) + _text(topic_text) + _U32.pack(partition)
        case CreateTopic(partitions=partitions):
            return b"\x05" + _text(sayable.created_topic(request)) + _U32.pack(partitions)
        case ListTopics():
            return b"\x06"
        case DescribeTopic(namespace=namespace, topic=topic):
            return b"\x07" + _text(sayable.topic_text(namespace, topic))
        case ReadStatistics():
            return b"\x09"
        case Ping():
            return b"\xff"
        case _:
            raise Unsayable(f"RustLog has no words for {type(request).__name__}")


def understand(request: Request, payload: bytes) -> Reply | Failure:
    """The reply to a request.

    Raises:
        ProtocolError: The payload is not one.
    """
    try:
        if payload[0] == Command.ERROR:
            return _failure(payload)
        return _understand(request, payload)
    except (ConstructError, error, IndexError) as fault:
        raise ProtocolError(f"not a reply to {type(request).__name__}: {fault}") from None


def _failure(payload: bytes) -> Failure:
    fields = REPLIES[Command.ERROR].parse(payload)
    message = fields.message.decode(errors="replace")
    meant = sayable.failure(message)
    if meant.code is ErrorCode.INTERNAL or fields.code >= 10:
        meant.code = _CODES.get(fields.code, meant.code)
    return meant


def _payloads(payload: bytes) -> tuple[list[bytes], int]:
    """The records of a fetch reply and its next offset, read straight: this is the hot path."""
    _, count = _FETCHED.unpack_from(payload)
    at = _FETCHED.size
    payloads = []
    for _ in range(count):
        start = at + 4
        at = start + _U32.unpack_from(payload, at)[0]
        payloads.append(payload[start:at])
    if at + 8 != len(payload):
        raise ProtocolError("a fetch reply does not end where its frame does")
    return payloads, _U64.unpack_from(payload, at)[0]


def _understand(request: Request, payload: bytes) -> Reply:
    expected = _EXPECTED[type(request)]
    if payload[0] != expected:
        raise ProtocolError(f"reply {payload[0]} to request {int(expected)}")
    if type(request) is Fetch:
        payloads, next_offset = _payloads(payload)
        return sayable.fetched(request, None, payloads, next_offset)
    fields = REPLIES[expected].parse(payload)
    match request:
        case Produce(route=route):
            assert isinstance(route, int)
            return Produced(route, fields.base_offset, fields.count)
        case CommitOffset():
            if not fields.success:
                raise ProtocolError("a commit was answered without success and without error")
            return OffsetCommitted(1)
        case FetchOffset(partition=partition):
            return OffsetFetched(partition, fields.offset if fields.has else None, 0)
        case CreateTopic(partitions=partitions):
            name = sayable.created_topic(request)
            return TopicCreated(sayable.described(name, [(i, 0) for i in range(partitions)]))
        case ListTopics(namespace=namespace):
            topics = [
                sayable.described(item.name, [(i, 0) for i in range(item.partitions)])
                for item in fields.topics
            ]
            return TopicsListed(
                [topic for topic in topics if namespace is None or topic.namespace == namespace]
            )
        case DescribeTopic():
            marks = [(item.partition, item.high_watermark) for item in fields.partitions]
            return TopicDescribed(sayable.described(fields.topic, marks))
        case ReadStatistics():
            return StatisticsRead(_figures(fields.text))
        case _:
            return Ponged()


def _figures(text: str) -> dict[str, int | float | str]:
    """The plain samples of a Prometheus text, by name."""
    figures: dict[str, int | float | str] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#"):
            try:
                figures[name] = int(value) if value.lstrip("-").isdecimal() else float(value)
            except ValueError:
                raise ProtocolError("a metrics reply holds something else than samples") from None
    return figures


_EXPECTED: dict[type, Command] = {
    Produce: Command.PRODUCE,
    Fetch: Command.FETCH,
    CommitOffset: Command.OFFSET_COMMIT,
    FetchOffset: Command.OFFSET_FETCH,
    CreateTopic: Command.CREATE_TOPIC,
    ListTopics: Command.LIST_TOPICS,
    DescribeTopic: Command.DESCRIBE_TOPIC,
    ReadStatistics: Command.METRICS_FETCH,
    Ping: Command.PING,
}
