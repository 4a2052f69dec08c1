"""What of core's vocabulary a RustLog client can say, and what replies become, in both forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.codecs.base import Unsayable
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    BatchSlice,
    CommitOffset,
    CreateTopic,
    Fetch,
    Fetched,
    FetchOffset,
    IfExists,
    OffsetKind,
    PartitionDescription,
    Produce,
    TopicConfig,
    TopicDescription,
    Whence,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import flat_name, split_flat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.calls import Key

U32_MAX = (1 << 32) - 1


def topic_text(namespace: Key, topic: Key) -> str:
    """A topic as RustLog names it.

    Raises:
        Unsayable: It is known by number only.
    """
    if isinstance(namespace, int) or isinstance(topic, int):
        raise Unsayable("RustLog knows topics by name, not by number")
    return flat_name(namespace, topic)


def records_of(request: Produce) -> tuple[int, list[bytes]]:
    """The partition and the payloads of a produce.

    Raises:
        Unsayable: The server would have to choose the partition, or a record has more than a
            payload.
    """
    batch = request.batch
    if not isinstance(request.route, int):
        raise Unsayable("a RustLog producer chooses the partition itself")
    if request.create_partitions:
        raise Unsayable("RustLog does not create topics by producing")
    if batch.keys is not None or batch.headers is not None or batch.ids is not None:
        raise Unsayable("RustLog records have a payload and nothing else: no key, headers or id")
    if batch.producers:
        raise Unsayable("RustLog has no idempotent producers")
    if batch.values.validity is not None and None in list(batch.values):
        raise Unsayable("RustLog has no records without a value")
    return request.route, batch.values.slices(0, batch.count)


def fetch_place(request: Fetch) -> tuple[str, str]:
    """The topic and the group of a fetch.

    Raises:
        Unsayable: It asks for more than to read from an offset.
    """
    if request.whence in (Whence.COMMITTED, Whence.MAX_COMMITTED):
        if not request.group or request.kind is not OffsetKind.GROUP:
            raise Unsayable("a committed offset is read by a named group")
        group = request.group
    elif request.whence is Whence.OFFSET:
        group = ""
    else:
        raise Unsayable(f"RustLog reads from an offset, not by {request.whence.name.lower()}")
    if request.auto_commit:
        raise Unsayable("RustLog has no automatic commits")
    if request.create_partitions:
        raise Unsayable("RustLog does not create topics by fetching")
    if request.offset < 0:
        raise Unsayable("RustLog offsets are not negative")
    if request.partition < 0:
        raise Unsayable("a RustLog fetch names its partition")
    return topic_text(request.namespace, request.topic), group


def commit_place(request: CommitOffset) -> tuple[str, int, int]:
    """The topic, partition and offset of a commit.

    Raises:
        Unsayable: It is of several partitions, fenced, or of a consumer.
    """
    if len(request.offsets) != 1:
        raise Unsayable("RustLog commits one partition at a time")
    if request.member or request.generation is not None or request.kind is not OffsetKind.GROUP:
        raise Unsayable("RustLog commits are by group alone, without member or generation")
    if request.monotonic or request.within_log:
        raise Unsayable("RustLog commits are not checked against the log or earlier commits")
    partition, offset = request.offsets[0]
    if offset < 0:
        raise Unsayable("RustLog offsets are not negative")
    return topic_text(request.namespace, request.topic), partition, offset


def offset_place(request: FetchOffset) -> str:
    """The topic of a committed offset.

    Raises:
        Unsayable: It is a consumer's.
    """
    if request.kind is not OffsetKind.GROUP:
        raise Unsayable("RustLog keeps committed offsets of groups only")
    return topic_text(request.namespace, request.topic)


def created_topic(request: CreateTopic) -> str:
    """The name of a topic to create.

    Raises:
        Unsayable: It has settings, a number, or may already exist.
    """
    if request.if_exists is not IfExists.REFUSE:
        raise Unsayable("RustLog creates a topic only where there is none")
    if request.number or request.config != TopicConfig():
        raise Unsayable("RustLog topics have a name and a partition count, nothing else")
    return topic_text(request.namespace, request.topic)


def described(name: str, partitions: Sequence[tuple[int, int]]) -> TopicDescription:
    """A topic of these (partition, high watermark) pairs."""
    namespace, topic = split_flat(name)
    return TopicDescription(
        namespace,
        topic,
        0,
        0,
        TopicConfig(),
        [PartitionDescription(number, 0, 0, mark, mark, 0, 0) for number, mark in partitions],
    )


def fetched(
    request: Fetch, offsets: Sequence[int] | None, payloads: Sequence[bytes], next_offset: int
) -> Fetched:
    """The reply of a fetch; without `offsets` the records end right before `next_offset`."""
    namespace, topic = split_flat(topic_text(request.namespace, request.topic))
    if offsets is None:
        offsets = range(next_offset - len(payloads), next_offset)
    if len(payloads) > request.records_max:
        payloads, offsets = payloads[: request.records_max], offsets[: request.records_max]
        next_offset = offsets[-1] + 1 if offsets else next_offset
    slices = []
    begin = 0
    for index in range(1, len(payloads) + 1):
        if index == len(payloads) or offsets[index] != offsets[index - 1] + 1:
            count = index - begin
            values = VarColumn.of(list(payloads[begin:index]))
            batch = RecordBatch(count, values, origin=Origin.RUSTLOG)
            batch.place(base_offset=offsets[begin], timestamp_us=0, log_epoch=0)
            slices.append(BatchSlice(batch, 0, count))
            begin = index
    start = offsets[0] if payloads else next_offset
    return Fetched(namespace, topic, request.partition, slices, start, next_offset, 0, 0)


_REASONS = (
    ("already exists", ErrorCode.TOPIC_EXISTS),
    ("invalid partition count", ErrorCode.INVALID_PARTITION_COUNT),
    ("does not exist", ErrorCode.UNKNOWN_TOPIC),
    ("does not fit", ErrorCode.RECORD_TOO_LARGE),
    ("not found", ErrorCode.UNKNOWN_TOPIC),
    ("offset out of range", ErrorCode.OFFSET_OUT_OF_RANGE),
    ("frame too large", ErrorCode.FRAME_TOO_LARGE),
    ("max frame size exceeded", ErrorCode.FRAME_TOO_LARGE),
    ("record too large", ErrorCode.RECORD_TOO_LARGE),
    ("unknown request type", ErrorCode.UNKNOWN_COMMAND),
    ("unknown variant", ErrorCode.UNKNOWN_COMMAND),
    ("decode error", ErrorCode.MALFORMED),
    ("failed to parse request", ErrorCode.MALFORMED),
    ("frame error", ErrorCode.MALFORMED),
    ("invalid name", ErrorCode.INVALID_NAME),
    ("invalid offset", ErrorCode.INVALID_OFFSET),
    ("storage full", ErrorCode.STORAGE_FULL),
    ("storage failure", ErrorCode.STORAGE_FAILED),
    ("damaged", ErrorCode.DAMAGED),
    ("shutting down", ErrorCode.SHUTTING_DOWN),
    ("overloaded", ErrorCode.OVERLOADED),
)


def failure(message: str) -> Failure:
    """The failure that an error text means; the codes of the wire are coarser than its texts."""
    lowered = message.lower()
    for words, code in _REASONS:
        if words in lowered:
            return Failure(code, message)
    return Failure(ErrorCode.INTERNAL, message)
