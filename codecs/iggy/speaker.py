"""The client's half of an Iggy connection: core's requests out, core's replies in.

What this generation has no words for is `Unsayable`: follows, groups by name, members that live by
heartbeats, long polls that wait, keys beside a chosen partition. A success that says nothing (a
send, a creation) is answered with what the request itself said; what nobody said is -1 or 0.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from zlib import crc32

from construct import ConstructError

from dragoman.codecs.base import ProtocolError, Told, Unsayable, foreign_answer
from dragoman.codecs.iggy import command as cmd
from dragoman.codecs.iggy import hearing, wire
from dragoman.codecs.iggy.error import REASONS
from dragoman.codecs.iggy.group import group_number
from dragoman.codecs.iggy.message import NO_ID
from dragoman.codecs.kernels import iggy_send
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dragoman.codecs.base import Buffer
    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import Key, Request

_HEAD = struct.Struct("<II")
_U32_MAX: Final = (1 << 32) - 1
_U64_MAX: Final = (1 << 64) - 1
REPLY_BYTES_MAX: Final = 256 * 1024 * 1024
"""Above this a server's length is taken for a broken one."""
NUMBER_FLOOR: Final = 1 << 30
"""Ids that the speaker chooses begin here, above those that servers give in turn."""


class IggySpeaker:
    """Asks and hears, in order."""

    def __init__(self) -> None:
        self._asked: deque[tuple[int, Request]] = deque()
        self._buffer = bytearray()

    def ask(self, request: Request) -> Sequence[Buffer]:
        """Renders a request."""
        if isinstance(request, calls.CreateNamespace) and not request.number:
            request = replace(request, number=chosen_number(request.name))
        elif isinstance(request, calls.CreateTopic) and not request.number:
            request = replace(request, number=chosen_number(request.topic))
        try:
            code, body = _body(request)
        except (ConstructError, OverflowError, struct.error):
            raise Unsayable("a number of the request is out of the wire's range") from None
        size = sum(map(len, body))
        if size > cmd.FRAME_BYTES_MAX - 4:
            raise Unsayable(f"a request of {size} bytes; {cmd.FRAME_BYTES_MAX - 4} fit a frame")
        self._asked.append((code, request))
        return [_HEAD.pack(size + 4, code), *body]

    def receive(self, data: Buffer) -> list[Told]:
        """Takes what arrived and returns every complete reply."""
        buffer = self._buffer
        buffer += data
        told = []
        at = 0
        while len(buffer) - at >= 8:
            status, length = _HEAD.unpack_from(buffer, at)
            if length > REPLY_BYTES_MAX:
                shown = foreign_answer(bytes(buffer[at : at + 4]))
                raise ProtocolError(f"a reply of {length} bytes{shown}")
            end = at + 8 + length
            if len(buffer) < end:
                break
            if not self._asked:
                raise ProtocolError("a reply to nothing that was asked")
            code, request = self._asked.popleft()
            told.append(Told(_reply(status, code, request, bytes(buffer[at + 8 : end]))))
            at = end
        del buffer[:at]
        return told


# ---------------------------------------------------------------- asking


def _body(request: Request) -> tuple[int, list[Buffer]]:
    """A request's command code and body."""
    match request:
        case calls.Produce():
            return cmd.SEND_MESSAGES, _send(request)
        case calls.Fetch():
            return cmd.POLL_MESSAGES, [_poll(request)]
        case calls.Ping():
            return cmd.PING, []
        case calls.CommitOffset():
            return cmd.STORE_CONSUMER_OFFSET, [_store(request)]
        case calls.FetchOffset():
            return cmd.GET_CONSUMER_OFFSET, [wire.GET_OFFSET.build(_reader(request))]
        case calls.ListNamespaces():
            return cmd.GET_STREAMS, []
        case calls.DescribeNamespace():
            return cmd.GET_STREAM, [_stream(request.namespace)]
        case calls.DeleteNamespace():
            return cmd.DELETE_STREAM, [_stream(request.namespace)]
        case calls.CreateNamespace():
            body = {"number": request.number, "name": _name(request.name)}
            return cmd.CREATE_STREAM, [wire.CREATE_STREAM.build(body)]
        case calls.RenameNamespace():
            body = {"stream": _identifier(request.namespace), "name": _name(request.name)}
            return cmd.UPDATE_STREAM, [wire.UPDATE_STREAM.build(body)]
        case calls.ListTopics():
            if request.namespace is None:
                raise Unsayable("Iggy lists the topics of one stream at a time")
            return cmd.GET_TOPICS, [_stream(request.namespace)]
        case calls.DescribeTopic():
            return cmd.GET_TOPIC, [wire.TOPIC_BODY.build(_place(request.namespace, request.topic))]
        case calls.DeleteTopic():
            place = _place(request.namespace, request.topic)
            return cmd.DELETE_TOPIC, [wire.TOPIC_BODY.build(place)]
        case calls.CreateTopic():
            return cmd.CREATE_TOPIC, [_create_topic(request)]
        case calls.UpdateTopic():
            return cmd.UPDATE_TOPIC, [_update_topic(request)]
        case calls.AddPartitions() | calls.RemovePartitions():
            add = type(request) is calls.AddPartitions
            asked = _place(request.namespace, request.topic) | {"count": request.count}
            code = cmd.CREATE_PARTITIONS if add else cmd.DELETE_PARTITIONS
            return code, [wire.PARTITIONS_BODY.build(asked)]
        case calls.ListGroups():
            if request.topic is None:
                raise Unsayable("Iggy lists the groups of one topic at a time")
            return cmd.GET_GROUPS, [wire.TOPIC_BODY.build(_place(request.namespace, request.topic))]
        case calls.CreateGroup():
            number = group_number(request.group, request.number)
            return cmd.CREATE_GROUP, [_group(request.namespace, request.topic, number)]
        case calls.JoinGroup():
            return cmd.JOIN_GROUP, [_join(request)]
        case calls.LeaveGroup() | calls.DeleteGroup() | calls.DescribeGroup():
            number = group_number(request.group, request.group_number)
            code = _GROUP_COMMANDS[type(request)]
            return code, [_group(request.namespace, request.topic, number)]
    raise Unsayable(f"Iggy has no word for {type(request).__name__}")


