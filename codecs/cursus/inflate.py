"""How much of a compressed frame comes out: a bound that no peer can choose.

Nothing on the wire of this protocol announces compression, so that a frame is looked at: no batch,
envelope or command begins like what is compressed (`codecs/compression.py` sees to that).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dragoman.codecs.compression import Compression

RATIO_MAX: Final = 100
"""A frame may grow by so much ..."""
ALWAYS_BYTES: Final = 4 * 1024 * 1024
"""... or to this size, since small batches of equal messages shrink further."""


def bound_of(size: int, frame_bytes_max: int) -> int:
    """How many bytes may come out of a frame of `size` bytes."""
    return min(frame_bytes_max, max(ALWAYS_BYTES, RATIO_MAX * size))


def pack(compression: Compression, body: bytes, frame_bytes_max: int) -> bytes:
    """The body as a peer opens it: compressed, but for one that shrinks beyond the bound, or
    grows beyond a frame."""
    packed = compression.compress(body)
    size = len(packed)
    fits = size <= frame_bytes_max and len(body) <= bound_of(size, frame_bytes_max)
    return packed if fits else body
