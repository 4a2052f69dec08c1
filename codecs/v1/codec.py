"""The server's half of a V1 connection: lines in, requests out; replies in, lines out.

Pipelined PRODUCE lines are the hot path: one regular expression cuts all complete lines of a chunk,
and neighbours that go to one topic with one ack mode become one request, answered line by line in
order. Everything else takes the straight path of one line, `line.open_envelope` and
`command.Commands`.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dragoman.codecs.base import (
    NOTHING,
    Asked,
    HungUp,
    Offload,
    Refused,
    Sent,
    foreign_framing,
    foreign_protocol,
)
from dragoman.codecs.v1.command import ACKS, Commands, Wrong, one_record
from dragoman.codecs.v1.line import open_envelope
from dragoman.codecs.v1.rendering import Renderer
from dragoman.codecs.v1.routing import key_hashes
from dragoman.codecs.v1.translate import NEVER_COMMITTED, error_text, number_list, payload
from dragoman.codecs.v1.wire import EXPECTED_FORMAT, LINE_TOO_LONG, UNSUPPORTED_COMMAND, Code
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import Fetched, GroupLeft, Produced, ProducedMany, ProduceMany
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Buffer, Facts, Heard
    from dragoman.core.calls import Acks, Reply

_LINES = re.compile(
    # A plain PRODUCE: nothing to trim, no lead byte of a white space beyond ASCII, the usual case
    # of letters. All classes end before what follows them, so the match never goes back.
    rb"V1\|([^\t-\r |\xc2\xe1-\xe3]+)\|PRODUCE\|([\w.\-/]+) ([^\t-\r :\xc2\xe1-\xe3]*):"
    rb"([^\t-\r \xc2\xe1-\xe3]*)(?: acks=(0|1|all))?\r?\n"
    # Any other line, as it is.
    rb"|([^\n]*)\n"
)
_OFFLOAD_BYTES = 256 * 1024
_LONG_LINE_BYTES = 16 * 1024
"""Lines that are this long on average are read in a thread: a key's hash costs 60 ns a byte."""
_LEADER = ACKS[b"1"]
_FOREIGN_BYTES = 4
_FORM = b"V1|%b|OK|partition=%d offset=%d hw=%d\n"

LOOPBACK = "loopback"
"""The option `replication` where it depends on who can reach the listener."""

Tag = tuple[str, Any]
"""A command's name with its correlation id, or with those of a run of PRODUCE lines; or "" with a
line that is the whole answer."""


