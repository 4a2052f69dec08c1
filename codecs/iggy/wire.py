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
    Struct,
    Subconstruct,
    stream_iseof,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Tiny = Prefixed(Int8ul, GreedyBytes)
"""Bytes with a length of one byte: names, identifiers, keys that route."""

Long = Prefixed(Int32ul, GreedyBytes)
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

Identifier = Struct("kind" / Int8ul, "value" / Tiny)
Consumer = Struct("kind" / Int8ul, "id" / Int32ul)
Partitioning = Struct("kind" / Int8ul, "value" / Tiny)
Strategy = Struct("kind" / Int8ul, "value" / Int64ul)
Header = Struct("key" / Long, "kind" / Int8ul, "value" / Long)
Headers = ToEnd(Header)
Message = Struct("id" / Bytes(16), "headers" / Long, "payload" / Long)
Messages = ToEnd(Message)

# ---------------------------------------------------------------- requests

Nothing = Struct()
StreamBody = Struct("stream" / Identifier)
TopicBody = Struct("stream" / Identifier, "topic" / Identifier)
CreateStream = Struct("number" / Int32ul, "name" / Tiny)
UpdateStream = Struct("stream" / Identifier, "name" / Tiny)
CreateTopic = Struct(
    "stream" / Identifier,
    "number" / Int32ul,
    "partitions" / Int32ul,
    "expiry_s" / Int32ul,
    "name" / Tiny,
)
UpdateTopic = Struct(
    "stream" / Identifier, "topic" / Identifier, "expiry_s" / Int32ul, "name" / Tiny
)
PartitionsBody = Struct("stream" / Identifier, "topic" / Identifier, "count" / Int32ul)
SendHead = Struct("stream" / Identifier, "topic" / Identifier, "partitioning" / Partitioning)
SendMessages = Struct(
    "stream" / Identifier,
    "topic" / Identifier,
    "partitioning" / Partitioning,
    "messages" / Messages,
)
PollMessages = Struct(
    "consumer" / Consumer,
    "stream" / Identifier,
    "topic" / Identifier,
    "partition" / Int32ul,
    "strategy" / Strategy,
    "count" / Int32ul,
    "auto_commit" / Int8ul,
)
GetOffset = Struct(
    "consumer" / Consumer, "stream" / Identifier, "topic" / Identifier, "partition" / Int32ul
)
StoreOffset = Struct(
    "consumer" / Consumer,
    "stream" / Identifier,
    "topic" / Identifier,
    "partition" / Int32ul,
    "offset" / Int64ul,
)

# ---------------------------------------------------------------- responses

Stream = Struct(
    "number" / Int32ul,
    "created_us" / Int64ul,
    "topics" / Int32ul,
    "size_bytes" / Int64ul,
    "messages" / Int64ul,
    "name" / Tiny,
)
Topic = Struct(
    "number" / Int32ul,
    "created_us" / Int64ul,
    "partitions" / Int32ul,
    "expiry_s" / Int32ul,
    "size_bytes" / Int64ul,
    "messages" / Int64ul,
    "name" / Tiny,
)
Partition = Struct(
    "number" / Int32ul,
    "created_us" / Int64ul,
    "segments" / Int32ul,
    "current_offset" / Int64ul,
    "size_bytes" / Int64ul,
    "messages" / Int64ul,
)
Streams = ToEnd(Stream)
Topics = ToEnd(Topic)
StreamDetails = Struct("stream" / Stream, "topics" / Topics)
TopicDetails = Struct("topic" / Topic, "partitions" / ToEnd(Partition))
OffsetInfo = Struct("partition" / Int32ul, "current_offset" / Int64ul, "stored_offset" / Int64ul)
PolledHead = Struct("partition" / Int32ul, "current_offset" / Int64ul, "count" / Int32ul)
PolledMessage = Struct(
    "offset" / Int64ul,
    "state" / Int8ul,
    "timestamp_us" / Int64ul,
    "id" / Bytes(16),
    "checksum" / Int32ul,
    "headers" / Long,
    "payload" / Long,
)
PolledMessages = Struct(
    "partition" / Int32ul,
    "current_offset" / Int64ul,
    "count" / Int32ul,
    "messages" / ToEnd(PolledMessage),
)

REQUESTS: Mapping[int, Any] = {
    1: Nothing,
    100: PollMessages,
    101: SendMessages,
    120: GetOffset,
    121: StoreOffset,
    200: StreamBody,
    201: Nothing,
    202: CreateStream,
    203: StreamBody,
    204: UpdateStream,
    300: TopicBody,
    301: StreamBody,
    302: CreateTopic,
    303: TopicBody,
    304: UpdateTopic,
    402: PartitionsBody,
    403: PartitionsBody,
}
"""The body of each command that is served, by its code."""

RESPONSES: Mapping[int, Any] = {
    100: PolledMessages,
    120: OffsetInfo,
    200: StreamDetails,
    201: Streams,
    300: TopicDetails,
    301: Topics,
}
"""The body of a success, by command code; every other command answers an empty one."""
