"""Between V1's words and core's: error texts, payloads of replies, generations.

`ERRORS` is total over core's error codes; `ERRORS_OF` holds what single commands say differently.
No text repeats what a peer sent, so none can break a line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.codecs.v1.wire import (
    EXPECTED_FORMAT,
    INVALID_NAME,
    LINE_TOO_LONG,
    UNSUPPORTED_COMMAND,
    Code,
)
from dragoman.core.calls import (
    GroupJoined,
    GroupLeft,
    HeartbeatAccepted,
    OffsetCommitted,
    OffsetFetched,
    ReplicaReported,
    RoleSet,
)
from dragoman.core.error import ErrorCode
from dragoman.core.name import DEFAULT_NAMESPACE, flat_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.calls import Reply
    from dragoman.core.error import Failure

_BAD = Code.BAD_REQUEST
_GROUP = Code.GENERATION_MISMATCH
_SERVER = Code.SERVER_ERROR

ERRORS: dict[ErrorCode, tuple[Code, str]] = {
    ErrorCode.MALFORMED: (_BAD, EXPECTED_FORMAT),
    ErrorCode.FRAME_TOO_LARGE: (_BAD, LINE_TOO_LONG),
    ErrorCode.UNKNOWN_COMMAND: (Code.UNKNOWN_COMMAND, UNSUPPORTED_COMMAND),
    ErrorCode.UNSUPPORTED: (_BAD, "not supported by this server"),
    ErrorCode.WRONG_PROTOCOL: (_BAD, EXPECTED_FORMAT),
    ErrorCode.INVALID_NAME: (_BAD, INVALID_NAME),
    ErrorCode.INVALID_NUMBER: (_BAD, INVALID_NAME),
    ErrorCode.UNKNOWN_NAMESPACE: (_BAD, "unknown namespace"),
    ErrorCode.NAMESPACE_EXISTS: (_BAD, "namespace exists"),
    ErrorCode.NAMESPACE_NUMBER_EXISTS: (_BAD, "namespace exists"),
    ErrorCode.NAMESPACE_PROTECTED: (_BAD, "namespace is protected"),
    ErrorCode.UNKNOWN_TOPIC: (_BAD, "unknown topic"),
    ErrorCode.TOPIC_EXISTS: (_BAD, "topic exists"),
    ErrorCode.TOPIC_NUMBER_EXISTS: (_BAD, "topic exists"),
    ErrorCode.INVALID_PARTITION_COUNT: (_BAD, "invalid partition count"),
    ErrorCode.PARTITIONS_CANNOT_SHRINK: (_BAD, "invalid partition count"),
    ErrorCode.UNKNOWN_PARTITION: (_BAD, "invalid partition"),
    ErrorCode.NO_PARTITIONS: (_BAD, "invalid partition"),
    ErrorCode.EMPTY_BATCH: (_BAD, "message must be key:value"),
    ErrorCode.RECORD_TOO_LARGE: (_BAD, "record too large"),
    ErrorCode.BATCH_TOO_LARGE: (_BAD, "record too large"),
    ErrorCode.INVALID_OFFSET: (_BAD, "invalid offset"),
    ErrorCode.OFFSET_OUT_OF_RANGE: (_BAD, "invalid offset"),
    ErrorCode.OFFSET_REGRESSION: (_BAD, "invalid offset"),
    ErrorCode.OUT_OF_ORDER_SEQUENCE: (_BAD, "sequence out of order"),
    ErrorCode.STALE_PRODUCER_EPOCH: (_BAD, "stale producer epoch"),
    ErrorCode.NOT_EVENT_SOURCED: (_BAD, "not supported by this topic"),
    ErrorCode.VERSION_CONFLICT: (_BAD, "version conflict"),
    ErrorCode.SNAPSHOT_TOO_NEW: (_BAD, "version conflict"),
    ErrorCode.UNKNOWN_GROUP: (_GROUP, "group not found"),
    ErrorCode.GROUP_EXISTS: (_BAD, "group exists"),
    ErrorCode.GROUP_TOPIC_MISMATCH: (_GROUP, "group not found"),
    ErrorCode.UNKNOWN_MEMBER: (_GROUP, "unknown member"),
    ErrorCode.STALE_GENERATION: (_GROUP, "stale generation"),
    ErrorCode.NOT_OWNER: (_GROUP, "partition not assigned to member"),
    ErrorCode.NOT_LEADER: (Code.NOT_LEADER, "partition leader unavailable on this broker"),
    ErrorCode.REPLICATION_TIMEOUT: (Code.REPLICATION_TIMEOUT, "acks=all timeout"),
    ErrorCode.STORAGE_FULL: (_SERVER, "storage full"),
    ErrorCode.STORAGE_FAILED: (_SERVER, "storage failed"),
    ErrorCode.DAMAGED: (_SERVER, "records damaged"),
    ErrorCode.OVERLOADED: (_SERVER, "overloaded"),
    ErrorCode.LIMIT_REACHED: (_SERVER, "limit reached"),
    ErrorCode.SHUTTING_DOWN: (_SERVER, "shutting down"),
    ErrorCode.INTERNAL: (_SERVER, "internal error"),
}
"""Where several codes share a text, a client hears the first of them."""

_NOT_FOUND = (_GROUP, "group not found")
_NOT_ASSIGNED = (_GROUP, "partition not assigned to member")
_NO_PARTITION = (_BAD, "partition not found: topic={topic} partition={partition}")

ERRORS_OF: dict[tuple[str, ErrorCode], tuple[Code, str]] = {
    (command, code): _NOT_FOUND
    for command in ("SYNC", "HEARTBEAT", "LEAVE", "COMMIT")
    for code in (
        ErrorCode.INVALID_NAME,
        ErrorCode.UNKNOWN_NAMESPACE,
        ErrorCode.UNKNOWN_TOPIC,
    )
} | {
    ("COMMIT", ErrorCode.UNKNOWN_PARTITION): _NOT_ASSIGNED,
    ("REPLICA_FETCH", ErrorCode.INVALID_NUMBER): (_BAD, "invalid replica id"),
    ("REPLICA_FETCH", ErrorCode.NOT_LEADER): (_BAD, "partition is not leader"),
    ("SET_PARTITION_ROLE", ErrorCode.UNKNOWN_PARTITION): _NO_PARTITION,
    ("SET_PARTITION_ROLE", ErrorCode.NO_PARTITIONS): _NO_PARTITION,
}

NEVER_COMMITTED = frozenset(
    {
        ErrorCode.INVALID_NAME,
        ErrorCode.UNKNOWN_NAMESPACE,
        ErrorCode.UNKNOWN_TOPIC,
        ErrorCode.UNKNOWN_PARTITION,
        ErrorCode.NO_PARTITIONS,
        ErrorCode.UNKNOWN_GROUP,
        ErrorCode.GROUP_TOPIC_MISMATCH,
    }
)
"""For OFFSET these are no errors: nothing was committed there, so the offset is 0."""


def shown_generation(generation: int) -> int:
    """A group's generation as V1 counts it: the first member already makes it the second."""
    return generation + 1