class V1Codec:
    """One connection's V1."""

    def __init__(self, facts: Facts) -> None:
        options = facts.options
        limits = facts.limits
        self._line_bytes_max = limits.frame_bytes_max
        self._partitions: int = options["partitions"]
        self._marker: bool = options["escape_marker"]
        self._commands = Commands(
            partitions=self._partitions,
            reply_bytes_max=limits.reply_bytes_max,
            replication=facts.loopback
            if options["replication"] == LOOPBACK
            else options["replication"],
        )
        self._renderer = Renderer(
            facts.renderings,
            reply_bytes_max=limits.reply_bytes_max,
            spaces=options["escape_spaces"],
        )
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._fresh = True

    # ------------------------------------------------------------ in

    def receive(self, data: Buffer) -> list[Heard]:
        """Takes what arrived and returns the requests of all complete lines."""
        if not data:
            return self._end()
        if not isinstance(data, bytes):
            data = bytes(data)
        if self._fresh and (refused := self._foreign(data)):
            return [refused]
        cut = data.rfind(b"\n") + 1
        if cut == 0:
            self._pending.append(data)
            self._pending_bytes += len(data)
            return [_too_long()] if self._pending_bytes > self._line_bytes_max else []
        whole = data if cut == len(data) else data[:cut]
        if self._pending:
            self._pending.append(whole)
            whole = b"".join(self._pending)
        rest = data[cut:]
        self._pending = [rest] if rest else []
        self._pending_bytes = len(rest)
        return self._lines(whole)

    def wanted(self) -> int:
        """A line does not say how long it will be."""
        return 0

    def held(self) -> int:
        """Bytes of a line that is not whole yet."""
        return self._pending_bytes

    def _end(self) -> list[Heard]:
        line = b"".join(self._pending)
        heard: list[Heard] = self._lines(line + b"\n") if line else []
        last = heard[-1] if heard else None
        if isinstance(last, Offload):
            call = last.call
            return [Offload(lambda: [*call(), HungUp("end of stream")])]
        return [*heard, HungUp("end of stream")]

    def _foreign(self, data: bytes) -> Refused | None:
        """Looks once at the first bytes of the connection, before anything is collected."""
        first = b"".join(self._pending)[:_FOREIGN_BYTES] + data[:_FOREIGN_BYTES]
        if len(first) < _FOREIGN_BYTES and b"\n" not in data:
            return None
        self._fresh = False
        if first[:3] == b"V1|":
            return None
        name = foreign_protocol(first) or foreign_framing(first)
        if not name:
            return None
        failure = Failure(ErrorCode.WRONG_PROTOCOL, f"not V1 lines but {name}")
        return Refused(("", _error_line(b"0", Code.BAD_REQUEST, EXPECTED_FORMAT)), failure, True)

    def _lines(self, whole: bytes) -> list[Heard]:
        """The requests of whole lines, the last with its line feed."""
        fatal: list[Heard] = []
        if len(whole) + self._pending_bytes > self._line_bytes_max:
            whole, is_cut = self._up_to_limit(whole)
            if is_cut or self._pending_bytes > self._line_bytes_max:
                fatal = [_too_long()]
        if len(whole) > _LONG_LINE_BYTES and (
            len(whole) > _OFFLOAD_BYTES or len(whole) > _LONG_LINE_BYTES * whole.count(b"\n")
        ):
            return [Offload(lambda: self._hear(whole) + fatal)]
        return self._hear(whole) + fatal

    def _up_to_limit(self, whole: bytes) -> tuple[bytes, bool]:
        """The lines before the first that is too long, and whether there is one."""
        start = 0
        while start < len(whole):
            end = whole.index(b"\n", start)
            if end - start > self._line_bytes_max:
                return whole[:start], True
            start = end + 1
        return whole, False

    def _hear(self, whole: bytes) -> list[Heard]:
        rows = _LINES.findall(whole)
        if len(rows) == 1:
            cid, topic, key, value, acks, other = rows[0]
            if not cid:
                return [self._line(other)]
            mode = ACKS[acks] if acks else _LEADER
            return [
                Asked(
                    ("PRODUCE", cid),
                    self._commands.produce(topic, (key,), one_record(key, value), mode),
                )
            ]
        heard: list[Heard] = []
        for (topic, acks), run in groupby(rows, itemgetter(1, 4)):
            if topic:
                cids, _, keys, values, _, _ = zip(*run, strict=True)
                mode = ACKS[acks] if acks else _LEADER
                heard.append(self._run(topic, mode, cids, keys, values))
            else:
                heard += [self._line(row[5]) for row in run]
        return heard

    def _run(
        self,
        topic: bytes,
        acks: Acks,
        cids: Sequence[bytes],
        keys: Sequence[bytes],
        values: Sequence[bytes],
    ) -> Asked:
        """Neighbouring PRODUCE lines of one topic and ack mode, as one request."""
        hashes = key_hashes(keys)
        if hashes.count(hashes[0]) == len(hashes):
            batch = RecordBatch(
                len(values), VarColumn.of(values), origin=Origin.V1, keys=VarColumn.of(keys)
            )
            return Asked(("PRODUCE", cids), self._commands.produce(topic, keys, batch, acks))
        namespace, name = split_flat(topic.decode())
        return Asked(
            ("PRODUCE", cids),
            ProduceMany(name, values, keys, hashes, Origin.V1, namespace, acks, self._partitions),
        )

    def _line(self, line: bytes) -> Heard:
        opened = open_envelope(line)
        if isinstance(opened, str):
            return _refused(b"0", Code.BAD_REQUEST, opened, ErrorCode.MALFORMED)
        cid, command, arguments = opened
        try:
            asked = self._commands.request(command, arguments)
        except Wrong as wrong:
            return _refused(cid, Code.BAD_REQUEST, str(wrong), ErrorCode.MALFORMED)
        if asked is None:
            return _refused(
                cid, Code.UNKNOWN_COMMAND, UNSUPPORTED_COMMAND, ErrorCode.UNKNOWN_COMMAND
            )
        name, request = asked
        return Asked((name, cid), request)

    # ------------------------------------------------------------ out

    def send(self, tag: Tag, reply: Reply) -> Sent:
        """Renders a reply: one line, or one for each line of a run."""
        cid = tag[1]
        if isinstance(reply, Produced):
            if isinstance(cid, bytes):
                line = _FORM % (cid, reply.partition, reply.base_offset, reply.high_watermark - 1)
                return Sent((line,))
            return Sent((_run_lines(cid, reply),))
        if isinstance(reply, ProducedMany):
            return Sent((_dealt_lines(cid, reply),))
        if isinstance(reply, Fetched):
            return Sent(self._messages(cid, reply))
        if isinstance(reply, GroupLeft) and not reply.known:
            return self.send_failure(tag, Failure(ErrorCode.UNKNOWN_MEMBER))
        return Sent((b"V1|%b|OK|%b\n" % (cid, payload(reply).encode()),))

    def send_failure(self, tag: Tag, failure: Failure) -> Sent:
        """Renders a failure: one line, or one for each line of a run."""
        name, cid = tag
        if not name:
            return Sent((cid,))
        if name == "OFFSET" and failure.code in NEVER_COMMITTED:
            return Sent((b"V1|%b|OK|offset=0\n" % cid,))
        code, text = error_text(name, failure)
        cids = (cid,) if isinstance(cid, bytes) else cid
        return Sent((b"".join([_error_line(one, code, text) for one in cids]),))

    def send_idle(self, tag: Tag) -> Sent:
        """V1 never speaks unasked."""
        return NOTHING

    def _messages(self, cid: bytes, reply: Fetched) -> list[Buffer]:
        items, escaped = self._renderer.records(reply.slices)
        tail = f" hw={reply.high_watermark - 1}"
        if escaped and self._marker:
            tail += f" escaped={number_list(escaped)}"
        return [b"V1|%b|OK|messages=" % cid, *items, f"{tail}\n".encode()]


