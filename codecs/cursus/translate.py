"""What Cursus clients are told: core's replies and failures in the words of the wire.

A failure of a text command is one line, `ERROR: <code> <name>=<value> ...`; of a batch it is an ACK
object whose `error` holds the same words. The words are those of the published generation, since
clients look for some of them (`GEN_MISMATCH`, `NOT_OWNER`, `stale_producer_epoch`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import orjson

from dragoman.codecs.cursus.setting import words_of
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import flat_name

if TYPE_CHECKING:
    from dragoman.core import calls

ERRORS: dict[ErrorCode, str] = {
    ErrorCode.MALFORMED: 'malformed_input reason="{detail}"',
    ErrorCode.FRAME_TOO_LARGE: "frame_too_large size={size} limit={limit}",
    ErrorCode.UNKNOWN_COMMAND: "unknown_command command={command}",
    ErrorCode.UNSUPPORTED: 'unsupported reason="{detail}"',
    ErrorCode.WRONG_PROTOCOL: 'wrong_protocol reason="{detail}"',
    ErrorCode.INVALID_NAME: 'invalid_name reason="{detail}"',
    ErrorCode.INVALID_NUMBER: 'invalid_number reason="{detail}"',
    ErrorCode.UNKNOWN_NAMESPACE: "topic_not_found topic={topic}",
    ErrorCode.NAMESPACE_EXISTS: "namespace_exists",
    ErrorCode.NAMESPACE_NUMBER_EXISTS: "namespace_number_exists",
    ErrorCode.NAMESPACE_PROTECTED: "namespace_protected",
    ErrorCode.UNKNOWN_TOPIC: "topic_not_found topic={topic}",
    ErrorCode.TOPIC_EXISTS: "topic_exists topic={topic}",
    ErrorCode.TOPIC_NUMBER_EXISTS: "topic_number_exists topic={topic}",
    ErrorCode.INVALID_PARTITION_COUNT: 'invalid_partitions reason="{detail}"',
    ErrorCode.PARTITIONS_CANNOT_SHRINK: (
        'create_topic_failed topic={topic} reason="cannot decrease partition count for topic '
        "'{topic}': {current} -> {requested}\""
    ),
    ErrorCode.UNKNOWN_PARTITION: "partition_not_found partition={partition}",
    ErrorCode.NO_PARTITIONS: "partition_not_found partition={partition}",
    ErrorCode.EMPTY_BATCH: 'broker_error reason="empty batch messages"',
    ErrorCode.RECORD_TOO_LARGE: "record_too_large size={size} limit={limit}",
    ErrorCode.BATCH_TOO_LARGE: 'batch_too_large reason="{detail}"',
    ErrorCode.OFFSET_OUT_OF_RANGE: (
        "OFFSET_OUT_OF_RANGE requested={requested} earliest={earliest} latest={latest}"
    ),
    ErrorCode.INVALID_OFFSET: "invalid_offset",
    ErrorCode.OFFSET_REGRESSION: 'offset_regression reason="{detail}"',
    ErrorCode.OUT_OF_ORDER_SEQUENCE: 'broker_error reason="idempotency gap: expected {expected}, '
    'got {got}"',
    ErrorCode.STALE_PRODUCER_EPOCH: "stale_producer_epoch current={current} requested={requested}",
    ErrorCode.NOT_EVENT_SOURCED: "event_sourcing_not_enabled topic={topic}",
    ErrorCode.VERSION_CONFLICT: "version_conflict current={current} expected={requested}",
    ErrorCode.SNAPSHOT_TOO_NEW: (
        "snapshot_version_exceeds_stream version={requested} current={current}"
    ),
    ErrorCode.UNKNOWN_GROUP: "group_not_found group={group}",
    ErrorCode.GROUP_EXISTS: "group_exists group={group}",
    ErrorCode.GROUP_TOPIC_MISMATCH: (
        "topic_not_assigned_to_group expected={expected} actual={actual}"
    ),
    ErrorCode.UNKNOWN_MEMBER: "member_not_found member={member} group={group}",
    ErrorCode.STALE_GENERATION: (
        "GEN_MISMATCH current={current} requested={requested} group={group} member={member}"
    ),
    ErrorCode.NOT_OWNER: (
        "NOT_OWNER partition={partition} member={member} group={group} generation={generation}"
    ),
    ErrorCode.NOT_LEADER: "NOT_LEADER LEADER_IS {leader}",
    ErrorCode.REPLICATION_TIMEOUT: 'broker_error reason="replication timeout"',
    ErrorCode.STORAGE_FULL: 'broker_error reason="storage full: {detail}"',
    ErrorCode.STORAGE_FAILED: 'broker_error reason="storage failed: {detail}"',
    ErrorCode.DAMAGED: 'broker_error reason="records {first} to {last} are damaged"',
    ErrorCode.OVERLOADED: 'broker_error reason="the server is overloaded"',
    ErrorCode.LIMIT_REACHED: 'broker_error reason="limit reached: {detail}"',
    ErrorCode.SHUTTING_DOWN: 'broker_error reason="the server is shutting down"',
    ErrorCode.INTERNAL: 'broker_error reason="internal error"',
}
"""Every reason in the words of this dialect; fields come from the failure and from the request."""

_UNPRINTABLE = dict.fromkeys((*range(32), 127), "?") | {ord('"'): "'", ord("\\"): "/"}
_JSON_UNSAFE = {ord('"'): "'"}


class Style(Enum):
    """How records are sent to a reader."""

    BATCH = auto()
    """One frame with a batch in layout L3."""
    L1 = auto()
    """One frame with a batch in layout L1."""
    DOCUMENT = auto()
    """One frame with a batch in the document's layout."""
    FRAMES = auto()
    """A frame a record with nothing but its payload, then the connection closes."""


