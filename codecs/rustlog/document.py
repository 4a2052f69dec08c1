"""Reads JSON requests as strictly as a typed server, and as fast as orjson.

orjson is quick but lenient where a typed server is not: the last of duplicate keys wins, integers
of 2^64 and more become floats, `-0` becomes 0. So its result is believed only where the text
provably holds nothing of the kind: with digits, commas, brackets and white space deleted, a request
in its plain form is exactly its keys and strings in their order, which is compared in one step. A
duplicate key, a sign, a point, an exponent, `true` or a nested value would leave more behind, and
only a backslash could make text shorter than it looks; whatever differs is parsed again by the
standard library, pair by pair.
"""

from __future__ import annotations

from itertools import chain
from json import JSONDecoder
from typing import TYPE_CHECKING, Any

import orjson

from dragoman.codecs.rustlog import asking
from dragoman.codecs.rustlog.parse import Malformed
from dragoman.codecs.rustlog.wire import SHAPES, U32_MAX, U64_MAX, Command, Kind, Shape
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode

if TYPE_CHECKING:
    from dragoman.codecs.base import Asked, Refused

JSON_INLINE_BYTES_MAX = 256 * 1024
"""A longer JSON payload is parsed in a thread."""
DEPTH_MAX = 64
ARRAYS_MAX = 262_144
"""Arrays in one request, which bounds its records: an empty one costs 3 bytes of wire and 64 of
memory."""
STRINGS_MAX = 4_096
OBJECTS_MAX = 1_024

_NUMERIC = b"0123456789,[] \t\r\n"
_NAMES = ", ".join(f"`{name}`" for name in SHAPES)


class _Odd(float):
    """A number that is not a plain integer of at most 64 bits."""


def _check_budgets(payload: bytes) -> None:
    """Counts what would cost memory before anything is parsed."""
    for mark, allowed, what in (
        (b"[", ARRAYS_MAX, "arrays"),
        (b"{", OBJECTS_MAX, "objects"),
        (b'"', 2 * STRINGS_MAX, "strings"),
    ):
        if payload.count(mark) > allowed:
            raise Malformed(f"too many {what}")


