"""What a Cursus server says, in core's vocabulary."""

from __future__ import annotations

import re
from array import array
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.cursus.columns import headers_of, to_batch
from dragoman.codecs.cursus.setting import config_of
from dragoman.codecs.kernels import cursus_l3
from dragoman.codecs.malformed import Malformed
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from dragoman.core.calls import BatchSlice, Reply, Request

_CODES: Final = {
    "malformed_input": ErrorCode.MALFORMED,
    "decode_failed": ErrorCode.MALFORMED,
    "batch_decode_failed": ErrorCode.MALFORMED,
    "frame_too_large": ErrorCode.FRAME_TOO_LARGE,
    "unknown_command": ErrorCode.UNKNOWN_COMMAND,
    "unsupported": ErrorCode.UNSUPPORTED,
    "invalid_name": ErrorCode.INVALID_NAME,
    "topic_not_found": ErrorCode.UNKNOWN_TOPIC,
    "topic_exists": ErrorCode.TOPIC_EXISTS,
    "invalid_partitions": ErrorCode.INVALID_PARTITION_COUNT,
    "create_topic_failed": ErrorCode.PARTITIONS_CANNOT_SHRINK,
    "partition_not_found": ErrorCode.UNKNOWN_PARTITION,
    "record_too_large": ErrorCode.RECORD_TOO_LARGE,
    "batch_too_large": ErrorCode.BATCH_TOO_LARGE,
    "OFFSET_OUT_OF_RANGE": ErrorCode.OFFSET_OUT_OF_RANGE,
    "invalid_offset": ErrorCode.INVALID_OFFSET,
    "offset_regression": ErrorCode.OFFSET_REGRESSION,
    "stale_producer_epoch": ErrorCode.STALE_PRODUCER_EPOCH,
    "group_not_found": ErrorCode.UNKNOWN_GROUP,
    "topic_not_assigned_to_group": ErrorCode.GROUP_TOPIC_MISMATCH,
    "member_not_found": ErrorCode.UNKNOWN_MEMBER,
    "GEN_MISMATCH": ErrorCode.STALE_GENERATION,
    "NOT_OWNER": ErrorCode.NOT_OWNER,
    "NOT_LEADER": ErrorCode.NOT_LEADER,
}
_REASONS: Final = {
    "empty batch": ErrorCode.EMPTY_BATCH,
    "idempotency gap": ErrorCode.OUT_OF_ORDER_SEQUENCE,
    "replication timeout": ErrorCode.REPLICATION_TIMEOUT,
    "storage full": ErrorCode.STORAGE_FULL,
    "storage failed": ErrorCode.STORAGE_FAILED,
    "are damaged": ErrorCode.DAMAGED,
    "overloaded": ErrorCode.OVERLOADED,
    "limit reached": ErrorCode.LIMIT_REACHED,
    "shutting down": ErrorCode.SHUTTING_DOWN,
}
"""What tells the reasons of `broker_error` apart."""

_FACT = re.compile(r"(\w+)=(-?\d{1,20})(?=\s|$|,)")
_OK = re.compile(r"OK(?: (.*))?", re.DOTALL)
_JOINED = re.compile(r"OK generation=(\d{1,19}) member=(\S+) assignments=\[([\d ]*)\]")
_SYNCED = re.compile(r"OK assignments=\[([\d ]*)\]")


class Batch(NamedTuple):
    """A batch frame as a client sees it."""

    topic: str
    partition: int
    slices: list[BatchSlice]


def batch_of(body: bytes) -> Batch:
    """Reads a batch frame in layout L3.

    Raises:
        ProtocolError: It is none.
    """
    try:
        head, columns = cursus_l3.decode(body, 0, len(body))
        topic = head.topic.decode()
    except (Malformed, UnicodeDecodeError) as fault:
        raise ProtocolError(f"not a batch: {fault}") from None
    if not columns.count:
        return Batch(topic, head.partition, [])
    batch = to_batch(columns, headers_of(columns))
    offsets = columns.offset
    if isinstance(offsets, range):
        batch.base_offset = offsets.start
    elif columns.count == 1 and isinstance(offsets, int):
        batch.base_offset = offsets
    else:
        if isinstance(offsets, int):
            raise ProtocolError("several messages have one offset")
        first = batch.base_offset = offsets[0]
        deltas = [offset - first for offset in offsets]
        if any(later <= delta for delta, later in pairwise(deltas)):
            raise ProtocolError("the offsets of a batch do not rise")
        if deltas[-1] >= 1 << 32:
            raise ProtocolError("the offsets of a batch lie too far apart")
        batch.offset_deltas = array("I", deltas)
        batch.last_offset_delta = deltas[-1]
    return Batch(topic, head.partition, [calls.BatchSlice(batch, 0, columns.count)])


def fetched(request: calls.Fetch, batch: Batch) -> calls.Fetched:
    """The answer of a CONSUME."""
    namespace, topic = split_flat(batch.topic)
    start = request.offset if request.whence is calls.Whence.OFFSET else 0
    next_offset = start
    if batch.slices:
        stored = batch.slices[0].batch
        start = max(start, stored.base_offset)
        next_offset = stored.next_offset
    return calls.Fetched(namespace, topic, batch.partition, batch.slices, start, next_offset, 0, 0)


