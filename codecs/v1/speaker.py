"""The client's half of a V1 connection: core's words in, lines out; reply lines in, core's words
out.

Lines are pipelined with correlation ids that count up; a server answers in order, so the oldest
unanswered id is the only one that may come, or 0 where the server could not read the line.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from dragoman.codecs.base import ProtocolError, Told, Unsayable
from dragoman.codecs.v1.hearing import heard_failure, heard_reply
from dragoman.codecs.v1.line import has_space
from dragoman.codecs.v1.translate import shown_generation
from dragoman.core.calls import (
    Acks,
    CommitOffset,
    Fetch,
    FetchOffset,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    OffsetKind,
    Produce,
    Produced,
    ProducedMany,
    ReportReplica,
    SetRole,
    SyncGroup,
    Whence,
)
from dragoman.core.error import Failure
from dragoman.core.name import flat_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Buffer
    from dragoman.core.calls import Key, Reply, Request

REPLY_LINE_BYTES_MAX = 256 * 1024 * 1024
"""A longer line is no reply: an escaped record of the largest size takes 96 MiB."""

_ACKS = {Acks.NONE: b"0", Acks.LEADER: b"1", Acks.ALL: b"all"}


class _Owed(NamedTuple):
    """A request whose replies have not all come."""

    request: Request
    first: int
    lines: int
    heard: list[Produced | Failure]


class V1Speaker:
    """One connection's V1, as a client."""

    def __init__(self) -> None:
        self._correlation = 0
        self._owed: deque[_Owed] = deque()
        self._pending: list[bytes] = []
        self._pending_bytes = 0

    # ------------------------------------------------------------ out

    def ask(self, request: Request) -> Sequence[Buffer]:
        """Renders a request: one line, or one for each record of a Produce."""
        arguments = _produce(request) if isinstance(request, Produce) else [_line(request)]
        first = self._correlation + 1
        self._correlation += len(arguments)
        self._owed.append(_Owed(request, first, len(arguments), []))
        numbered = enumerate(arguments, first)
        return [b"".join([b"V1|%d|%b\n" % pair for pair in numbered])]

    # ------------------------------------------------------------ in

    def receive(self, data: Buffer) -> list[Told]:
        """Takes what arrived and returns the replies of all requests that are answered."""
        data = bytes(data)
        cut = data.rfind(b"\n") + 1
        if cut == 0:
            self._pending.append(data)
            self._pending_bytes += len(data)
            if self._pending_bytes > REPLY_LINE_BYTES_MAX:
                raise ProtocolError("a reply line has no end")
            return []
        whole = b"".join([*self._pending, data[:cut]])
        self._pending = [data[cut:]]
        self._pending_bytes = len(data) - cut
        told = []
        for line in whole.split(b"\n")[:-1]:
            reply = self._reply(line.strip())
            if reply is not None:
                told.append(Told(reply))
        return told

    def _reply(self, line: bytes) -> Reply | Failure | None:
        """The reply that this line completes, if any."""
        if not self._owed:
            raise ProtocolError("a reply that nobody asked for")
        owed = self._owed[0]
        fields = line.split(b"|", 3)
        if len(fields) < 3 or fields[0] != b"V1" or fields[2] not in (b"OK", b"ERR"):
            raise ProtocolError("not a V1 reply line")
        text = fields[3] if len(fields) == 4 else b""
        is_error = fields[2] == b"ERR"
        if fields[1] != b"%d" % (owed.first + len(owed.heard)) and not (
            is_error and fields[1] == b"0"
        ):
            raise ProtocolError("a reply with the correlation id of another request")
        reply = heard_failure(text) if is_error else heard_reply(owed.request, text)
        if not isinstance(owed.request, Produce):
            self._owed.popleft()
            return reply
        assert isinstance(reply, Produced | Failure)
        owed.heard.append(reply)
        if len(owed.heard) < owed.lines:
            return None
        self._owed.popleft()
        return _gathered(owed.heard)


def _gathered(lines: list[Produced | Failure]) -> Reply | Failure:
    """One reply for the lines of one Produce: as few parts as tell where every record went."""
    parts: list[Produced | Failure] = []
    places: list[int] = []
    for line in lines:
        last = parts[-1] if parts else None
        if isinstance(last, Failure) and isinstance(line, Failure) and last.code is line.code:
            pass
        elif (
            isinstance(last, Produced)
            and isinstance(line, Produced)
            and line.partition == last.partition
            and line.base_offset == last.base_offset + last.count
        ):
            last.count += 1
            last.high_watermark = line.high_watermark
        else:
            parts.append(line)
        places.append(len(parts) - 1)
    return parts[0] if len(parts) == 1 else ProducedMany(parts, places)