def core_generation(shown: int) -> int:
    """The inverse of `shown_generation`."""
    return shown - 1


def error_text(command: str, failure: Failure) -> tuple[Code, str]:
    """How this command words this error. A topic is named only where it exists, so that its name
    is a legal one."""
    wording = ERRORS_OF.get((command, failure.code)) or ERRORS[failure.code]
    if wording is not _NO_PARTITION:
        return wording
    facts = failure.facts
    namespace = str(facts.get("namespace", DEFAULT_NAMESPACE))
    topic = flat_name(namespace, str(facts.get("topic", "?")))
    code, text = wording
    return code, text.format(topic=topic, partition=facts.get("partition", "?"))


def number_list(numbers: Sequence[int]) -> str:
    """Numbers as V1 prints a list: `[0 2]`."""
    return f"[{' '.join(map(str, numbers))}]"


def payload(reply: Reply) -> str:
    """The payload of every reply that is not records."""
    match reply:
        case GroupJoined(generation=generation, partitions=partitions):
            shown = shown_generation(generation)
            return f"generation={shown} assigned={number_list(partitions)}"
        case HeartbeatAccepted():
            return "heartbeat=ok"
        case GroupLeft():
            return "left=true"
        case OffsetCommitted():
            return "committed=true"
        case RoleSet():
            topic = flat_name(reply.namespace, reply.topic)
            return (
                f"topic={topic} partition={reply.partition} role={reply.role.value} "
                f"hw={reply.high_watermark - 1}"
            )
        case ReplicaReported():
            return (
                f"replica={reply.replica} acked_offset={reply.offset} "
                f"hw={reply.high_watermark - 1} isr={number_list(reply.in_sync)} "
                f"under_replicated={str(reply.under_replicated).lower()}"
            )
        case OffsetFetched(offset=offset):
            return f"offset={offset or 0}"
        case _:
            raise TypeError(f"no V1 command is answered by {type(reply).__name__}")
