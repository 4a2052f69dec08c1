"""The codec of `dragoman.codecs.iggy.wire:POLLED_MESSAGES`, generated from it; not to be edited.

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
    raw_at,
    same,
    var_at,
    var_of,
)
from dragoman.codecs.malformed import Part, diagnose, walk
from dragoman.core.column import VarColumn

if TYPE_CHECKING:
    from dragoman.codecs.rendering import Rendering

_u0 = Struct("<IQI").unpack_from
_u1 = Struct("<QBQ16sII").unpack_from
_u2 = Struct("<I").unpack_from
_p0 = Struct("<IQI").pack
_p1 = Struct("<QBQ16sII").pack
_p2 = Struct("<I").pack
_HEAD = (
    Part("partition", size=4),
    Part("current_offset", size=8),
    Part("count", size=4),
)
_RECORD = (
    Part("offset", size=8),
    Part("state", size=1),
    Part("timestamp_us", size=8),
    Part("id", size=16),
    Part("checksum", size=4),
    Part("headers", prefix="<I"),
    Part("payload", prefix="<I"),
)


@dataclass(slots=True)
class Head:
    """The members before the records."""

    partition: int
    current_offset: int
    count: int


@dataclass(slots=True)
class Columns:
    """The records by column."""

    count: int
    offset: Ints
    state: Ints
    timestamp_us: Ints
    id: bytes
    checksum: Ints
    headers: Vars
    payload: VarColumn


def decode_head(data: bytes, at: int, end: int) -> tuple[Head, int]:
    """The head, and where the records begin."""
    try:
        v0, v1, v2 = _u0(data, at)
    except error:
        _fail_head(data, at, end)
    stop = at + 16
    if stop > end:
        _fail_head(data, at, end)
    return Head(v0, v1, v2), stop


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
            diagnose(_RECORD, data, at, end, "messages", None, 45)
        return _EMPTY
    try:
        v0, v1, v2, v3, v4, n5 = _u1(data, at)
        a5 = at + 41
        e5 = a5 + n5
        (n6,) = _u2(data, e5)
        a6 = e5 + 4
        e6 = a6 + n6
    except error:
        diagnose(_RECORD, data, at, end, "messages", None, 45)
    stop = e6
    if stop == end:
        return Columns(1, v0, v1, v2, v3, v4, data[a5:e5], VarColumn.single(data[a6:e6]))
    stride = stop - at
    count, rest = divmod(end - at, stride)
    if (
        not rest
        and same(data, at + 37, end, stride, 4, count)
        and same(data, e5, end, stride, 4, count)
    ):
        return Columns(
            count,
            ints_at(data, at, end, stride, count, "Q", v0, False, True),
            ints_at(data, at + 8, end, stride, count, "B", v1, False, False),
            ints_at(data, at + 9, end, stride, count, "Q", v2, False, False),
            raw_at(data, at + 17, end, stride, count, 16),
            ints_at(data, at + 33, end, stride, count, "I", v4, False, False),
            var_at(data, at, a5, end, stride, count, n5),
            column_at(data, at, a6, end, stride, count, n6),
        )
    return _mixed(data, at, end)


_EMPTY = Columns(0, 0, 0, 0, b"", 0, b"", even_column(b"", 0, 0))


@lru_cache(256)
def _shape(n5: int) -> tuple[Any, ...]:
    """Structs for records whose repeated members have these lengths, and their sizes."""
    s0 = Struct(f"<Q9s16sII{n5}sI")
    return s0.unpack_from, s0.size


def _mixed(data: bytes, at: int, end: int) -> Columns:
    begin = at
    l0: list[int] = []
    put0 = l0.append
    l1: list[int] = []
    put1 = l1.append
    l2: list[int] = []
    put2 = l2.append
    l3: list[bytes] = []
    put3 = l3.append
    l4: list[int] = []
    put4 = l4.append
    l5: list[bytes] = []
    put5 = l5.append
    l6: list[bytes] = []
    put6 = l6.append
    guesses = 8
    lengths: tuple[int, ...] = ()
    try:
        while at < end:
            v0, v1, v2, v3, v4, n5 = _u1(data, at)
            a5 = at + 41
            e5 = a5 + n5
            put5(data[a5:e5])
            (n6,) = _u2(data, e5)
            a6 = e5 + 4
            e6 = a6 + n6
            put6(data[a6:e6])
            stop = e6
            put0(v0)
            put1(v1)
            put2(v2)
            put3(v3)
            put4(v4)
            found = (n5,)
            if not guesses or stop > end or (found != lengths and len(l0) > 1):
                lengths = found
                at = stop
                continue
            lengths = found
            guesses -= 1
            k1 = data[at + 8 : at + 17]
            r0, z0 = _shape(n5)
            known = len(l0)
            at = stop
            try:
                while at < end:
                    v0, q1, v3, v4, m5, v5, w6 = r0(data, at)
                    if q1 != k1 or m5 != n5:
                        break
                    a6 = at + z0
                    e6 = a6 + w6
                    put0(v0)
                    put3(v3)
                    put4(v4)
                    put5(v5)
                    put6(data[a6:e6])
                    at = e6
            except error:
                guesses = 0  # near the end a guess may reach past it: read on straight
            more = len(l0) - known
            l1.extend(repeat(l1[-1], more))
            l2.extend(repeat(l2[-1], more))
            if more > 8 and guesses:
                guesses = 8
    except error:
        diagnose(_RECORD, data, begin, end, "messages", None, 45)
    if at != end:
        diagnose(_RECORD, data, begin, end, "messages", None, 45)
    return Columns(
        len(l0),
        ints_of("Q", l0, True),
        ints_of("B", l1, False),
        ints_of("Q", l2, False),
        b"".join(l3),
        ints_of("I", l4, False),
        var_of(l5),
        column_of(l6),
    )


def encode_head(partition: int, current_offset: int, count: int) -> bytes:
    """The members before the records."""
    return _p0(partition, current_offset, count)


def encode_one(
    *,
    offset: int,
    state: int,
    timestamp_us: int,
    id: bytes,
    checksum: int,
    headers: bytes,
    payload: bytes,
) -> bytes:
    """One record from plain values."""
    return b"".join(
        (
            _p1(offset, state, timestamp_us, id, checksum, len(headers)),
            headers,
            _p2(len(payload)),
            payload,
        )
    )


def encode_records(
    count: int,
    *,
    offset: IntsIn,
    state: IntsIn,
    timestamp_us: IntsIn,
    id: bytes | memoryview,
    checksum: IntsIn,
    headers: Vars,
    payload: Vars,
) -> Rendering:
    """`count` records from columns."""
    writer = Writer(count, "<")
    writer.ints("Q", offset)
    writer.ints("B", state)
    writer.ints("Q", timestamp_us)
    writer.raw(16, id)
    writer.ints("I", checksum)
    writer.var("I", headers)
    writer.var("I", payload)
    return writer.done()
