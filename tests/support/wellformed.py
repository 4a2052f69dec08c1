"""Whether bytes are replies of a dialect: an outsider's reading, as strict as its protocol.md."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from construct import ConstructError

from dragoman.codecs.cursus import wire as cursus_wire
from dragoman.codecs.rustlog import wire as rustlog_wire

if TYPE_CHECKING:
    from collections.abc import Callable

_TEXT = re.compile(r"(OK|ERROR: |REBALANCE_REQUIRED|-?\d+$)")
_ACK = ("status", "last_offset", "producer_epoch", "producer_id", "seq_start", "seq_end")
_EVENTS = ("status", "topic", "key", "partition", "count")
_GROUP = ("group_name", "topic_name", "state", "generation", "member_count", "partition_count")
_OBJECTS = {
    frozenset((*_ACK, "leader", "error")),
    frozenset(("error", "status")),
    frozenset(_EVENTS),
    frozenset((*_EVENTS, "snapshot")),
    frozenset(("status", *_GROUP, "members", "last_rebalance")),
    frozenset(("status", "topic", "partitions", "policy")),
}
"""The members of every JSON object that a Cursus server answers."""
_LINE = re.compile(rb"V1\|[^|\n]+\|(OK\|[^\n]*|ERR\|[A-Z_]+\|[ -~]+)")
_IGGY_BODY_BYTES_MAX = 64 * 1024 * 1024


def cursus_replies(data: bytes) -> int:
    """Counts the answers of a Cursus server that keeps its connection open."""
    count = 0
    for body in _framed(data, cursus_wire.FRAME_BYTES_MAX):
        count += 1
        if body[:2] == cursus_wire.MAGIC:
            # A document's batch says its partition as text, which L3 would read as a number.
            parsed = None
            for name in ("l3", "document"):
                try:
                    parsed = cursus_wire.LAYOUTS[name].parse(body)
                except ConstructError:
                    continue
                if cursus_wire.LAYOUTS[name].build(parsed) == body:
                    break
            assert parsed is not None, f"not a batch: {body[:80]!r}"
        elif body[:1] == b"{":
            members = frozenset(json.loads(body))
            assert members in _OBJECTS, body[:80]
            count -= "key" in members  # the head of a stream, whose events are the next frame
        else:
            text = body.decode()
            assert _TEXT.match(text), text[:80]
            assert "\n" not in text, text[:80]
    return count


def v1_replies(data: bytes) -> int:
    """Counts the lines of a V1 server."""
    if not data:
        return 0
    assert data.endswith(b"\n"), f"a cut line: {data[-80:]!r}"
    lines = data[:-1].split(b"\n")
    for line in lines:
        assert _LINE.fullmatch(line), f"not a reply line: {line[:120]!r}"
    return len(lines)


def iggy_replies(data: bytes) -> int:
    """Counts the responses of an Iggy server."""
    count = at = 0
    while at < len(data):
        assert at + 8 <= len(data), "a cut response"
        status = int.from_bytes(data[at : at + 4], "little")
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        assert status < 100_000, f"status {status}"
        assert not (status and length), f"an error {status} with a body"
        assert length <= _IGGY_BODY_BYTES_MAX
        at += 8 + length
        count += 1
    assert at == len(data), "a response is shorter than it says"
    return count


def rustlog_replies(data: bytes) -> int:
    """Counts the frames of a RustLog server, in either form."""
    count = 0
    for body in _framed(data, rustlog_wire.FRAME_BYTES_MAX):
        count += 1
        if body[:1] in (b"{", b'"'):
            reply = json.loads(body)
            assert reply == "Pong" or (isinstance(reply, dict) and len(reply) == 1), body[:80]
        else:
            declared = rustlog_wire.REPLIES[rustlog_wire.Command(body[0])]
            assert declared.build(declared.parse(body)) == body, body[:80]
    return count


def _framed(data: bytes, limit: int) -> list[bytes]:
    bodies = []
    at = 0
    while at < len(data):
        assert at + 4 <= len(data), "a cut length"
        length = int.from_bytes(data[at : at + 4], "big")
        assert 0 < length <= limit, f"a frame of {length} bytes"
        assert at + 4 + length <= len(data), "a frame is shorter than it says"
        bodies.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return bodies


REPLIES: dict[str, Callable[[bytes], int]] = {
    "cursus": cursus_replies,
    "v1": v1_replies,
    "iggy": iggy_replies,
    "rustlog": rustlog_replies,
}
"""By dialect: asserts that bytes are whole replies and counts them."""
