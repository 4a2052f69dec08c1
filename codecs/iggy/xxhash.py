"""xxHash32 with seed 0, for short texts: the wire shows a member of another dialect by it."""

from __future__ import annotations

import struct
from typing import Final

_ROW = struct.Struct("<4I")
_WORD = struct.Struct("<I").unpack_from
_P1: Final = 2654435761
_P2: Final = 2246822519
_P3: Final = 3266489917
_P4: Final = 668265263
_P5: Final = 374761393
_MASK: Final = (1 << 32) - 1


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


def xxh32(data: bytes) -> int:
    """The hash of `data` as an unsigned number."""
    size = len(data)
    at = size & ~15
    if at:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        for row in _ROW.iter_unpack(data[:at]):
            lanes = [
                _rotated(lane + word * _P2, 13) * _P1 & _MASK
                for lane, word in zip(lanes, row, strict=True)
            ]
        turns = zip(lanes, (1, 7, 12, 18), strict=True)
        value = sum([_rotated(lane, bits) for lane, bits in turns])
    else:
        value = _P5
    value += size
    while at + 4 <= size:
        value = _rotated(value + _WORD(data, at)[0] * _P3, 17) * _P4
        at += 4
    for byte in data[at:]:
        value = _rotated(value + byte * _P5, 11) * _P1
    value &= _MASK
    value = (value ^ value >> 15) * _P2 & _MASK
    value = (value ^ value >> 13) * _P3 & _MASK
    return value ^ value >> 16
