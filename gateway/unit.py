"""Sizes and times as people write them: "64MiB", "5m", "250ms"."""

from __future__ import annotations

import re

_SIZES = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "k": 1 << 10,
    "m": 1 << 20,
    "g": 1 << 30,
    "t": 1 << 40,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_TIMES_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.ASCII)


def parse_size(text: str | int) -> int:
    """Bytes: a number, or one with KiB, MiB, GiB, TiB (or K, M, ...), or KB, MB, ... of 1,000.

    Raises:
        ValueError: With a sentence for people.
    """
    if isinstance(text, int):
        return text
    found = _QUANTITY.fullmatch(text.lower())
    if found is None or found[2] not in _SIZES:
        raise ValueError(f"{text!r} is not a size; write for example 1048576, 512KiB or 64MiB")
    return round(float(found[1]) * _SIZES[found[2]])


def parse_time_us(text: str | int | float, bare_us: int) -> int:
    """Microseconds: "250ms", "30s", "5m", "1h", "7d", or a bare number.

    Args:
        bare_us: The unit of a bare number, in microseconds.

    Raises:
        ValueError: With a sentence for people.
    """
    if isinstance(text, (int, float)):
        return round(text * bare_us)
    found = _QUANTITY.fullmatch(text.lower())
    if found is None or (found[2] and found[2] not in _TIMES_US):
        raise ValueError(f"{text!r} is not a time; write for example 250ms, 30s, 5m, 1h or 7d")
    return round(float(found[1]) * (_TIMES_US[found[2]] if found[2] else bare_us))