@dataclass(slots=True)
class Tag:
    """What a command's answer needs beside the reply.

    Attributes:
        command: Its keyword; empty where there was none.
        topic, partition, group, member, key: As the client wrote them.
        consumer: The name of which a member is made, where its client may go on using that.
        positional: The document's form of the command.
        style: Of a reader's answers.
        closes: The connection closes after the answer.
        wording: The exact words of a refusal that the codec itself decided.
        is_pattern: The topic is a pattern of names.
        is_fenced: Of a reader who is told here that its group has moved on.
        is_refused: It was answered by a failure.
        after: What was asked before this in one command: where that was refused, nothing more is
            said.
    """

    command: str = ""
    topic: str = ""
    partition: int = 0
    group: str = ""
    member: str = ""
    key: bytes = b""
    positional: bool = False
    style: Style = Style.BATCH
    closes: bool = False
    wording: str = ""
    consumer: str = ""
    is_pattern: bool = False
    is_fenced: bool = False
    is_refused: bool = False
    after: Tag | None = None


@dataclass(slots=True)
class AckTag:
    """What the answer of a batch or a PUBLISH needs beside the reply.

    Attributes:
        producer, epoch: Of the last message.
        seq_start, seq_end: Of the first and the last message.
        is_object: Failures are told as an ACK object too, which is so for batches.
        droppable: Asked with acks 0: left out where the peer leaves its answers lying.
    """

    topic: str = ""
    partition: int = 0
    producer: bytes = b""
    epoch: int = 0
    seq_start: int = 0
    seq_end: int = 0
    is_object: bool = True
    wording: str = ""
    droppable: bool = False


class _Fields(dict[str, Any]):
    """Formatting fields; one that nobody gave prints as a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


def printable(text: str) -> str:
    """A peer's text as it may stand in an answer: no control character, no quote."""
    return text.translate(_UNPRINTABLE)


def words(tag: Tag | AckTag, failure: Failure, leader: str = "") -> str:
    """A failure without its `ERROR: `.

    Args:
        leader: The address that a client which looks for the leader is told.
    """
    if tag.wording:
        return tag.wording
    if failure.code is ErrorCode.UNKNOWN_TOPIC and isinstance(tag, Tag) and tag.is_pattern:
        return f"no_topics_match pattern={printable(tag.topic)}"
    return _format(tag, failure, leader)


def _format(tag: Tag | AckTag, failure: Failure, leader: str) -> str:
    fields = _Fields(
        partition=tag.partition, detail=printable(failure.detail), leader=leader or "?"
    )
    fields |= failure.facts
    fields["topic"] = printable(tag.topic)
    if isinstance(tag, Tag):
        fields["command"] = tag.command
        fields["group"] = printable(tag.group)
        fields["member"] = printable(tag.member)
    return ERRORS[failure.code].format_map(fields)


def refusal(tag: Tag | AckTag, failure: Failure, leader: str = "") -> bytes:
    """The body of the frame that tells of a failure; `leader` as `words` has it."""
    told = words(tag, failure, leader)
    if isinstance(tag, AckTag) and tag.is_object:
        if failure.code is ErrorCode.NOT_LEADER:
            # Published clients take the address up to the next white space, so that it must not
            # be the last word of a string in an object.
            return ack_error(f"{told} partition={tag.partition}", leader)
        return ack_error(told)
    return f"ERROR: {told}".encode()


def ack(tag: AckTag, last_offset: int, leader: str) -> bytes:
    """The ACK object of records that were taken."""
    return orjson.dumps(
        {
            "status": "OK",
            "last_offset": last_offset,
            "producer_epoch": tag.epoch,
            "producer_id": tag.producer.decode(errors="replace"),
            "seq_start": tag.seq_start,
            "seq_end": tag.seq_end,
            "leader": leader,
            "error": "",
        }
    )


def ack_error(told: str, leader: str = "") -> bytes:
    """The ACK object of a batch that was refused. Clients end a string at the next quote, so
    that nothing in it may need an escape."""
    return orjson.dumps(
        {
            "status": "ERROR",
            "last_offset": 0,
            "producer_epoch": 0,
            "producer_id": "",
            "seq_start": 0,
            "seq_end": 0,
            "leader": leader,
            "error": told.translate(_JSON_UNSAFE),
        }
    )


def topic_line(topic: calls.TopicDescription, tag: Tag, address: str) -> str:
    """The answer of CREATE, METADATA and LIST of one topic."""
    count = len(topic.partitions)
    line = f"OK topic={tag.topic} partitions={count}"
    if tag.command == "METADATA":
        leaders = ",".join([address] * count)
        line = f"{line} leaders={leaders} epochs={','.join(['0'] * count)}"
    return " ".join([line, *[f"{name}={word}" for name, word in words_of(topic.config).items()]])


def topics_line(listed: calls.TopicsListed) -> str:
    """The answer of LIST."""
    names = sorted([flat_name(topic.namespace, topic.name) for topic in listed.topics])
    return f"OK count={len(names)} topics={','.join(names)}"
