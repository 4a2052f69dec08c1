"""From what a RustLog client asked to core's vocabulary, the same for both forms of the wire.

Each function takes plain fields, already checked for type and range, and returns the request with
the tag that its answer needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.codecs.base import Asked, Refused
from dragoman.codecs.rustlog.parse import Tag
from dragoman.codecs.rustlog.wire import Command
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    CommitOffset,
    CreateTopic,
    DescribeTopic,
    Fetch,
    FetchOffset,
    ListTopics,
    Ping,
    Produce,
    ReadStatistics,
    Whence,
)
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from dragoman.core.column import VarColumn

OFFSET_MAX = (1 << 63) - 1
"""Core's largest offset. Reading beyond it is reading beyond the end; committing it is refused."""
BINARY_RECORD_OVERHEAD = 12
"""What a record counts for besides its payload when a binary fetch is measured."""
JSON_RECORD_BYTES_MAX = 48
"""The longest `{"offset":<20 digits>,"payload":[]},` around a record's numbers, rounded up."""


def produce(topic: str, partition: int, values: VarColumn | None, *, json: bool) -> Asked:
    """A batch to append; None for one without records, which only asks whether the place exists."""
    namespace, name = split_flat(topic)
    tag = Tag(Command.PRODUCE, json, topic, partition)
    if values is None:
        return Asked(tag, DescribeTopic(name, namespace))
    batch = RecordBatch(len(values), values, origin=Origin.RUSTLOG)
    return Asked(tag, Produce(name, batch, partition, namespace))


def fetch_binary(
    group: str, topic: str, partition: int, offset: int, bytes_max: int, reply_bytes_max: int
) -> Asked:
    """A binary fetch: a group reads from its committed offset alone, and without one nothing.

    What comes is bounded so that the reply fits its frame: a record counts 12 bytes and its
    payload here, and takes 4 and its payload on the wire.
    """
    namespace, name = split_flat(topic)
    request = Fetch(
        name,
        partition,
        OFFSET_MAX if group or offset > OFFSET_MAX else offset,
        namespace,
        Whence.COMMITTED if group else Whence.OFFSET,
        bytes_max=min(bytes_max, reply_bytes_max - 13),
        record_overhead=BINARY_RECORD_OVERHEAD,
        group=group,
    )
    tag = Tag(Command.FETCH, False, topic, partition, offset, bool(group), bytes_max)
    return Asked(tag, request)


def fetch_json(
    group: str, topic: str, partition: int, offset: int, bytes_max: int, reply_bytes_max: int
) -> Asked:
    """A JSON fetch: a group reads from the larger of its committed offset and the requested one.

    A payload byte takes up to 4 bytes of JSON, so the payload is bounded to a fifth of the reply
    and the rest is left to what surrounds the records, whose number is bounded by it.
    """
    namespace, name = split_flat(topic)
    payload_bytes_max = reply_bytes_max // 5
    request = Fetch(
        name,
        partition,
        min(offset, OFFSET_MAX),
        namespace,
        Whence.MAX_COMMITTED if group else Whence.OFFSET,
        records_max=(reply_bytes_max - 4 * payload_bytes_max) // JSON_RECORD_BYTES_MAX - 2,
        bytes_max=min(bytes_max, payload_bytes_max),
        strict=True,
        group=group,
    )
    tag = Tag(Command.FETCH, True, topic, partition, offset, bool(group), bytes_max)
    return Asked(tag, request)


def commit(group: str, topic: str, partition: int, offset: int, *, json: bool) -> Asked | Refused:
    """An offset to store; commits of this dialect are not fenced and may go back."""
    tag = Tag(Command.OFFSET_COMMIT, json, topic, partition, offset)
    if offset > OFFSET_MAX:
        return Refused(tag, Failure(ErrorCode.INVALID_OFFSET, f"offset {offset} is above 2^63-1"))
    namespace, name = split_flat(topic)
    return Asked(tag, CommitOffset(name, group, ((partition, offset),), namespace))


def fetch_offset(group: str, topic: str, partition: int, *, json: bool) -> Asked:
    """A committed offset to read."""
    namespace, name = split_flat(topic)
    tag = Tag(Command.OFFSET_FETCH, json, topic, partition)
    return Asked(tag, FetchOffset(name, group, partition, namespace))


def create_topic(topic: str, partition_count: int, *, json: bool) -> Asked | Refused:
    """A topic to make; `partition_count` is remembered for the error that names it.

    Core has topics without partitions, this dialect does not.
    """
    tag = Tag(Command.CREATE_TOPIC, json, topic, partition_count)
    if not partition_count:
        return Refused(tag, Failure(ErrorCode.INVALID_PARTITION_COUNT))
    namespace, name = split_flat(topic)
    return Asked(tag, CreateTopic(name, partition_count, namespace))


def list_topics(*, json: bool) -> Asked:
    """All topics of all namespaces."""
    return Asked(Tag(Command.LIST_TOPICS, json), ListTopics())


def describe_topic(topic: str) -> Asked:
    """A topic with its partitions."""
    namespace, name = split_flat(topic)
    return Asked(Tag(Command.DESCRIBE_TOPIC, False, topic), DescribeTopic(name, namespace))


def describe_partition(topic: str, partition: int) -> Asked:
    """One partition of a topic."""
    namespace, name = split_flat(topic)
    tag = Tag(Command.DESCRIBE_PARTITION, False, topic, partition)
    return Asked(tag, DescribeTopic(name, namespace))


def read_metrics() -> Asked:
    """The server's counters and gauges."""
    return Asked(Tag(Command.METRICS_FETCH, False), ReadStatistics())


def ping(*, json: bool) -> Asked:
    """Nothing but an answer in its turn."""
    return Asked(Tag(Command.PING, json), Ping())
