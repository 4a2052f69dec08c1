"""What RustLog clients are told: core's failures in the words of both forms of the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.codecs.rustlog.wire import Command
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from dragoman.codecs.rustlog.parse import Tag


class Wording(NamedTuple):
    """How one reason is told; the texts are formatted with the tag's and the failure's fields.

    Attributes:
        code: The binary error code, or 0: the code and the opening words of the command.
        binary, json: The text in each form.
    """

    code: int
    binary: str
    json: str


def _plain(text: str) -> Wording:
    """The same words in both forms, after the opening words of the command in binary."""
    return Wording(0, text, text)


_NO_PLACE = Wording(
    10,
    "Topic or partition does not exist: topic={topic}, partition={partition}",
    "partition not found: topic={topic}, partition={partition}",
)
_TOO_LONG = Wording(
    1,
    "Frame error: frame too large: {size} bytes (max: {limit})",
    "max frame size exceeded: {size} bytes (max: {limit})",
)
_UNREADABLE = Wording(2, "Decode error: {detail}", "failed to parse request: {detail}")
_DETAIL = _plain("{detail}")
_STORAGE = _plain("storage failure: {detail}")

ERRORS: dict[ErrorCode, Wording] = {
    ErrorCode.MALFORMED: _UNREADABLE,
    ErrorCode.FRAME_TOO_LARGE: _TOO_LONG,
    ErrorCode.UNKNOWN_COMMAND: _UNREADABLE,
    ErrorCode.UNSUPPORTED: _plain("unsupported: {detail}"),
    ErrorCode.WRONG_PROTOCOL: _TOO_LONG,
    ErrorCode.INVALID_NAME: _plain("invalid name: {detail}"),
    ErrorCode.INVALID_NUMBER: _DETAIL,
    ErrorCode.UNKNOWN_NAMESPACE: _NO_PLACE,
    ErrorCode.NAMESPACE_EXISTS: _DETAIL,
    ErrorCode.NAMESPACE_NUMBER_EXISTS: _DETAIL,
    ErrorCode.NAMESPACE_PROTECTED: _DETAIL,
    ErrorCode.UNKNOWN_TOPIC: _NO_PLACE,
    ErrorCode.TOPIC_EXISTS: Wording(
        11, "Topic '{topic}' already exists", "topic already exists: {topic}"
    ),
    ErrorCode.TOPIC_NUMBER_EXISTS: _DETAIL,
    ErrorCode.INVALID_PARTITION_COUNT: Wording(
        12, "Invalid partition count: {partition}", "invalid partition count: {partition}"
    ),
    ErrorCode.PARTITIONS_CANNOT_SHRINK: _DETAIL,
    ErrorCode.UNKNOWN_PARTITION: _NO_PLACE,
    ErrorCode.NO_PARTITIONS: _NO_PLACE,
    ErrorCode.EMPTY_BATCH: _plain("a batch without records"),
    ErrorCode.RECORD_TOO_LARGE: _plain("record too large: {size} bytes"),
    ErrorCode.BATCH_TOO_LARGE: _plain("batch too large: {detail}"),
    ErrorCode.OFFSET_OUT_OF_RANGE: _plain(
        "offset out of range: requested {requested}, log start {earliest}"
    ),
    ErrorCode.INVALID_OFFSET: _plain("invalid offset: {detail}"),
    ErrorCode.OFFSET_REGRESSION: _plain("offset regression: {detail}"),
    ErrorCode.OUT_OF_ORDER_SEQUENCE: _plain("out of order sequence: {detail}"),
    ErrorCode.STALE_PRODUCER_EPOCH: _plain("stale producer epoch: {detail}"),
    ErrorCode.NOT_EVENT_SOURCED: _DETAIL,
    ErrorCode.VERSION_CONFLICT: _plain("version conflict: {detail}"),
    ErrorCode.SNAPSHOT_TOO_NEW: _plain("version conflict: {detail}"),
    ErrorCode.UNKNOWN_GROUP: _plain("group not found"),
    ErrorCode.GROUP_EXISTS: _DETAIL,
    ErrorCode.GROUP_TOPIC_MISMATCH: _DETAIL,
    ErrorCode.UNKNOWN_MEMBER: _plain("unknown member"),
    ErrorCode.STALE_GENERATION: _plain("stale generation"),
    ErrorCode.NOT_OWNER: _plain("partition not assigned to member"),
    ErrorCode.NOT_LEADER: _plain("not leader: topic={topic}, partition={partition}"),
    ErrorCode.REPLICATION_TIMEOUT: _plain("replication timeout"),
    ErrorCode.STORAGE_FULL: _plain("storage full: {detail}"),
    ErrorCode.STORAGE_FAILED: _STORAGE,
    ErrorCode.DAMAGED: _plain("records are damaged: {detail}"),
    ErrorCode.OVERLOADED: _plain("server overloaded"),
    ErrorCode.LIMIT_REACHED: _plain("limit reached: {detail}"),
    ErrorCode.SHUTTING_DOWN: _plain("server is shutting down"),
    ErrorCode.INTERNAL: _plain("internal error"),
}
"""Every reason, in both forms."""

DOES_NOT_FIT = _plain("max frame size exceeded: record at offset {offset} does not fit")
"""RECORD_TOO_LARGE of a stored record, which names its offset."""

EMPTY_FRAME = Wording(
    1,
    "Frame error: invalid protocol: zero-length frame",
    "failed to parse request: zero-length frame",
)
"""MALFORMED of a frame without a payload, which names its length."""

PLACES = frozenset(
    {
        ErrorCode.UNKNOWN_NAMESPACE,
        ErrorCode.UNKNOWN_TOPIC,
        ErrorCode.UNKNOWN_PARTITION,
        ErrorCode.NO_PARTITIONS,
    }
)
"""The reasons that say: there is no such place."""

_BY_PLACE: dict[Command, Wording] = {
    Command.PRODUCE: _NO_PLACE,
    Command.FETCH: _NO_PLACE,
    Command.CREATE_TOPIC: _plain("{detail}: {topic}"),
    Command.DESCRIBE_TOPIC: Wording(0, "Topic '{topic}' not found", "topic not found: {topic}"),
    Command.DESCRIBE_PARTITION: Wording(
        0,
        "Partition {partition} not found in topic '{topic}'",
        "partition not found: topic={topic}, partition={partition}",
    ),
}
"""What a command says where there is no such place."""

_BY_COMMAND: dict[Command, tuple[int, str]] = {
    Command.PRODUCE: (500, "Failed to write record: "),
    Command.FETCH: (4, "Fetch failed: "),
    Command.OFFSET_COMMIT: (5, "Offset commit failed: "),
    Command.CREATE_TOPIC: (500, "CreateTopic failed: "),
    Command.DESCRIBE_TOPIC: (13, "DescribeTopic failed: "),
    Command.DESCRIBE_PARTITION: (14, "DescribePartition failed: "),
}
"""The code and opening words of a command whose failure has no code of its own."""


class _Blank(dict[str, object]):
    """Formatting fields; one that a failure lacks prints as a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


def told(tag: Tag, failure: Failure) -> tuple[int, str]:
    """The binary code and the text of a failure, in the form that the tag asks for."""
    code = failure.code
    if code in PLACES and tag.command in _BY_PLACE:
        wording = _BY_PLACE[tag.command]
    elif code is ErrorCode.RECORD_TOO_LARGE and "offset" in failure.facts:
        wording = DOES_NOT_FIT
    elif code is ErrorCode.MALFORMED and failure.facts.get("length") == 0:
        wording = EMPTY_FRAME
    else:
        wording = ERRORS[code]
    fields = _Blank(
        {"topic": tag.topic, "partition": tag.partition, "detail": failure.detail} | failure.facts
    )
    # A place is what the client wrote, whatever the failure calls it.
    fields["topic"], fields["partition"] = tag.topic, tag.partition
    if tag.json:
        return 0, wording.json.format_map(fields)
    number, opening = wording.code, ""
    if not number:
        number, opening = _BY_COMMAND.get(tag.command, (500, ""))
    return number, opening + wording.binary.format_map(fields)