def followed(request: calls.Follow, batch: Batch) -> calls.Followed:
    """A push of a STREAM."""
    namespace, topic = split_flat(batch.topic)
    stored = batch.slices[0].batch
    return calls.Followed(
        namespace,
        topic,
        batch.partition,
        batch.slices,
        stored.base_offset,
        stored.next_offset,
        0,
        0,
    )


def failure_of(body: bytes) -> Failure | None:
    """The failure that a text reply tells, or None where it tells none."""
    text = body.decode(errors="replace")
    if not text.startswith("ERROR:"):
        return None
    return _failure(text.removeprefix("ERROR:").strip())


def _failure(told: str) -> Failure:
    word = told.partition(" ")[0]
    code = _CODES.get(word)
    if code is None:
        code = ErrorCode.INTERNAL
        if word == "broker_error":
            for phrase, meant in _REASONS.items():
                if phrase in told:
                    code = meant
        elif word.startswith(("missing_", "invalid_", "no_valid_")):
            code = ErrorCode.MALFORMED
    facts: dict[str, int | str] = {name: int(value) for name, value in _FACT.findall(told)}
    return Failure(code, told, facts)


def understand(request: Request, body: bytes) -> Reply | Failure:
    """The reply to a request.

    Raises:
        ProtocolError: The body is not one.
    """
    if (failure := failure_of(body)) is not None:
        return failure
    try:
        if isinstance(request, calls.Produce):
            return _produced(request, body)
        text = body.decode()
        found = _OK.fullmatch(text)
        if found is None:
            raise ProtocolError(f"not a reply to {type(request).__name__}: {text[:64]!r}")
        fields = dict([item.split("=", 1) for item in (found[1] or "").split(" ") if "=" in item])
        return _understand(request, text, fields)
    except (KeyError, ValueError, TypeError) as fault:
        if isinstance(fault, ProtocolError):
            raise
        raise ProtocolError(f"not a reply to {type(request).__name__}: {fault!r}") from None


def _produced(request: calls.Produce, body: bytes) -> Reply | Failure:
    answer: dict[str, Any] = orjson.loads(body)
    if answer["status"] != "OK":
        return _failure(str(answer.get("error", "")))
    last = answer["last_offset"]
    if not isinstance(last, int):
        raise ProtocolError("last_offset is not a number")
    count = request.batch.count
    partition = request.route if isinstance(request.route, int) else -1
    return calls.Produced(partition, max(last - count + 1, -1), count)


def _understand(request: Request, text: str, fields: dict[str, str]) -> Reply:
    match request:
        case calls.CreateTopic():
            return calls.TopicCreated(_told(fields))
        case calls.DescribeTopic():
            return calls.TopicDescribed(_told(fields))
        case calls.DeleteTopic():
            return calls.TopicDeleted(*split_flat(fields["topic"]))
        case calls.DeleteRecords():
            return calls.RecordsDeleted(int(fields["partition"]), int(fields["log_start"]))
        case calls.ListTopics():
            names = [name for name in fields["topics"].split(",") if name]
            return calls.TopicsListed([described(name, 0) for name in names])
        case calls.CommitOffset(offsets=offsets):
            return calls.OffsetCommitted(int(fields.get("batched", len(offsets))))
        case calls.FetchOffset(partition=partition):
            return calls.OffsetFetched(partition, int(fields["offset"]), 0)
        case calls.JoinGroup() if (joined := _JOINED.fullmatch(text)) is not None:
            partitions = tuple(map(int, joined[3].split()))
            return calls.GroupJoined(joined[2], int(joined[1]), partitions)
        case calls.SyncGroup(member=member) if (synced := _SYNCED.fullmatch(text)) is not None:
            partitions = tuple(map(int, synced[1].split()))
            return calls.GroupJoined(member, request.generation or 0, partitions)
        case calls.Heartbeat():
            return calls.HeartbeatAccepted(fields["member"], int(fields["generation"]))
        case calls.LeaveGroup():
            return calls.GroupLeft(fields["member"], fields["left"] == "true")
    raise ProtocolError(f"not a reply to {type(request).__name__}: {text[:64]!r}")


def _told(fields: dict[str, str]) -> calls.TopicDescription:
    topic = described(fields["topic"], int(fields["partitions"]))
    topic.config = config_of({name: value.encode() for name, value in fields.items()})
    return topic


def described(name: str, partitions: int) -> calls.TopicDescription:
    """A topic of which only the name and the number of partitions are known."""
    namespace, topic = split_flat(name)
    if not 0 <= partitions <= 1_000_000:
        raise ProtocolError(f"a topic of {partitions} partitions")
    unknown = [calls.PartitionDescription(number, 0, 0, 0, 0, 0, 0) for number in range(partitions)]
    return calls.TopicDescription(namespace, topic, 0, 0, calls.TopicConfig(), unknown)
