"""The codec of `dragoman.codecs.cursus.wire:BATCH_L3`, generated from it; not to be edited.

Written by `python -m dragoman.codecs.declared`, which documents every name here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from struct import Struct, error
from typing import TYPE_CHECKING, Any, NoReturn

from dragoman.codecs.columnar import (
    Ints,
    IntsIn,
    Vars,
    Writer,
    column_at,
    column_of,
    even_column,
    ints_at,
    ints_of,
    same,
    var_at,
    var_of,
)
from dragoman.codecs.malformed import Part, diagnose, walk
from dragoman.core.column import VarColumn

if TYPE_CHECKING:
    from dragoman.codecs.rendering import Rendering

_u0 = Struct(">2sH").unpack_from
_u1 = Struct(">iB").unpack_from
_u2 = Struct(">?QQI").unpack_from
_u3 = Struct(">QQH").unpack_from
_u4 = Struct(">H").unpack_from
_u5 = Struct(">qI").unpack_from
_u6 = Struct(">IQH").unpack_from
_p0 = Struct(">2sH").pack
_p1 = Struct(">iB").pack
_p2 = Struct(">?QQI").pack
_p3 = Struct(">QQH").pack
_p4 = Struct(">H").pack
_p5 = Struct(">qI").pack
_p6 = Struct(">IQH").pack
_HEAD = (
    Part("magic", size=2, constant=b"\xba|"),
    Part("topic", prefix=">H"),
    Part("partition", size=4),
    Part("acks", prefix=">B"),
    Part("idempotent", size=1),
    Part("seq_start", size=8),
    Part("seq_end", size=8),
    Part("count", size=4),
)
_RECORD = (
    Part("offset", size=8),
    Part("seq_num", size=8),
    Part("producer_id", prefix=">H"),
    Part("key", prefix=">H"),
    Part("epoch", size=8),
    Part("payload", prefix=">I"),
    Part("event_type", prefix=">H"),
    Part("schema_version", size=4),
    Part("aggregate_version", size=8),
    Part("metadata", prefix=">H"),
)


@dataclass(slots=True)
class Head:
    """The members before the records."""

    topic: bytes
    partition: int
    acks: bytes
    idempotent: bool
    seq_start: int
    seq_end: int
    count: int


@dataclass(slots=True)
class Columns:
    """The records by column."""

    count: int
    offset: Ints
    seq_num: Ints
    producer_id: Vars
    key: Vars
    epoch: Ints
    payload: VarColumn
    event_type: Vars
    schema_version: Ints
    aggregate_version: Ints
    metadata: Vars


def decode_head(data: bytes, at: int, end: int) -> tuple[Head, int]:
    """The head, and where the records begin."""
    try:
        v0, n1 = _u0(data, at)
        a1 = at + 4
        e1 = a1 + n1
        v1 = data[a1:e1]
        v2, n3 = _u1(data, e1)
        a3 = e1 + 5
        e3 = a3 + n3
        v3 = data[a3:e3]
        v4, v5, v6, v7 = _u2(data, e3)
    except error:
        _fail_head(data, at, end)
    stop = e3 + 21
    if v0 != b"\xba|":
        _fail_head(data, at, end)
    if stop > end:
        _fail_head(data, at, end)
    return Head(v1, v2, v3, v4, v5, v6, v7), stop


def _fail_head(data: bytes, at: int, end: int) -> NoReturn:
    walk(_HEAD, data, at, end)
    raise AssertionError("the fields read one by one are sound")


def decode(data: bytes, at: int, end: int) -> tuple[Head, Columns]:
    """A whole body, which ends at `end`."""
    head, at = decode_head(data, at, end)
    return head, decode_records(data, at, end, head.count)


def decode_records(data: bytes, at: int, end: int, count: int) -> Columns:
    """The records, which end at `end`."""
    if count <= 0:
        if count < 0 or at != end:
            diagnose(_RECORD, data, at, end, "messages", count, 48)
        return _EMPTY
    if count * 48 > end - at:
        diagnose(_RECORD, data, at, end, "messages", count, 48)
    try:
        v0, v1, n2 = _u3(data, at)
        a2 = at + 18
        e2 = a2 + n2
        (n3,) = _u4(data, e2)
        a3 = e2 + 2
        e3 = a3 + n3
        v4, n5 = _u5(data, e3)
        a5 = e3 + 12
        e5 = a5 + n5
        (n6,) = _u4(data, e5)
        a6 = e5 + 2
        e6 = a6 + n6
        v7, v8, n9 = _u6(data, e6)
        a9 = e6 + 14
        e9 = a9 + n9
    except error:
        diagnose(_RECORD, data, at, end, "messages", count, 48)
    stop = e9
    if count == 1:
        if stop != end:
            diagnose(_RECORD, data, at, end, "messages", count, 48)
        return Columns(
            1,
            v0,
            v1,
            data[a2:e2],
            data[a3:e3],
            v4,
            VarColumn.single(data[a5:e5]),
            data[a6:e6],
            v7,
            v8,
            data[a9:e9],
        )
    stride = stop - at
    if (
        stride * count == end - at
        and same(data, at + 16, end, stride, 2, count)
        and same(data, e2, end, stride, 2, count)
        and same(data, e3 + 8, end, stride, 4, count)
        and same(data, e5, end, stride, 2, count)
        and same(data, e6 + 12, end, stride, 2, count)
    ):
        return Columns(
            count,
            ints_at(data, at, end, stride, count, "Q", v0, True, True),
            ints_at(data, at + 8, end, stride, count, "Q", v1, True, True),
            var_at(data, at, a2, end, stride, count, n2),
            var_at(data, at, a3, end, stride, count, n3),
            ints_at(data, e3, end, stride, count, "q", v4, True, False),
            column_at(data, at, a5, end, stride, count, n5),
            var_at(data, at, a6, end, stride, count, n6),
            ints_at(data, e6, end, stride, count, "I", v7, True, False),
            ints_at(data, e6 + 4, end, stride, count, "Q", v8, True, False),
            var_at(data, at, a9, end, stride, count, n9),
        )
    return _mixed(data, at, end, count)


_EMPTY = Columns(0, 0, 0, b"", b"", 0, even_column(b"", 0, 0), b"", 0, 0, b"")


@lru_cache(256)
def _shape(n2: int, n6: int, n9: int) -> tuple[Any, ...]:
    """Structs for records whose repeated members have these lengths, and their sizes."""
    s0 = Struct(f">8sQ{2 + n2}sH")
    s1 = Struct(">8sI")
    return s0.unpack_from, s0.size, s1.unpack_from, s1.size, 16 + n6 + n9


def _mixed(data: bytes, at: int, end: int, count: int) -> Columns:
    begin = at
    l0: list[int] = []
    put0 = l0.append
    l1: list[int] = []
    put1 = l1.append
    l2: list[bytes] = []
    put2 = l2.append
    l3: list[bytes] = []
    put3 = l3.append
    l4: list[int] = []
    put4 = l4.append
    l5: list[bytes] = []
    put5 = l5.append
    l6: list[bytes] = []
    put6 = l6.append
    l7: list[int] = []
    put7 = l7.append
    l8: list[int] = []
    put8 = l8.append
    l9: list[bytes] = []
    put9 = l9.append
    guesses = 8
    lengths: tuple[int, ...] = ()
    try:
        while len(l1) < count:
            v0, v1, n2 = _u3(data, at)
            a2 = at + 18
            e2 = a2 + n2
            put2(data[a2:e2])
            (n3,) = _u4(data, e2)
            a3 = e2 + 2
            e3 = a3 + n3
            put3(data[a3:e3])
            v4, n5 = _u5(data, e3)
            a5 = e3 + 12
            e5 = a5 + n5
            put5(data[a5:e5])
            (n6,) = _u4(data, e5)
            a6 = e5 + 2
            e6 = a6 + n6
            put6(data[a6:e6])
            v7, v8, n9 = _u6(data, e6)
            a9 = e6 + 14
            e9 = a9 + n9
            put9(data[a9:e9])
            stop = e9
            put0(v0)
            put1(v1)
            put4(v4)
            put7(v7)
            put8(v8)
            found = (n2, n6, n9)
            if not guesses or stop > end or (found != lengths and len(l1) > 1):
                lengths = found
                at = stop
                continue
            lengths = found
            guesses -= 1
            k0 = data[at : at + 8]
            k2 = data[at + 16 : e2]
            k4 = data[e3 : e3 + 8]
            k6 = data[e5:e9]
            r0, z0, r1, z1, z2 = _shape(n2, n6, n9)
            known = len(l1)
            at = stop
            try:
                for _ in repeat(None, count - known):
                    q0, v1, q2, w3 = r0(data, at)
                    if q0 != k0 or q2 != k2:
                        break
                    a3 = at + z0
                    e3 = a3 + w3
                    q4, w5 = r1(data, e3)
                    if q4 != k4:
                        break
                    a5 = e3 + z1
                    e5 = a5 + w5
                    e9 = e5 + z2
                    if data[e5:e9] != k6:
                        break
                    put1(v1)
                    put3(data[a3:e3])
                    put5(data[a5:e5])
                    at = e9
            except error:
                guesses = 0  # near the end a guess may reach past it: read on straight
            more = len(l1) - known
            l0.extend(repeat(l0[-1], more))
            l2.extend(repeat(l2[-1], more))
            l4.extend(repeat(l4[-1], more))
            l6.extend(repeat(l6[-1], more))
            l7.extend(repeat(l7[-1], more))
            l8.extend(repeat(l8[-1], more))
            l9.extend(repeat(l9[-1], more))
            if more > 8 and guesses:
                guesses = 8
    except error:
        diagnose(_RECORD, data, begin, end, "messages", count, 48)
    if at != end:
        diagnose(_RECORD, data, begin, end, "messages", count, 48)
    return Columns(
        len(l1),
        ints_of("Q", l0, True),
        ints_of("Q", l1, True),
        var_of(l2),
        var_of(l3),
        ints_of("q", l4, False),
        column_of(l5),
        var_of(l6),
        ints_of("I", l7, False),
        ints_of("Q", l8, False),
        var_of(l9),
    )


def encode_head(
    topic: bytes,
    partition: int,
    acks: bytes,
    idempotent: bool,
    seq_start: int,
    seq_end: int,
    count: int,
) -> bytes:
    """The members before the records."""
    return b"".join(
        (
            _p0(b"\xba|", len(topic)),
            topic,
            _p1(partition, len(acks)),
            acks,
            _p2(idempotent, seq_start, seq_end, count),
        )
    )


def encode_one(
    *,
    offset: int,
    seq_num: int,
    producer_id: bytes,
    key: bytes,
    epoch: int,
    payload: bytes,
    event_type: bytes,
    schema_version: int,
    aggregate_version: int,
    metadata: bytes,
) -> bytes:
    """One record from plain values."""
    return b"".join(
        (
            _p3(offset, seq_num, len(producer_id)),
            producer_id,
            _p4(len(key)),
            key,
            _p5(epoch, len(payload)),
            payload,
            _p4(len(event_type)),
            event_type,
            _p6(schema_version, aggregate_version, len(metadata)),
            metadata,
        )
    )


def encode_records(
    count: int,
    *,
    offset: IntsIn,
    seq_num: IntsIn,
    producer_id: Vars,
    key: Vars,
    epoch: IntsIn,
    payload: Vars,
    event_type: Vars,
    schema_version: IntsIn,
    aggregate_version: IntsIn,
    metadata: Vars,
) -> Rendering:
    """`count` records from columns."""
    writer = Writer(count, ">")
    writer.ints("Q", offset)
    writer.ints("Q", seq_num)
    writer.var("H", producer_id)
    writer.var("H", key)
    writer.ints("q", epoch)
    writer.var("I", payload)
    writer.var("H", event_type)
    writer.ints("I", schema_version)
    writer.ints("Q", aggregate_version)
    writer.var("H", metadata)
    return writer.done()