def _run_lines(cids: Sequence[bytes], reply: Produced) -> bytes:
    tail = b" hw=%d\n" % (reply.high_watermark - 1)
    middle = b"|OK|partition=%d offset=" % reply.partition
    offsets = range(reply.base_offset, reply.base_offset + len(cids))
    form = b"V1|%b" + middle + b"%d" + tail
    return b"".join([form % pair for pair in zip(cids, offsets, strict=True)])


def _dealt_lines(cids: Sequence[bytes], reply: ProducedMany) -> bytes:
    forms: list[bytes] = []
    offsets: list[int] = []
    failed = False
    for part in reply.parts:
        if isinstance(part, Failure):
            failed = True
            code, text = error_text("PRODUCE", part)
            forms.append(b"V1|%b|ERR|" + f"{code.value}|{text}\n".encode())
            offsets.append(-1)
        else:
            form = f"|OK|partition={part.partition} offset=%d hw={part.high_watermark - 1}\n"
            forms.append(b"V1|%b" + form.encode())
            offsets.append(part.base_offset)
    lines = []
    for cid, place in zip(cids, reply.places, strict=True):
        offset = offsets[place]
        if failed and offset < 0:
            lines.append(forms[place] % cid)
        else:
            offsets[place] = offset + 1
            lines.append(forms[place] % (cid, offset))
    return b"".join(lines)


def _error_line(cid: bytes, code: Code, text: str) -> bytes:
    return b"V1|%b|ERR|%b|%b\n" % (cid, code.value.encode(), text.encode())


def _refused(cid: bytes, code: Code, text: str, error: ErrorCode) -> Refused:
    return Refused(("", _error_line(cid, code, text)), Failure(error, text))


def _too_long() -> Refused:
    line = _error_line(b"0", Code.BAD_REQUEST, LINE_TOO_LONG)
    return Refused(("", line), Failure(ErrorCode.FRAME_TOO_LARGE, LINE_TOO_LONG), fatal=True)
