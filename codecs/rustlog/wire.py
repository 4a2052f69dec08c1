"""The RustLog wire, declared: every binary body as a construct, every JSON request as a table.

One connection carries two forms of the same requests, in frames of `u32be length | payload`: the
JSON of the protocol document, and the binary form that the published clients speak. This file is
the specification that the straight code of `binary` and `document` is held to by differential
tests; it is never run on the hot path.

Binary integers are big-endian and unsigned, text is UTF-8 behind a u16 length. A binary request may
be followed by bytes that nobody reads; every other body ends exactly where its frame does.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple

from construct import (
    Bytes,
    Const,
    Construct,
    GreedyBytes,
    If,
    Int8ub,
    Int16ub,
    Int32ub,
    Int64ub,
    PascalString,
    Prefixed,
    PrefixedArray,
    Struct,
    this,
)

FRAME_BYTES_MAX = 10_485_760
"""The largest payload of a frame in either direction, inclusive."""
U32_MAX = (1 << 32) - 1
U64_MAX = (1 << 64) - 1


class Command(IntEnum):
    """What is asked; the values are the binary opcodes."""

    NONE = 0
    """No command was recognised: the frame itself is at fault."""
    PRODUCE = 1
    FETCH = 2
    OFFSET_COMMIT = 3
    OFFSET_FETCH = 4
    CREATE_TOPIC = 5
    LIST_TOPICS = 6
    DESCRIBE_TOPIC = 7
    DESCRIBE_PARTITION = 8
    METRICS_FETCH = 9
    ERROR = 0xFE
    """A reply only."""
    PING = 0xFF


COMMANDS = {int(command): command for command in Command}

TEXT = PascalString(Int16ub, "utf8")
BLOB = Prefixed(Int32ub, GreedyBytes)


def _request(command: Command, *fields: Construct) -> Construct:
    """A request: its opcode, its fields, and whatever follows."""
    return Struct("op" / Const(int(command), Int8ub), *fields)


REQUESTS: dict[Command, Construct] = {
    Command.PRODUCE: _request(
        Command.PRODUCE,
        "topic" / TEXT,
        "partition" / Int32ub,
        "records" / PrefixedArray(Int32ub, BLOB),
    ),
    Command.FETCH: _request(
        Command.FETCH,
        "group" / TEXT,
        "topic" / TEXT,
        "partition" / Int32ub,
        "offset" / Int64ub,
        "max_bytes" / Int32ub,
    ),
    Command.OFFSET_COMMIT: _request(
        Command.OFFSET_COMMIT,
        "group" / TEXT,
        "topic" / TEXT,
        "partition" / Int32ub,
        "offset" / Int64ub,
    ),
    Command.OFFSET_FETCH: _request(
        Command.OFFSET_FETCH, "group" / TEXT, "topic" / TEXT, "partition" / Int32ub
    ),
    Command.CREATE_TOPIC: _request(
        Command.CREATE_TOPIC, "topic" / TEXT, "partition_count" / Int32ub
    ),
    Command.LIST_TOPICS: _request(Command.LIST_TOPICS),
    Command.DESCRIBE_TOPIC: _request(Command.DESCRIBE_TOPIC, "topic" / TEXT),
    Command.DESCRIBE_PARTITION: _request(
        Command.DESCRIBE_PARTITION, "topic" / TEXT, "partition" / Int32ub
    ),
    Command.METRICS_FETCH: _request(Command.METRICS_FETCH),
    Command.PING: _request(Command.PING),
}
"""The payload of every binary request."""

REPLIES: dict[Command, Construct] = {
    Command.PRODUCE: _request(Command.PRODUCE, "base_offset" / Int64ub, "count" / Int32ub),
    Command.FETCH: _request(
        Command.FETCH, "records" / PrefixedArray(Int32ub, BLOB), "next_offset" / Int64ub
    ),
    Command.OFFSET_COMMIT: _request(Command.OFFSET_COMMIT, "success" / Int8ub),
    Command.OFFSET_FETCH: _request(
        Command.OFFSET_FETCH, "has" / Int8ub, "offset" / If(this.has, Int64ub)
    ),
    Command.CREATE_TOPIC: _request(Command.CREATE_TOPIC, "success" / Int8ub),
    Command.LIST_TOPICS: _request(
        Command.LIST_TOPICS,
        "topics" / PrefixedArray(Int32ub, Struct("name" / TEXT, "partitions" / Int32ub)),
    ),
    Command.DESCRIBE_TOPIC: _request(
        Command.DESCRIBE_TOPIC,
        "topic" / TEXT,
        "partition_count" / Int32ub,
        "partitions"
        / PrefixedArray(Int32ub, Struct("partition" / Int32ub, "high_watermark" / Int64ub)),
    ),
    Command.DESCRIBE_PARTITION: _request(
        Command.DESCRIBE_PARTITION,
        "topic" / TEXT,
        "partition" / Int32ub,
        "high_watermark" / Int64ub,
    ),
    Command.METRICS_FETCH: _request(Command.METRICS_FETCH, "text" / PascalString(Int32ub, "utf8")),
    Command.ERROR: _request(
        Command.ERROR, "code" / Int16ub, "length" / Int16ub, "message" / Bytes(this.length)
    ),
    Command.PING: _request(Command.PING),
}
"""The payload of every binary reply, by its first byte."""


class Kind(Enum):
    """The type of a field of a JSON request, as a strictly typed server reads it."""

    TEXT = "a string"
    OPTIONAL_TEXT = "a string or null"
    U32 = "an integer from 0 to 4294967295"
    U64 = "an integer from 0 to 18446744073709551615"
    BYTE_LISTS = "an array of arrays of integers from 0 to 255"


class Shape(NamedTuple):
    """A JSON request `{"<name>": {<fields>}}`, or the bare string `"<name>"` without fields.

    Attributes:
        fields: Name and type of each field. All must be there but OPTIONAL_TEXT, which may be
            missing; others are ignored.
    """

    command: Command
    fields: dict[str, Kind]


SHAPES: dict[str, Shape] = {
    "Produce": Shape(
        Command.PRODUCE,
        {"topic": Kind.TEXT, "partition": Kind.U32, "records": Kind.BYTE_LISTS},
    ),
    "Fetch": Shape(
        Command.FETCH,
        {
            "topic": Kind.TEXT,
            "partition": Kind.U32,
            "offset": Kind.U64,
            "max_bytes": Kind.U64,
            "group_id": Kind.OPTIONAL_TEXT,
        },
    ),
    "OffsetCommit": Shape(
        Command.OFFSET_COMMIT,
        {
            "topic": Kind.TEXT,
            "partition": Kind.U32,
            "group_id": Kind.TEXT,
            "offset": Kind.U64,
        },
    ),
    "OffsetFetch": Shape(
        Command.OFFSET_FETCH,
        {"topic": Kind.TEXT, "partition": Kind.U32, "group_id": Kind.TEXT},
    ),
    "CreateTopic": Shape(Command.CREATE_TOPIC, {"topic": Kind.TEXT, "partition_count": Kind.U32}),
    "ListTopics": Shape(Command.LIST_TOPICS, {}),
    "Ping": Shape(Command.PING, {}),
}
"""Every JSON request by its name."""
