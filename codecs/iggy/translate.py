"""Requests of the wire as core's, and core's replies as response bodies.

Partitions count from 1 on the wire and from 0 in core; a stored offset is the last processed one
on the wire and the next one in core. Streams are namespaces. Hot bodies are read by hand, the rest
through their declaration.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any, Final

from construct import ConstructError

from dragoman.codecs.iggy import command as cmd
from dragoman.codecs.iggy import error, group, wire
from dragoman.codecs.iggy.error import Tag
from dragoman.codecs.iggy.message import Bad
from dragoman.codecs.iggy.polled import SHOWN_BYTES_MAX
from dragoman.core import calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.calls import (
        Key,
        NamespaceDescription,
        PartitionDescription,
        Request,
        TopicDescription,
    )

_U32 = struct.Struct("<I").unpack_from
_CONSUMER = struct.Struct("<BI").unpack_from
_POLL = struct.Struct("<IBQIB").unpack_from
_STORE = struct.Struct("<IQ").unpack_from
_POLLED = struct.Struct("<IIIQI").pack
_OFFSET = struct.Struct("<IIIQQ").pack
_SPACES = re.compile(r"\s+")
NOWHERE: Final = 0xFFFF_FFFE
"""A partition that no topic has: what core is asked for where the wire said 0, so that a missing
stream or topic is found first."""
INT64_MAX: Final = (1 << 63) - 1
_EXPIRY_MAX_S: Final = (1 << 32) - 1


# ---------------------------------------------------------------- identifiers and names


def identifier(body: bytes, at: int) -> tuple[Key, int]:
    """Reads the identifier at `at`; returns it as core's key, and where it ends.

    Raises:
        Bad: Its kind or length does not exist. IndexError and struct.error: It is cut off.
    """
    kind = body[at]
    size = body[at + 1]
    end = at + 2 + size
    if kind == cmd.NAMED and size:
        if end > len(body):
            raise Bad(error.INVALID_COMMAND, "an identifier is cut off")
        return body[at + 2 : end].decode("utf-8", "replace"), end
    if kind == cmd.NUMERIC and size == 4:
        return _U32(body, at + 2)[0], end
    raise Bad(error.INVALID_COMMAND, f"an identifier of kind {kind} and {size} bytes")


def key_of(kind: int, value: bytes) -> Key:
    """An identifier that was already cut out, as core's key.

    Raises:
        Bad: Its kind or length does not exist.
    """
    if kind == cmd.NAMED and value:
        return value.decode("utf-8", "replace")
    if kind == cmd.NUMERIC and len(value) == 4:
        return int.from_bytes(value, "little")
    raise Bad(error.INVALID_COMMAND, f"an identifier of kind {kind} and {len(value)} bytes")


def stored_name(raw: bytes, number: int) -> str:
    """A new name as it is stored: lower case, with runs of white space as one dot.

    Args:
        number: The error number of a name that is not text.
    """
    try:
        return _SPACES.sub(".", raw.decode().lower())
    except UnicodeDecodeError:
        raise Bad(number, "a name is not UTF-8") from None


# ---------------------------------------------------------------- hot requests


def _reader(body: bytes) -> tuple[int, calls.OffsetKind, Key, Key, int]:
    """The consumer, stream and topic with which poll and offset commands begin."""
    kind, number = _CONSUMER(body, 0)
    if kind == cmd.CONSUMER:
        who = calls.OffsetKind.CONSUMER
    elif kind == cmd.GROUP:
        who = calls.OffsetKind.GROUP
    else:
        raise Bad(error.INVALID_COMMAND, f"a consumer of kind {kind}")
    stream, at = identifier(body, 5)
    topic, at = identifier(body, at)
    return number, who, stream, topic, at


def _place(partition: int, who: calls.OffsetKind) -> int:
    """The partition in core's numbers; a group's member reads the one that is its turn, whatever
    the request names."""
    if who is calls.OffsetKind.GROUP:
        return calls.ASSIGNED
    return partition - 1 if partition else NOWHERE


def poll(body: bytes, reply_bytes_max: int) -> tuple[Tag, Request]:
    """POLL_MESSAGES."""
    number, who, stream, topic, at = _reader(body)
    partition, kind, value, count, commit = _POLL(body, at)
    whence = _WHENCE.get(kind)
    if whence is None:
        raise Bad(error.INVALID_COMMAND, f"a polling strategy of kind {kind}")
    if not count:
        raise Bad(error.INVALID_MESSAGES_COUNT, "a poll for 0 messages")
    if kind == cmd.LAST:
        value = count
    elif kind > cmd.TIMESTAMP:
        value = 0
    request = calls.Fetch(
        topic,
        _place(partition, who),
        min(value, INT64_MAX),
        stream,
        whence,
        count,
        reply_bytes_max,
        SHOWN_BYTES_MAX,
        True,
        0,
        False,
        str(number),
        who,
        commit == 1,
        0,
        number if who is calls.OffsetKind.GROUP else 0,
    )
    return Tag(cmd.POLL_MESSAGES, type(stream) is str, type(topic) is str), request


_WHENCE: Final = {
    cmd.OFFSET: calls.Whence.OFFSET,
    cmd.TIMESTAMP: calls.Whence.TIMESTAMP,
    cmd.FIRST: calls.Whence.EARLIEST,
    cmd.LAST: calls.Whence.LAST,
    cmd.NEXT: calls.Whence.COMMITTED,
}


def store_offset(body: bytes) -> tuple[Tag, Request]:
    """STORE_CONSUMER_OFFSET."""
    number, who, stream, topic, at = _reader(body)
    partition, offset = _STORE(body, at)
    request = calls.CommitOffset(
        topic,
        str(number),
        ((_place(partition, who), min(offset + 1, INT64_MAX)),),
        stream,
        who,
        within_log=True,
        group_number=number if who is calls.OffsetKind.GROUP else 0,
    )
    named = (type(stream) is str, type(topic) is str)
    return Tag(cmd.STORE_CONSUMER_OFFSET, *named, offset=offset), request


def get_offset(body: bytes) -> tuple[Tag, Request]:
    """GET_CONSUMER_OFFSET."""
    number, who, stream, topic, at = _reader(body)
    (partition,) = _U32(body, at)
    request = calls.FetchOffset(
        topic,
        str(number),
        _place(partition, who),
        stream,
        who,
        number if who is calls.OffsetKind.GROUP else 0,
    )
    return Tag(cmd.GET_CONSUMER_OFFSET, type(stream) is str, type(topic) is str), request


# ---------------------------------------------------------------- the other requests


def administer(code: int, body: bytes, member: str) -> tuple[Tag, Request]:
    """A command on streams, topics, partitions or groups.

    Args:
        member: What the connection is called as a member of groups.

    Raises:
        Bad: The body is not the command's, or breaks a rule that is checked before any look-up.
    """
    try:
        asked = wire.REQUESTS[code].parse(body)
    except ConstructError as reason:
        raise Bad(error.INVALID_COMMAND, str(reason).partition("\n")[2]) from None
    stream = key_of(asked.stream.kind, asked.stream.value) if "stream" in asked else 0
    topic = key_of(asked.topic.kind, asked.topic.value) if "topic" in asked else 0
    tag = Tag(code, type(stream) is str, type(topic) is str)
    match code:
        case cmd.GET_STREAM:
            return tag, calls.DescribeNamespace(stream)
        case cmd.CREATE_STREAM:
            if not asked.number:
                raise Bad(error.INVALID_STREAM_ID, "a stream id of 0")
            name = stored_name(asked.name, error.INVALID_STREAM_NAME)
            return tag, calls.CreateNamespace(name, asked.number)
        case cmd.DELETE_STREAM:
            return tag, calls.DeleteNamespace(stream)
        case cmd.UPDATE_STREAM:
            name = stored_name(asked.name, error.INVALID_STREAM_NAME)
            return tag, calls.RenameNamespace(stream, name)
        case cmd.GET_TOPIC:
            return tag, calls.DescribeTopic(topic, stream)
        case cmd.GET_TOPICS:
            return tag, calls.ListTopics(stream)
        case cmd.CREATE_TOPIC:
            return tag, _create_topic(asked, stream)
        case cmd.DELETE_TOPIC:
            return tag, calls.DeleteTopic(topic, stream)
        case cmd.UPDATE_TOPIC:
            name = stored_name(asked.name, error.INVALID_TOPIC_NAME)
            retention_ms = 1000 * asked.expiry_s
            return tag, calls.UpdateTopic(topic, stream, name, retention_ms=retention_ms)
        case cmd.GET_GROUPS:
            return tag, calls.ListGroups(topic, stream)
    if code >= cmd.GET_GROUP:
        return tag, group.requested(code, stream, topic, asked.group, member)
    if not 0 < asked.count <= cmd.PARTITIONS_MAX:
        raise Bad(error.TOO_MANY_PARTITIONS, f"a change by {asked.count} partitions")
    if code == cmd.CREATE_PARTITIONS:
        return tag, calls.AddPartitions(topic, asked.count, stream)
    return tag, calls.RemovePartitions(topic, asked.count, stream)


def _create_topic(asked: Any, stream: Key) -> Request:
    if not asked.number:
        raise Bad(error.INVALID_TOPIC_ID, "a topic id of 0")
    if asked.partitions > cmd.PARTITIONS_MAX:
        raise Bad(error.TOO_MANY_PARTITIONS, f"a topic of {asked.partitions} partitions")
    return calls.CreateTopic(
        stored_name(asked.name, error.INVALID_TOPIC_NAME),
        asked.partitions,
        stream,
        asked.number,
        calls.TopicConfig(retention_ms=1000 * asked.expiry_s),
    )


# ---------------------------------------------------------------- replies


def current_offset(high_watermark: int) -> int:
    """The last visible offset as the wire says it; 0 also where there is none."""
    return high_watermark - 1 if high_watermark else 0


def polled_head(reply: calls.Fetched, size: int) -> bytes:
    """The head of a poll's answer, before `size` bytes of messages."""
    return _POLLED(
        0,
        16 + size,
        reply.partition + 1,
        current_offset(reply.high_watermark),
        reply.count,
    )