def _token(word: bytes | str, what: str) -> bytes:
    """An argument, which is never empty and holds no white space."""
    try:
        data = word.encode() if isinstance(word, str) else word
    except UnicodeEncodeError:
        raise Unsayable(f"V1 writes a {what} as UTF-8") from None
    if not data or has_space(data):
        raise Unsayable(f"V1 has no words for a {what} that is empty or holds white space")
    return data


def _topic(namespace: Key, topic: Key) -> bytes:
    if isinstance(namespace, int) or isinstance(topic, int):
        raise Unsayable("V1 knows topics by name, not by number")
    return _token(flat_name(namespace, topic), "topic")


def _produce(request: Produce) -> list[bytes]:
    """What each record's line says after its correlation id."""
    batch = request.batch
    if isinstance(request.route, int):
        raise Unsayable("V1 leaves the choice of the partition to the server")
    if batch.headers is not None or batch.ids is not None or batch.producers:
        raise Unsayable("V1 has no words for headers, record ids and producers")
    topic = _topic(request.namespace, request.topic)
    lines = []
    for index, value in enumerate(batch.values):
        key = b"" if batch.keys is None else batch.keys[index] or b""
        if value is None:
            raise Unsayable("V1 has no words for an absent value")
        if b":" in key or (key and has_space(key)):
            raise Unsayable("V1 has no words for a key that holds a colon or white space")
        if value and has_space(value):
            raise Unsayable("V1 has no words for a value that holds white space")
        lines.append(b"PRODUCE|%b %b:%b acks=%b" % (topic, key, value, _ACKS[request.acks]))
    return lines


def _member(request: SyncGroup | Heartbeat | LeaveGroup | CommitOffset) -> bytes:
    if request.generation is None:
        raise Unsayable("V1 names the generation in every request of a member")
    return b"%b %b %b %d" % (
        _token(request.group, "group"),
        _topic(request.namespace, request.topic),
        _token(request.member, "member id"),
        shown_generation(request.generation),
    )


def _line(request: Request) -> bytes:
    """What the request's line says after its correlation id."""
    match request:
        case Fetch():
            return _consume(request)
        case JoinGroup():
            if request.bound or request.must_exist:
                raise Unsayable("V1 members live by heartbeats, and a group is made by joining it")
            assignor = request.assignor
            option = b"" if assignor is None else b" assignor=%b" % assignor.value.encode()
            topic = _topic(request.namespace, request.topic)
            group, member = _token(request.group, "group"), _token(request.member, "member id")
            return b"JOIN|%b %b %b%b" % (group, topic, member, option)
        case SyncGroup():
            return b"SYNC|" + _member(request)
        case Heartbeat():
            return b"HEARTBEAT|" + _member(request)
        case LeaveGroup():
            return b"LEAVE|" + _member(request)
        case CommitOffset():
            if len(request.offsets) != 1 or request.kind is not OffsetKind.GROUP:
                raise Unsayable("V1 commits one partition of a group at a time")
            return b"COMMIT|%b %d %d" % (_member(request), *request.offsets[0])
        case FetchOffset():
            if request.kind is not OffsetKind.GROUP:
                raise Unsayable("V1 keeps offsets of groups only")
            topic = _topic(request.namespace, request.topic)
            return b"OFFSET|%b %b %d" % (_token(request.group, "group"), topic, request.partition)
        case SetRole():
            topic = _topic(request.namespace, request.topic)
            role = request.role.value.encode()
            return b"SET_PARTITION_ROLE|%b %d %b" % (topic, request.partition, role)
        case ReportReplica():
            topic = _topic(request.namespace, request.topic)
            numbers = (request.partition, request.replica, request.offset)
            return b"REPLICA_FETCH|%b %d %d %d" % (topic, *numbers)
        case _:
            raise Unsayable(f"V1 has no words for {type(request).__name__}")


def _consume(request: Fetch) -> bytes:
    if request.whence is Whence.EARLIEST:
        offset = 0
    elif request.whence is Whence.OFFSET:
        offset = request.offset
    else:
        raise Unsayable("V1 reads from an offset or from the beginning")
    if request.auto_commit:
        raise Unsayable("V1 commits only when asked to")
    if request.partition < 0:
        raise Unsayable("a V1 CONSUME names its partition")
    topic = _topic(request.namespace, request.topic)
    return b"CONSUME|%b %d %d" % (topic, request.partition, offset)
