"""Values of other dialects in `messages=<offset:value,...>`: verbatim, or escaped where they would
break it.

A value that a V1 client could have written without a comma leaves as it came. What would cut a
line, an item or the list is percent-encoded, and the record's offset is listed as escaped, so that
a reader that looks gets the exact bytes back. Spec: V1-5.1 to V1-5.8.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from dragoman.codecs.v1.wire import SPACES

_CONTROLS = bytes([*range(0x20), 0x7F])
_BREAKS = _CONTROLS + b","
_WIDE_SPACES = tuple([c.encode() for c in SPACES if ord(c) > 0x7F])
_BYTE_ORDER_MARK = "\ufeff".encode()
_EDGES = (b" ", _BYTE_ORDER_MARK, *_WIDE_SPACES)
_WIDE_BREAK = re.compile(b"\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")
_WIDE_SPACE = re.compile(b"|".join([re.escape(space) for space in _WIDE_SPACES]))
_WIDE_ESCAPED = {_BYTE_ORDER_MARK, *_WIDE_SPACES} | {chr(c).encode() for c in range(0x80, 0xA0)}
_PIECE_BYTES = 1 << 20


class _Expansion:
    """Percent-encodes a set of byte values in a handful of passes in C, whatever it is made of.

    Each byte becomes three: itself and two fillers, or its escape; then the fillers are deleted.
    NUL is the filler and always among the escaped, so it cannot be confused with data.
    """

    def __init__(self, escaped: bytes) -> None:
        chosen = {0, *escaped}
        hexes = [f"{c:02X}" if c in chosen else "\0\0" for c in range(256)]
        self._first = bytes([ord("%") if c in chosen else c for c in range(256)])
        self._high = bytes([ord(digits[0]) for digits in hexes])
        self._low = bytes([ord(digits[1]) for digits in hexes])

    def __call__(self, value: bytes) -> bytes:
        if len(value) > _PIECE_BYTES:
            starts = range(0, len(value), _PIECE_BYTES)
            return b"".join([self(value[at : at + _PIECE_BYTES]) for at in starts])
        out = bytearray(3 * len(value))
        out[0::3] = value.translate(self._first)
        out[1::3] = value.translate(self._high)
        out[2::3] = value.translate(self._low)
        return bytes(out.translate(None, b"\0"))


_escape_text = _Expansion(_BREAKS + b" %=")
_escape_binary = _Expansion(_BREAKS + b" %=" + bytes(range(0x80, 0x100)))


def may_need_escape(blob: bytes) -> bool:
    """Whether any value of a batch, joined in `blob`, may need an escape.

    True means only that each value has to be looked at on its own.
    """
    return (
        not blob.isascii()
        or b" " in blob
        or len(blob.translate(None, _BREAKS)) < len(blob)
        or b"messages=" in blob
    )


def is_plain(value: bytes, *, spaces: bool) -> bool:
    """Whether the value can be sent as it is.

    Args:
        spaces: Spaces inside a value are escaped as well, for readers that split the payload on
            them.
    """
    if (
        len(value.translate(None, _BREAKS)) < len(value)
        or b"messages=" in value
        or value.startswith(_EDGES)
        or value.endswith(_EDGES)
    ):
        return False
    if b" " in value and (spaces or b" hw=" in value):
        return False
    if value.isascii():
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return not (_WIDE_BREAK.search(value) or (spaces and _WIDE_SPACE.search(value)))


def escape(value: bytes) -> bytes:
    """Percent-encodes a value that is not plain."""
    if value.isascii():
        return _escape_text(value)
    try:
        value.decode()
    except UnicodeDecodeError:
        return _escape_binary(value)
    out = _escape_text(value)
    for sequence in _WIDE_ESCAPED:
        if sequence in out:
            out = out.replace(sequence, b"".join([b"%%%02X" % byte for byte in sequence]))
    return out


def unescape(text: bytes) -> bytes:
    """The exact inverse of `escape`."""
    return unquote_to_bytes(text)
