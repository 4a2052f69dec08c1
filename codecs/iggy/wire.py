"""Every frame body of the Iggy generation of August 2023, declared once with construct.

This is the specification in code: the oracle of the differential tests, what the straight-line code
of `codecs.kernels` is generated from, and what a dissector walks. Framing is not here (a request
is `u32 length | u32 code | body`, a response `u32 status | u32 length | body`), nor is any rule
about values: a kind that does not exist, an empty payload or a number 0 parse, and `translate`
refuses them by their own error numbers.

All integers are little-endian. Lengths and counts are unsigned. Bodies that end with a repetition
end exactly where their frame ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from construct import (
    Bytes,
    GreedyBytes,
    Int8ul,
    Int32ul,
    Int64ul,
    Prefixed,
    PrefixedArray,
    Struct,
    Subconstruct,
    stream_iseof,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

TINY = Prefixed(Int8ul, GreedyBytes)
"""Bytes with a length of one byte: names, identifiers, keys that route."""

LONG = Prefixed(Int32ul, GreedyBytes)
"""Bytes with a length of four bytes: headers and payloads."""


class ToEnd(Subconstruct):  # type: ignore[misc]
    """One construct after the other until the frame ends; a cut-off one is an error.

    construct's own greedy range would take a broken tail for the end.
    """

    def _parse(self, stream: Any, context: Any, path: Any) -> list[Any]:
        items = []
        while not stream_iseof(stream):
            items.append(self.subcon._parsereport(stream, context, path))
        return items

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        for item in obj:
            self.subcon._build(item, stream, context, path)
        return obj


# ---------------------------------------------------------------- shared encodings

IDENTIFIER = Struct("kind" / Int8ul, "value" / TINY)
CONSUMER = Struct("kind" / Int8ul, "id" / Int32ul)
PARTITIONING = Struct("kind" / Int8ul, "value" / TINY)
STRATEGY = Struct("kind" / Int8ul, "value" / Int64ul)
HEADER = Struct("key" / LONG, "kind" / Int8ul, "value" / LONG)
HEADERS = ToEnd(HEADER)
MESSAGE = Struct("id" / Bytes(16), "headers" / LONG, "payload" / LONG)
MESSAGES = ToEnd(MESSAGE)

# ---------------------------------------------------------------- requests

NOTHING = Struct()
STREAM_BODY = Struct("stream" / IDENTIFIER)
TOPIC_BODY = Struct("stream" / IDENTIFIER, "topic" / IDENTIFIER)
CREATE_STREAM = Struct("number" / Int32ul, "name" / TINY)
UPDATE_STREAM = Struct("stream" / IDENTIFIER, "name" / TINY)
CREATE_TOPIC = Struct(
    "stream" / IDENTIFIER,
    "number" / Int32ul,
    "partitions" / Int32ul,
    "expiry_s" / Int32ul,
    "name" / TINY,
)
UPDATE_TOPIC = Struct(
    "stream" / IDENTIFIER, "topic" / IDENTIFIER, "expiry_s" / Int32ul, "name" / TINY
)
PARTITIONS_BODY = Struct("stream" / IDENTIFIER, "topic" / IDENTIFIER, "count" / Int32ul)
SEND_HEAD = Struct("stream" / IDENTIFIER, "topic" / IDENTIFIER, "partitioning" / PARTITIONING)
SEND_MESSAGES = Struct(
    "stream" / IDENTIFIER,
    "topic" / IDENTIFIER,
    "partitioning" / PARTITIONING,
    "messages" / MESSAGES,
)
POLL_MESSAGES = Struct(
    "consumer" / CONSUMER,
    "stream" / IDENTIFIER,
    "topic" / IDENTIFIER,
    "partition" / Int32ul,
    "strategy" / STRATEGY,
    "count" / Int32ul,
    "auto_commit" / Int8ul,
)
GET_OFFSET = Struct(
    "consumer" / CONSUMER, "stream" / IDENTIFIER, "topic" / IDENTIFIER, "partition" / Int32ul
)
STORE_OFFSET = Struct(
    "consumer" / CONSUMER,
    "stream" / IDENTIFIER,
    "topic" / IDENTIFIER,
    "partition" / Int32ul,
    "offset" / Int64ul,
)
GROUP_BODY = Struct("stream" / IDENTIFIER, "topic" / IDENTIFIER, "group" / Int32ul)

# ---------------------------------------------------------------- responses

STREAM = Struct(
    "number" / Int32ul,
    "created_us" / Int64ul,
    "topics" / Int32ul,
    "size_bytes" / Int64ul,
    "messages" / Int64ul,
    "name" / TINY,
)
TOPIC = Struct(
    "number" / Int32ul,
    "created_us" / Int64ul,
    "partitions" / Int32ul,
    "expiry_s" / Int32ul,
    "size_bytes" / Int64ul,
    "messages" / Int64ul,
    "name" / TINY,
)
PARTITION = Struct(
    "number" / Int32ul,
    "created_us" / Int64ul,
    "segments" / Int32ul,
    "current_offset" / Int64ul,
    "size_bytes" / Int64ul,
    "messages" / Int64ul,
)
STREAMS = ToEnd(STREAM)
TOPICS = ToEnd(TOPIC)
STREAM_DETAILS = Struct("stream" / STREAM, "topics" / TOPICS)
TOPIC_DETAILS = Struct("topic" / TOPIC, "partitions" / ToEnd(PARTITION))
OFFSET_INFO = Struct("partition" / Int32ul, "current_offset" / Int64ul, "stored_offset" / Int64ul)
POLLED_MESSAGE = Struct(
    "offset" / Int64ul,
    "state" / Int8ul,
    "timestamp_us" / Int64ul,
    "id" / Bytes(16),
    "checksum" / Int32ul,
    "headers" / LONG,
    "payload" / LONG,
)
POLLED_MESSAGES = Struct(
    "partition" / Int32ul,
    "current_offset" / Int64ul,
    "count" / Int32ul,
    "messages" / ToEnd(POLLED_MESSAGE),
)
GROUP = Struct("number" / Int32ul, "partitions" / Int32ul, "members" / Int32ul)
MEMBER = Struct("number" / Int32ul, "partitions" / PrefixedArray(Int32ul, Int32ul))
GROUPS = ToEnd(GROUP)
GROUP_DETAILS = Struct("group" / GROUP, "members" / ToEnd(MEMBER))

REQUESTS: Mapping[int, Any] = {
    1: NOTHING,
    100: POLL_MESSAGES,
    101: SEND_MESSAGES,
    120: GET_OFFSET,
    121: STORE_OFFSET,
    200: STREAM_BODY,
    201: NOTHING,
    202: CREATE_STREAM,
    203: STREAM_BODY,
    204: UPDATE_STREAM,
    300: TOPIC_BODY,
    301: STREAM_BODY,
    302: CREATE_TOPIC,
    303: TOPIC_BODY,
    304: UPDATE_TOPIC,
    402: PARTITIONS_BODY,
    403: PARTITIONS_BODY,
    600: GROUP_BODY,
    601: TOPIC_BODY,
    602: GROUP_BODY,
    603: GROUP_BODY,
    604: GROUP_BODY,
    605: GROUP_BODY,
}
"""The body of each command that is served, by its code."""

RESPONSES: Mapping[int, Any] = {
    100: POLLED_MESSAGES,
    120: OFFSET_INFO,
    200: STREAM_DETAILS,
    201: STREAMS,
    300: TOPIC_DETAILS,
    301: TOPICS,
    600: GROUP_DETAILS,
    601: GROUPS,
}
"""The body of a success, by command code; every other command answers an empty one."""
