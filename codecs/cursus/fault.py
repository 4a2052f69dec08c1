"""What a Cursus server refuses, and why, in core's vocabulary; of every generation of brokers.

Newer brokers write `ERROR: <code> <name>=<value> ...`, older ones sentences, some of them without
the `ERROR:`. The words by which clients are moved (`NOT_LEADER`, `REBALANCE_REQUIRED`,
`GEN_MISMATCH`, ...) count wherever in a refusal they stand.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman.core.error import ErrorCode, Failure

_CODES: Final = {
    "malformed_input": ErrorCode.MALFORMED,
    "decode_failed": ErrorCode.MALFORMED,
    "batch_decode_failed": ErrorCode.MALFORMED,
    "frame_too_large": ErrorCode.FRAME_TOO_LARGE,
    "unknown_command": ErrorCode.UNKNOWN_COMMAND,
    "unsupported": ErrorCode.UNSUPPORTED,
    "invalid_name": ErrorCode.INVALID_NAME,
    "topic_not_found": ErrorCode.UNKNOWN_TOPIC,
    "TOPIC_NOT_FOUND": ErrorCode.UNKNOWN_TOPIC,
    "topic_exists": ErrorCode.TOPIC_EXISTS,
    "invalid_partitions": ErrorCode.INVALID_PARTITION_COUNT,
    "create_topic_failed": ErrorCode.PARTITIONS_CANNOT_SHRINK,
    "partition_not_found": ErrorCode.UNKNOWN_PARTITION,
    "PARTITION_NOT_FOUND": ErrorCode.UNKNOWN_PARTITION,
    "record_too_large": ErrorCode.RECORD_TOO_LARGE,
    "batch_too_large": ErrorCode.BATCH_TOO_LARGE,
    "OFFSET_OUT_OF_RANGE": ErrorCode.OFFSET_OUT_OF_RANGE,
    "invalid_offset": ErrorCode.INVALID_OFFSET,
    "offset_regression": ErrorCode.OFFSET_REGRESSION,
    "stale_producer_epoch": ErrorCode.STALE_PRODUCER_EPOCH,
    "event_sourcing_not_enabled": ErrorCode.NOT_EVENT_SOURCED,
    "version_conflict": ErrorCode.VERSION_CONFLICT,
    "snapshot_version_exceeds_stream": ErrorCode.SNAPSHOT_TOO_NEW,
    "group_not_found": ErrorCode.UNKNOWN_GROUP,
    "topic_not_assigned_to_group": ErrorCode.GROUP_TOPIC_MISMATCH,
    "member_not_found": ErrorCode.UNKNOWN_MEMBER,
}
"""By the first word."""

_MOVING: Final = {
    "NOT_LEADER": ErrorCode.NOT_LEADER,
    "NOT_COORDINATOR": ErrorCode.NOT_LEADER,
    "GEN_MISMATCH": ErrorCode.STALE_GENERATION,
    "REBALANCE_REQUIRED": ErrorCode.STALE_GENERATION,
    "NOT_OWNER": ErrorCode.NOT_OWNER,
    "member_not_found": ErrorCode.UNKNOWN_MEMBER,
    "group_not_found": ErrorCode.UNKNOWN_GROUP,
    "stale_producer_epoch": ErrorCode.STALE_PRODUCER_EPOCH,
}
"""By a word anywhere, the first of these that is found."""

_PHRASES: Final = {
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

_SENTENCES: Final = (
    (r"topic '.*' (?:not found|does not exist)", ErrorCode.UNKNOWN_TOPIC),
    (r"topic '.*' is not event-sourcing enabled", ErrorCode.NOT_EVENT_SOURCED),
    (r"partition \d+ out of range", ErrorCode.UNKNOWN_PARTITION),
    (r"group '.*' not found", ErrorCode.UNKNOWN_GROUP),
    (r"(?:consumer '.*'|member \S+) not found", ErrorCode.UNKNOWN_MEMBER),
    (r"not partition owner or generation mismatch", ErrorCode.STALE_GENERATION),
    (r"failed to create topic .*cannot decrease", ErrorCode.PARTITIONS_CANNOT_SHRINK),
    (r"partitions must be ", ErrorCode.INVALID_PARTITION_COUNT),
    (r"invalid offset", ErrorCode.INVALID_OFFSET),
    (r"snapshot version \d+ exceeds", ErrorCode.SNAPSHOT_TOO_NEW),
    (r"(?:missing|invalid|unknown) ", ErrorCode.MALFORMED),
    (r"\S+ requires ", ErrorCode.MALFORMED),
)
_OLD: Final = tuple([(re.compile(pattern, re.DOTALL), code) for pattern, code in _SENTENCES])
"""The sentences of older brokers."""

_FACT = re.compile(r"(\w+)=(-?\d{1,20})(?=[\s\",]|$)")
_LEADER = re.compile(r"LEADER_IS\s+([^\s\"',;]+)")
_COORDINATOR = re.compile(r"host=(\S+) port=(\d{1,5})")
_ADDRESS = re.compile(r"\[?[^\s/@\]]+\]?:(\d{1,5})")


def address_of(text: object) -> str:
    """An address as a server tells it, `host:port`; empty for anything else."""
    if not isinstance(text, str) or (found := _ADDRESS.fullmatch(text)) is None:
        return ""
    return text if 0 < int(found[1]) <= 65_535 else ""


def refused(body: bytes) -> Failure | None:
    """The failure that a text reply tells, or None where it tells none."""
    text = body.decode(errors="replace")
    if text.startswith(("ERROR:", "ERROR ")):
        return failure_of(text[6:].strip())
    if text.startswith(("OK", "{", "[")):
        return None
    if text.startswith("STREAM_CONTROL "):
        return _ended(text)
    if any(word in text for word in _MOVING) or any(old.match(text) for old, _ in _OLD):
        return failure_of(text)
    return None


def failure_of(told: str, leader: str = "") -> Failure:
    """A refusal in core's words.

    Args:
        told: What stands behind `ERROR:`, or in the `error` of an ACK object.
        leader: The address that came beside it, if one did.
    """
    code = _code_of(told)
    facts: dict[str, int | str] = {name: int(value) for name, value in _FACT.findall(told)}
    if code is ErrorCode.NOT_LEADER:
        if named := _LEADER.search(told):
            leader = named[1]
        elif found := _COORDINATOR.search(told):
            leader = f"{found[1]}:{found[2]}"
        if leader := address_of(leader):
            facts["leader"] = leader
    elif code is ErrorCode.STALE_GENERATION and "generation" in facts:
        facts.setdefault("current", facts["generation"])
    return Failure(code, told, facts)


def _code_of(told: str) -> ErrorCode:
    word = told.partition(" ")[0].rstrip(":")
    if code := _CODES.get(word):
        return code
    for moving, meant in _MOVING.items():
        if moving in told:
            return meant
    for phrase, meant in _PHRASES.items():
        if phrase in told:
            return meant
    for old, meant in _OLD:
        if old.match(told):
            return meant
    if word.startswith(("missing_", "invalid_", "no_valid_")):
        return ErrorCode.MALFORMED
    return ErrorCode.INTERNAL


def _ended(text: str) -> Failure:
    """A stream that the server ends, with why."""
    facts: dict[str, int | str] = {name: int(value) for name, value in _FACT.findall(text)}
    if "reason=offset_out_of_range" in text:
        return Failure(ErrorCode.OFFSET_OUT_OF_RANGE, text, facts)
    if "reason=stopped" in text:
        return Failure(ErrorCode.SHUTTING_DOWN, text, facts)
    return Failure(ErrorCode.INTERNAL, text, facts)
