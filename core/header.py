"""Record headers: an ordered list of typed pairs, and their bytes.

One record's headers at rest are entries back to back, without a count::

    u32le key_length | key (UTF-8) | u8 kind | u32le value_length | value

A kind is one of `HeaderKind`; numbers are little-endian. These are the very bytes of the Iggy
generation that this server speaks natively, so its headers are copied, not translated. Fields of
other dialects that have no column of their own live here under reserved names (`cursus.event_type`,
...).
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LENGTH = Struct("<I")


class HeaderKind(IntEnum):
    """The type of a header's value."""

    RAW = 1
    STRING = 2
    BOOL = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    INT128 = 8
    UINT8 = 9
    UINT16 = 10
    UINT32 = 11
    UINT64 = 12
    UINT128 = 13
    FLOAT32 = 14
    FLOAT64 = 15


class Header(NamedTuple):
    """One header: its key, the kind of its value and the value's bytes."""

    key: str
    kind: HeaderKind
    value: bytes


def encode_headers(headers: Iterable[Header]) -> bytes:
    """Returns the bytes at rest of one record's headers."""
    parts = []
    for header in headers:
        key = header.key.encode()
        parts.append(
            b"".join(
                (
                    _LENGTH.pack(len(key)),
                    key,
                    bytes((header.kind,)),
                    _LENGTH.pack(len(header.value)),
                    header.value,
                )
            )
        )
    return b"".join(parts)


def decode_headers(data: bytes | memoryview) -> Iterator[Header]:
    """Yields the headers of one record.

    Raises:
        ValueError: The bytes are not headers at rest.
    """
    view = bytes(data)
    at, end = 0, len(view)
    while at < end:
        if at + 4 > end:
            raise ValueError("a header's key length is cut off")
        (size,) = _LENGTH.unpack_from(view, at)
        key_end = at + 4 + size
        if key_end + 5 > end:
            raise ValueError("a header's key runs past the end")
        key = view[at + 4 : key_end].decode()
        kind = HeaderKind(view[key_end])
        (size,) = _LENGTH.unpack_from(view, key_end + 1)
        at = key_end + 5 + size
        if at > end:
            raise ValueError("a header's value runs past the end")
        yield Header(key, kind, view[key_end + 5 : at])
