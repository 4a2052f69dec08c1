"""The codec of `dragoman.codecs.iggy.wire:SEND_MESSAGES`, generated from it; not to be edited.

Written by `python -m dragoman.codecs.declared`, which documents every name here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from struct import Struct, error
from typing import TYPE_CHECKING, Any, NoReturn

from dragoman.codecs.columnar import (
    Vars,
    Writer,
    column_at,
    column_of,
    even_column,
    raw_at,
    same,
    var_at,
    var_of,
)
from dragoman.codecs.malformed import Part, diagnose, walk
from dragoman.core.column import VarColumn

if TYPE_CHECKING:
    from dragoman.codecs.rendering import Rendering

_u0 = Struct("<BB").unpack_from
_u1 = Struct("<16sI").unpack_from
_u2 = Struct("<I").unpack_from
_p0 = Struct("<BB").pack
_p1 = Struct("<16sI").pack
_p2 = Struct("<I").pack
_HEAD = (
    Part("stream.kind", size=1),
    Part("stream.value", prefix="<B"),
    Part("topic.kind", size=1),
    Part("topic.value", prefix="<B"),
    Part("partitioning.kind", size=1),
    Part("partitioning.value", prefix="<B"),
)
_RECORD = (
    Part("id", size=16),
    Part("headers", prefix="<I"),
    Part("payload", prefix="<I"),
)


@dataclass(slots=True)
class Head:
    """The members before the records."""

    stream_kind: int
    stream_value: bytes
    topic_kind: int
    topic_value: bytes
    partitioning_kind: int
    partitioning_value: bytes


@dataclass(slots=True)
class Columns:
    """The records by column."""

    count: int
    id: bytes
    headers: Vars
    payload: VarColumn


def decode_head(data: bytes, at: int, end: int) -> tuple[Head, int]:
    """The head, and where the records begin."""
    try:
        v0, n1 = _u0(data, at)
        a1 = at + 2
        e1 = a1 + n1
        v1 = data[a1:e1]
        v2, n3 = _u0(data, e1)
        a3 = e1 + 2
        e3 = a3 + n3
        v3 = data[a3:e3]
        v4, n5 = _u0(data, e3)
        a5 = e3 + 2
        e5 = a5 + n5
        v5 = data[a5:e5]
    except error:
        _fail_head(data, at, end)
    stop = e5
    if stop > end:
        _fail_head(data, at, end)
    return Head(v0, v1, v2, v3, v4, v5), stop


def _fail_head(data: bytes, at: int, end: int) -> NoReturn:
    walk(_HEAD, data, at, end)
    raise AssertionError("the fields read one by one are sound")


def decode(data: bytes, at: int, end: int) -> tuple[Head, Columns]:
    """A whole body, which ends at `end`."""
    head, at = decode_head(data, at, end)
    return head, decode_records(data, at, end)


def decode_records(data: bytes, at: int, end: int) -> Columns:
    """The records, which end at `end`."""
    if at >= end:
        if at > end:
            diagnose(_RECORD, data, at, end, "messages", None, 24)
        return _EMPTY
    try:
        v0, n1 = _u1(data, at)
        a1 = at + 20
        e1 = a1 + n1
        (n2,) = _u2(data, e1)
        a2 = e1 + 4
        e2 = a2 + n2
    except error:
        diagnose(_RECORD, data, at, end, "messages", None, 24)
    stop = e2
    if stop == end:
        return Columns(1, v0, data[a1:e1], VarColumn.single(data[a2:e2]))
    stride = stop - at
    count, rest = divmod(end - at, stride)
    if (
        not rest
        and same(data, at + 16, end, stride, 4, count)
        and same(data, e1, end, stride, 4, count)
    ):
        return Columns(
            count,
            raw_at(data, at, end, stride, count, 16),
            var_at(data, at, a1, end, stride, count, n1),
            column_at(data, at, a2, end, stride, count, n2),
        )
    return _mixed(data, at, end)


_EMPTY = Columns(0, b"", b"", even_column(b"", 0, 0))


@lru_cache(256)
def _shape(n1: int) -> tuple[Any, ...]:
    """Structs for records whose repeated members have these lengths, and their sizes."""
    s0 = Struct(f"<16sI{n1}sI")
    return s0.unpack_from, s0.size


def _mixed(data: bytes, at: int, end: int) -> Columns:
    begin = at
    l0: list[bytes] = []
    put0 = l0.append
    l1: list[bytes] = []
    put1 = l1.append
    l2: list[bytes] = []
    put2 = l2.append
    guesses = 8
    lengths: tuple[int, ...] = ()
    try:
        while at < end:
            v0, n1 = _u1(data, at)
            a1 = at + 20
            e1 = a1 + n1
            put1(data[a1:e1])
            (n2,) = _u2(data, e1)
            a2 = e1 + 4
            e2 = a2 + n2
            put2(data[a2:e2])
            stop = e2
            put0(v0)
            found = (n1,)
            if not guesses or stop > end or (found != lengths and len(l0) > 1):
                lengths = found
                at = stop
                continue
            lengths = found
            guesses -= 1
            r0, z0 = _shape(n1)
            known = len(l0)
            at = stop
            try:
                while at < end:
                    v0, m1, v1, w2 = r0(data, at)
                    if m1 != n1:
                        break
                    a2 = at + z0
                    e2 = a2 + w2
                    put0(v0)
                    put1(v1)
                    put2(data[a2:e2])
                    at = e2
            except error:
                guesses = 0  # near the end a guess may reach past it: read on straight
            more = len(l0) - known
            if more > 8 and guesses:
                guesses = 8
    except error:
        diagnose(_RECORD, data, begin, end, "messages", None, 24)
    if at != end:
        diagnose(_RECORD, data, begin, end, "messages", None, 24)
    return Columns(
        len(l0),
        b"".join(l0),
        var_of(l1),
        column_of(l2),
    )


def encode_head(
    stream_kind: int,
    stream_value: bytes,
    topic_kind: int,
    topic_value: bytes,
    partitioning_kind: int,
    partitioning_value: bytes,
) -> bytes:
    """The members before the records."""
    return b"".join(
        (
            _p0(stream_kind, len(stream_value)),
            stream_value,
            _p0(topic_kind, len(topic_value)),
            topic_value,
            _p0(partitioning_kind, len(partitioning_value)),
            partitioning_value,
        )
    )


def encode_one(*, id: bytes, headers: bytes, payload: bytes) -> bytes:
    """One record from plain values."""
    return b"".join((_p1(id, len(headers)), headers, _p2(len(payload)), payload))


def encode_records(
    count: int,
    *,
    id: bytes | memoryview,
    headers: Vars,
    payload: Vars,
) -> Rendering:
    """`count` records from columns."""
    writer = Writer(count, "<")
    writer.raw(16, id)
    writer.var("I", headers)
    writer.var("I", payload)
    return writer.done()