def chosen_number(name: str) -> int:
    """The id of a stream or topic where the caller names none: servers here give none.

    The same name gives the same id; where another thing already has it, the server says so.
    """
    return NUMBER_FLOOR + crc32(name.encode()) % NUMBER_FLOOR


def _identifier(key: Key) -> dict[str, Any]:
    if isinstance(key, int):
        if not 0 <= key <= _U32_MAX:
            raise Unsayable(f"an id of {key}")
        return {"kind": cmd.NUMERIC, "value": key.to_bytes(4, "little")}
    return {"kind": cmd.NAMED, "value": _name(key)}


def _name(name: str) -> bytes:
    raw = name.encode()
    if not 0 < len(raw) <= cmd.FIELD_BYTES_MAX:
        raise Unsayable(f"a name of {len(raw)} bytes; 1-{cmd.FIELD_BYTES_MAX} can be said")
    return raw


def _stream(namespace: Key) -> bytes:
    return bytes(wire.STREAM_BODY.build({"stream": _identifier(namespace)}))


def _place(namespace: Key, topic: Key) -> dict[str, Any]:
    return {"stream": _identifier(namespace), "topic": _identifier(topic)}


_GROUP_COMMANDS: Final[dict[type, int]] = {
    calls.LeaveGroup: cmd.LEAVE_GROUP,
    calls.DeleteGroup: cmd.DELETE_GROUP,
    calls.DescribeGroup: cmd.GET_GROUP,
}


def _group(namespace: Key, topic: Key, number: int) -> bytes:
    return bytes(wire.GROUP_BODY.build(_place(namespace, topic) | {"group": number}))


def _join(request: calls.JoinGroup) -> bytes:
    number = group_number(request.group, request.group_number)
    if not request.bound or not request.must_exist:
        raise Unsayable("an Iggy member is a connection, and joins a group that is there")
    if request.assignor is not None:
        raise Unsayable("an Iggy server deals out partitions as it likes")
    return _group(request.namespace, request.topic, number)


def _reader(request: calls.Fetch | calls.CommitOffset | calls.FetchOffset) -> dict[str, Any]:
    """Who reads, and where: a group only what its member is at, a consumer what it names."""
    named = request.group or request.group_number
    number = group_number(request.group, request.group_number) if named else 0
    if isinstance(request, calls.CommitOffset):
        ((partition, _),) = request.offsets
    else:
        partition = request.partition
    is_group = bool(named) and request.kind is calls.OffsetKind.GROUP
    if is_group is not (partition == calls.ASSIGNED):
        raise Unsayable("a group of Iggy is where its member is; a consumer names its partition")
    who = {"kind": cmd.GROUP if is_group else cmd.CONSUMER, "id": number}
    place = _place(request.namespace, request.topic)
    return place | {"consumer": who, "partition": partition + 1}


def _create_topic(request: calls.CreateTopic) -> bytes:
    if request.if_exists is not calls.IfExists.REFUSE:
        raise Unsayable("Iggy refuses to create a topic that is there")
    config = request.config
    if config != calls.TopicConfig(retention_ms=config.retention_ms):
        raise Unsayable("a topic of this generation has no setting but its expiry")
    return bytes(
        wire.CREATE_TOPIC.build(
            {
                "stream": _identifier(request.namespace),
                "number": request.number,
                "partitions": request.partitions,
                "expiry_s": _expiry(config.retention_ms),
                "name": _name(request.topic),
            }
        )
    )


