"""V1's rule of routing: FNV-1a of 32 bits over the key, modulo the partition count.

Python takes about 60 ns a byte for it, so the hashes of short keys are remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_BASIS = 2_166_136_261
_PRIME = 16_777_619
_REMEMBERED_MAX = 65_536
_REMEMBERED_BYTES_MAX = 64

_remembered: dict[bytes, int] = {}


def fnv1a_32(data: bytes) -> int:
    """The 32-bit FNV-1a hash."""
    value = _BASIS
    for byte in data:
        value = (value ^ byte) * _PRIME & 0xFFFFFFFF
    return value


def key_hash(key: bytes) -> int:
    """The hash that routes a record with this key."""
    value = _remembered.get(key)
    if value is None:
        value = fnv1a_32(key)
        if len(key) <= _REMEMBERED_BYTES_MAX:
            if len(_remembered) >= _REMEMBERED_MAX:
                _remembered.clear()
            _remembered[key] = value
    return value


def key_hashes(keys: Sequence[bytes]) -> list[int]:
    """The hashes of many keys, in order."""
    found = list(map(_remembered.get, keys))
    if None in found:
        return [
            key_hash(key) if value is None else value
            for key, value in zip(keys, found, strict=True)
        ]
    return found  # type: ignore[return-value]  # the test above found no None