def offset_info(reply: calls.OffsetFetched) -> bytes:
    """The whole answer of GET_CONSUMER_OFFSET; what was never stored shows as 0."""
    stored = reply.offset - 1 if reply.offset else 0
    return _OFFSET(0, 20, reply.partition + 1, current_offset(reply.high_watermark), stored)


def stream_record(found: NamespaceDescription) -> dict[str, Any]:
    """One stream for `wire.STREAM`."""
    return {
        "number": found.number,
        "created_us": found.created_us,
        "topics": len(found.topics),
        "size_bytes": sum(topic.size_bytes for topic in found.topics),
        "messages": sum(topic.records for topic in found.topics),
        "name": found.name.encode(),
    }


def topic_record(found: TopicDescription) -> dict[str, Any]:
    """One topic for `wire.TOPIC`; an expiry of part of a second shows as a whole one."""
    return {
        "number": found.number,
        "created_us": found.created_us,
        "partitions": len(found.partitions),
        "expiry_s": min(-(-found.config.retention_ms // 1000), _EXPIRY_MAX_S),
        "size_bytes": found.size_bytes,
        "messages": found.records,
        "name": found.name.encode(),
    }


def partition_record(found: PartitionDescription) -> dict[str, Any]:
    """One partition for `wire.PARTITION`."""
    return {
        "number": found.partition + 1,
        "created_us": found.created_us,
        "segments": found.segments,
        "current_offset": current_offset(found.high_watermark),
        "size_bytes": found.size_bytes,
        "messages": max(found.high_watermark - found.log_start_offset, 0),
    }


def topic_records(found: Sequence[TopicDescription]) -> list[dict[str, Any]]:
    """Topics in the order of their numbers."""
    return [topic_record(topic) for topic in sorted(found, key=lambda topic: topic.number)]


def description(reply: object) -> bytes:
    """The body of a success that describes something; every other one is empty."""
    match reply:
        case calls.NamespaceDescribed(found):
            record = {"stream": stream_record(found), "topics": topic_records(found.topics)}
            return bytes(wire.STREAM_DETAILS.build(record))
        case calls.NamespacesListed(streams):
            listed = sorted(streams, key=lambda stream: stream.number)
            return bytes(wire.STREAMS.build([stream_record(stream) for stream in listed]))
        case calls.TopicDescribed(topic):
            partitions = [partition_record(partition) for partition in topic.partitions]
            record = {"topic": topic_record(topic), "partitions": partitions}
            return bytes(wire.TOPIC_DETAILS.build(record))
        case calls.TopicsListed(topics):
            return bytes(wire.TOPICS.build(topic_records(topics)))
        case calls.GroupDescribed(found_group):
            return group.described(found_group)
        case calls.GroupsListed(groups):
            return group.listed(groups)
    return b""