def _check_depth(value: object) -> None:
    level: list[Any] = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [
            inner
            for item in level
            for inner in (item.values() if type(item) is dict else item)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return
    raise Malformed(f"nested deeper than {DEPTH_MAX} levels")


def _is_plain(payload: bytes, name: str, body: dict[str, Any]) -> bool:
    """Whether the text is certain to say what orjson made of it (see the head of this file)."""
    if b"\\" in payload:
        return False
    parts = ['{"', name, '":{']
    for key, value in body.items():
        parts += ('"', key, '":')
        if type(value) is str:
            parts += ('"', value, '"')
        elif value is None:
            parts.append("null")
    parts.append("}}")
    expected = "".join(parts).encode().translate(None, _NUMERIC)
    return payload.translate(None, _NUMERIC) == expected


def _pairs(pairs: list[tuple[str, Any]]) -> _Object:
    return _Object(pairs)


class _Object:
    """An object with all its pairs, duplicates included."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _integer(text: str) -> int | float:
    return _Odd("nan") if text == "-0" or len(text) > 20 else int(text)


_STRICT = JSONDecoder(
    object_pairs_hook=_pairs,
    parse_int=_integer,
    parse_float=lambda _: _Odd("nan"),
)


def _read_again(payload: bytes, shape: Shape) -> dict[str, Any]:
    """The fields of a request that is not in its plain form; duplicates are refused.

    It is known to be valid JSON of bounded depth, an object in an object.
    """
    whole: _Object = _STRICT.decode(payload.decode())
    if len(whole.pairs) != 1:
        raise Malformed(f"expected an object with one key, found {len(whole.pairs)}")
    fields: dict[str, Any] = {}
    for key, value in whole.pairs[0][1].pairs:
        if key in shape.fields:
            if key in fields:
                raise Malformed(f"duplicate field `{key}`")
            fields[key] = value
    return fields


def _byte_lists(value: object, *, plain: bool) -> VarColumn | None:
    """The records, or None where there are none.

    Raises:
        TypeError, ValueError: It is anything else than lists of integers from 0 to 255.
    """
    if type(value) is not list or not set(map(type, value)) <= {list}:
        raise TypeError
    # bytes() checks the range of each number, but takes `true` for 1; plain text holds no `true`.
    if not plain and not set(map(type, chain.from_iterable(value))) <= {int}:
        raise TypeError
    if not value:
        return None
    if len(value) == 1:
        return VarColumn.single(bytes(value[0]))
    records = list(map(bytes, value))
    return VarColumn.sized(b"".join(records), list(map(len, records)))


def _checked(shape: Shape, given: dict[str, Any], *, plain: bool) -> list[Any]:
    """The fields in the order of the shape, each of its type."""
    fields = []
    for name, kind in shape.fields.items():
        if name not in given:
            if kind is not Kind.OPTIONAL_TEXT:
                raise Malformed(f"missing field `{name}`")
            fields.append("")
            continue
        value = given[name]
        if kind is Kind.BYTE_LISTS:
            try:
                value = _byte_lists(value, plain=plain)
            except (TypeError, ValueError):
                raise Malformed(f"invalid value for `{name}`: expected {kind.value}") from None
        elif kind is Kind.OPTIONAL_TEXT and value is None:
            value = ""
        elif (
            type(value) is not str
            if kind is Kind.TEXT or kind is Kind.OPTIONAL_TEXT
            else type(value) is not int
            or not 0 <= value <= (U32_MAX if kind is Kind.U32 else U64_MAX)
        ):
            raise Malformed(f"invalid value for `{name}`: expected {kind.value}")
        fields.append(value)
    return fields


def read_fields(payload: bytes) -> tuple[Shape, list[Any]]:
    """The shape of a request and its fields, in the order of the shape.

    Raises:
        Malformed: It is not a request.
    """
    _check_budgets(payload)
    try:
        whole = orjson.loads(payload)
    except orjson.JSONDecodeError as fault:
        raise Malformed(f"{fault.msg} at line {fault.lineno} column {fault.colno}") from None
    body: Any = None
    if type(whole) is str:
        name = whole
    elif type(whole) is not dict:
        raise Malformed("expected an object with one key, the name of the request")
    elif "type" in whole:
        raise Malformed(
            'requests with a "type" key are not served; name the request by its key, '
            'as in {"Produce": {...}}',
            ErrorCode.UNSUPPORTED,
        )
    elif len(whole) != 1:
        raise Malformed(f"expected an object with one key, found {len(whole)}")
    else:
        ((name, body),) = whole.items()
    shape = SHAPES.get(name)
    if shape is None:
        raise Malformed(
            f"unknown variant `{name[:64]}`, expected one of {_NAMES}", ErrorCode.UNKNOWN_COMMAND
        )
    if not shape.fields:
        if body is not None or payload.count(b'"') != 2:
            raise Malformed(f"`{name}` has no fields")
        return shape, []
    if type(body) is not dict:
        raise Malformed("expected an object with the fields of the request")
    if body.keys() <= shape.fields.keys() and _is_plain(payload, name, body):
        return shape, _checked(shape, body, plain=True)
    _check_depth(body)
    return shape, _checked(shape, _read_again(payload, shape), plain=False)


def read_request(payload: bytes, reply_bytes_max: int) -> Asked | Refused:
    """The request of one payload.

    Raises:
        Malformed: It is none.
    """
    shape, fields = read_fields(payload)
    match shape.command:
        case Command.PRODUCE:
            topic, partition, values = fields
            return asking.produce(topic, partition, values, json=True)
        case Command.FETCH:
            topic, partition, offset, bytes_max, group = fields
            return asking.fetch_json(group, topic, partition, offset, bytes_max, reply_bytes_max)
        case Command.OFFSET_COMMIT:
            topic, partition, group, offset = fields
            return asking.commit(group, topic, partition, offset, json=True)
        case Command.OFFSET_FETCH:
            topic, partition, group = fields
            return asking.fetch_offset(group, topic, partition, json=True)
        case Command.CREATE_TOPIC:
            return asking.create_topic(fields[0], fields[1], json=True)
        case Command.LIST_TOPICS:
            return asking.list_topics(json=True)
        case _:
            return asking.ping(json=True)
