"""Reply lines in, core's replies out: what a client makes of what a V1 server said.

Fields are looked up by name and unknown ones are left alone, since payloads may grow.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.v1.escape import unescape
from dragoman.codecs.v1.translate import ERRORS, core_generation
from dragoman.codecs.v1.wire import INTEGER_MAX, INTEGER_MIN
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    BatchSlice,
    CommitOffset,
    Fetch,
    Fetched,
    FetchOffset,
    GroupJoined,
    GroupLeft,
    Heartbeat,
    HeartbeatAccepted,
    JoinGroup,
    LeaveGroup,
    OffsetCommitted,
    OffsetFetched,
    Produce,
    Produced,
    ReplicaReported,
    ReportReplica,
    Role,
    RoleSet,
    SetRole,
    SyncGroup,
    Whence,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from dragoman.core.calls import Reply, Request

_FIELD = re.compile(rb"(?:^| )(\w+)=(\[[^\]]*\]|\S*)")
_INTEGER = re.compile(rb"-?[0-9]{1,19}")
_INT32_MAX = (1 << 31) - 1
_ROLES = {role.value.encode(): role for role in Role}

_CODES: dict[tuple[str, str], ErrorCode] = {}
for _code, (_name, _text) in ERRORS.items():
    _CODES.setdefault((_name.value, _text), _code)
_CODES_BY_NAME = {
    "UNKNOWN_COMMAND": ErrorCode.UNKNOWN_COMMAND,
    "REPLICATION_TIMEOUT": ErrorCode.REPLICATION_TIMEOUT,
    "NOT_LEADER": ErrorCode.NOT_LEADER,
    "GENERATION_MISMATCH": ErrorCode.STALE_GENERATION,
    "SERVER_ERROR": ErrorCode.INTERNAL,
}


def heard_failure(text: bytes) -> Failure:
    """The failure that `<code>|<message>` tells of."""
    name, _, message = text.decode("utf-8", "replace").partition("|")
    code = _CODES.get((name, message)) or _CODES_BY_NAME.get(name, ErrorCode.MALFORMED)
    return Failure(code, message)


def heard_reply(request: Request, text: bytes) -> Reply:
    """The reply to `request` that a payload tells of.

    Raises:
        ProtocolError: It is not the payload of such a reply.
    """
    if isinstance(request, Fetch):
        return _fetched(request, text)
    fields = dict(_FIELD.findall(text))
    match request:
        case Produce():
            return Produced(
                _number(fields, b"partition"),
                _number(fields, b"offset"),
                1,
                _number(fields, b"hw") + 1 if b"hw" in fields else 0,
            )
        case JoinGroup() | SyncGroup():
            generation = core_generation(_number(fields, b"generation"))
            partitions = tuple(_numbers(fields.get(b"assigned", b"")))
            return GroupJoined(request.member, generation, partitions)
        case Heartbeat():
            _expect(fields, b"heartbeat", b"ok")
            return HeartbeatAccepted(request.member, request.generation or 0)
        case LeaveGroup():
            _expect(fields, b"left", b"true")
            return GroupLeft(request.member, True)
        case CommitOffset():
            _expect(fields, b"committed", b"true")
            return OffsetCommitted(len(request.offsets))
        case FetchOffset():
            return OffsetFetched(request.partition, _number(fields, b"offset"), 0)
        case SetRole():
            role = _ROLES.get(fields.get(b"role", b""))
            if role is None:
                raise ProtocolError("a reply without a role")
            watermark = _number(fields, b"hw") + 1
            return RoleSet(
                str(request.namespace), str(request.topic), request.partition, role, watermark
            )
        case ReportReplica():
            return ReplicaReported(
                request.partition,
                _number(fields, b"replica"),
                _number(fields, b"acked_offset"),
                _number(fields, b"hw") + 1,
                tuple(_numbers(fields.get(b"isr", b""))),
                fields.get(b"under_replicated") == b"true",
            )
        case _:
            raise ProtocolError(f"V1 has no reply to {type(request).__name__}")


def _fetched(request: Fetch, text: bytes) -> Fetched:
    """Takes `messages=<offset:value,...> hw=<n> [escaped=[...]]` apart."""
    head, found, rest = text.partition(b"messages=")
    body, found_end, tail = rest.partition(b" hw=")
    if head or not found or not found_end:
        raise ProtocolError("not the reply of a CONSUME")
    fields = dict(_FIELD.findall(b"hw=" + tail))
    high_watermark = _number(fields, b"hw") + 1
    escaped = set(_numbers(fields.get(b"escaped", b"[]")))
    offsets: list[int] = []
    values: list[bytes] = []
    for item in body.split(b",") if body else []:
        offset, colon, value = item.partition(b":")
        if not colon or not _INTEGER.fullmatch(offset):
            raise ProtocolError("an item of a CONSUME reply has no offset")
        number = int(offset)
        if offsets and number <= offsets[-1]:
            raise ProtocolError("the offsets of a CONSUME reply do not rise")
        offsets.append(number)
        values.append(unescape(value) if number in escaped else value)
    start = request.offset if request.whence is Whence.OFFSET else 0
    del offsets[request.records_max :], values[request.records_max :]
    slices = []
    if offsets:
        slices.append(BatchSlice(_batch(offsets, values), 0, len(offsets)))
    return Fetched(
        namespace=str(request.namespace),
        topic=str(request.topic),
        partition=request.partition,
        slices=slices,
        start_offset=start,
        next_offset=offsets[-1] + 1 if offsets else start,
        high_watermark=high_watermark,
        log_start_offset=0,
    )


def _batch(offsets: list[int], values: list[bytes]) -> RecordBatch:
    batch = RecordBatch(len(values), VarColumn.of(values), origin=Origin.V1)
    base, span = offsets[0], offsets[-1] - offsets[0]
    if span > _INT32_MAX:
        raise ProtocolError("the offsets of a CONSUME reply lie too far apart")
    batch.base_offset = base
    batch.last_offset_delta = span
    if span != len(offsets) - 1:
        batch.offset_deltas = array("I", [offset - base for offset in offsets])
    return batch


def _expect(fields: dict[bytes, bytes], name: bytes, value: bytes) -> None:
    if fields.get(name) != value:
        raise ProtocolError(f"a reply without {name.decode()}={value.decode()}")


def _number(fields: dict[bytes, bytes], name: bytes) -> int:
    text = fields.get(name, b"")
    if not _INTEGER.fullmatch(text) or not INTEGER_MIN <= int(text) <= INTEGER_MAX:
        raise ProtocolError(f"a reply without a number {name.decode()}=")
    return int(text)


def _numbers(text: bytes) -> list[int]:
    if text[:1] != b"[" or text[-1:] != b"]":
        raise ProtocolError("a reply without a list in brackets")
    words = text[1:-1].split()
    if not all(_INTEGER.fullmatch(word) for word in words):
        raise ProtocolError("a list of a reply holds something else than numbers")
    return [int(word) for word in words]
