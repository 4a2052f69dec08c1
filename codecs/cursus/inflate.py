"""Compressed frames: gzip is opened, with a bound on what may come out; others are known by name.

Clients of this protocol may compress what they produce. Nothing on the wire announces it, so that
a frame is looked at: no envelope begins with these bytes, since its first two are a topic's length.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import Final

from dragoman.codecs.cursus.wire import FRAME_BYTES_MAX

_SIZE = Struct("<I").unpack_from
_GZIP_BYTES_MIN = 18
GZIP: Final = b"\x1f\x8b"
FOREIGN: Final = {b"\x04\x22\x4d\x18": "lz4", b"\x82SNA": "snappy"}
"""How frames begin that are compressed in a way that this server does not open."""

RATIO_MAX: Final = 100
"""A frame may grow by so much ..."""
ALWAYS_BYTES: Final = 4 * 1024 * 1024
"""... or to this size, since small batches of equal messages shrink further."""


class BadFrame(Exception):
    """A frame that cannot be opened; never leaves the dialect."""


def declared_bytes(data: bytes) -> int:
    """How much a gzip frame says comes out; what it says is held against what does."""
    return _SIZE(data, len(data) - 4)[0] if len(data) >= _GZIP_BYTES_MIN else 0


def inflate(data: bytes) -> bytes:
    """The whole body.

    Raises:
        BadFrame: It is not gzip, or grows beyond all measure.
    """
    bound = min(FRAME_BYTES_MAX, max(ALWAYS_BYTES, RATIO_MAX * len(data)))
    declared = declared_bytes(data)
    if declared > bound:
        raise BadFrame(f"{declared} bytes out of {len(data)}, at most {bound} are allowed")
    inflater = zlib.decompressobj(wbits=31)
    try:
        # One byte more than declared lets the trailer be read, which zlib then checks.
        body = inflater.decompress(data, declared + 1)
    except zlib.error:
        raise BadFrame("the gzip data is damaged") from None
    if not inflater.eof or inflater.unused_data:
        raise BadFrame("the gzip data is not one whole member")
    return body