def _expiry(retention_ms: int) -> int:
    seconds, rest = divmod(retention_ms, 1000)
    if rest or seconds > _U32_MAX:
        raise Unsayable("Iggy keeps records for whole seconds, at most 2^32 of them")
    return seconds


def _update_topic(request: calls.UpdateTopic) -> bytes:
    if request.name is None or request.retention_ms is None or request.config is not None:
        raise Unsayable("Iggy updates name and retention_ms of a topic together, and nothing else")
    place = _place(request.namespace, request.topic)
    asked = place | {"expiry_s": _expiry(request.retention_ms), "name": _name(request.name)}
    return bytes(wire.UPDATE_TOPIC.build(asked))


def _send(request: calls.Produce) -> list[Buffer]:
    batch = request.batch
    if request.create_partitions:
        raise Unsayable("Iggy sends only to topics that are there")
    partitioning = _partitioning(request.route, batch)
    _check_values(batch)
    head = wire.SEND_HEAD.build(
        _place(request.namespace, request.topic) | {"partitioning": partitioning}
    )
    messages = iggy_send.encode_records(
        batch.count,
        id=NO_ID if batch.ids is None else memoryview(batch.ids),
        headers=b"" if batch.headers is None else batch.headers,
        payload=batch.values,
    )
    return [head, messages.data]


def _partitioning(route: calls.Route | object, batch: RecordBatch) -> dict[str, Any]:
    key = None
    if batch.keys is not None:
        keys = set(batch.keys)
        key = keys.pop()
        if keys or not key or len(key) > cmd.FIELD_BYTES_MAX:
            raise Unsayable("one send has one messages key, of 1-255 bytes")
    if isinstance(route, int):
        if key is not None:
            raise Unsayable("Iggy sends by a key or to a partition, not both")
        value = (route + 1).to_bytes(4, "little")
        return {"kind": cmd.PARTITION_ID, "value": value}
    if key is not None:
        return {"kind": cmd.MESSAGES_KEY, "value": key}
    if route == calls.ROUND_ROBIN:
        return {"kind": cmd.BALANCED, "value": b""}
    raise Unsayable("an Iggy server hashes keys itself")


def _check_values(batch: RecordBatch) -> None:
    values = batch.values
    if values.validity is not None or len(set(values.offsets)) <= batch.count:
        raise Unsayable("Iggy has no message without bytes")
    if len(values.blob) > cmd.PAYLOAD_BYTES_MAX:
        raise Unsayable(f"one send brings at most {cmd.PAYLOAD_BYTES_MAX} payload bytes")


_STRATEGIES: Final = {
    calls.Whence.OFFSET: cmd.OFFSET,
    calls.Whence.TIMESTAMP: cmd.TIMESTAMP,
    calls.Whence.EARLIEST: cmd.FIRST,
    calls.Whence.LATEST: cmd.OFFSET,
    calls.Whence.LAST: cmd.LAST,
    calls.Whence.COMMITTED: cmd.NEXT,
}


def _poll(request: calls.Fetch) -> bytes:
    strategy = _STRATEGIES.get(request.whence)
    if strategy is None or (strategy == cmd.NEXT and request.offset):
        raise Unsayable(f"Iggy cannot poll from {request.whence.name} {request.offset}")
    if request.create_partitions:
        raise Unsayable("Iggy polls only topics that are there")
    asked = _reader(request)
    count = min(request.records_max, _U32_MAX)
    value = request.offset
    if strategy == cmd.LAST:
        count = min(count, value)
    elif request.whence is calls.Whence.LATEST:
        value = _U64_MAX
    return bytes(
        wire.POLL_MESSAGES.build(
            asked
            | {
                "strategy": {"kind": strategy, "value": value},
                "count": count,
                "auto_commit": request.auto_commit,
            }
        )
    )


def _store(request: calls.CommitOffset) -> bytes:
    if len(request.offsets) != 1 or request.member:
        raise Unsayable("Iggy stores the offset of one partition, and never for a member")
    ((_, offset),) = request.offsets
    if offset < 1:
        raise Unsayable("Iggy stores the last offset processed, so 0 as next cannot be said")
    return bytes(wire.STORE_OFFSET.build(_reader(request) | {"offset": offset - 1}))


# ---------------------------------------------------------------- hearing


def _reply(status: int, code: int, request: Request, body: bytes) -> calls.Reply | Failure:
    if status:
        reason = REASONS.get(status, ErrorCode.INTERNAL)
        return Failure(reason, f"Iggy error {status}", {"number": status})
    return hearing.heard(code, request, body)
