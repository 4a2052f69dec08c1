"""Cutting lines: the straight code for one line of any kind, and the small rules of its parts.

It knows white space, integers and the envelope; what a command means is `translate.py`'s business.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dragoman.codecs.v1.wire import (
    COMMAND_REQUIRED,
    CORRELATION_REQUIRED,
    EXPECTED_FORMAT,
    INTEGER_MAX,
    INTEGER_MIN,
    SPACES,
    UNSUPPORTED_VERSION,
)

_WIDE_SPACE = re.compile(b"|".join([re.escape(c.encode()) for c in SPACES if ord(c) > 127]))
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_DIGITS_MAX = 19


class Envelope(NamedTuple):
    """A request line taken apart; the command in upper case."""

    correlation: bytes
    command: bytes
    arguments: list[bytes]


def trimmed(part: bytes) -> bytes:
    """The part without the white space around it."""
    if part.isascii():
        return part.strip()
    return part.decode("utf-8", "surrogateescape").strip(SPACES).encode("utf-8", "surrogateescape")


def split_arguments(part: bytes) -> list[bytes]:
    """The runs of bytes between runs of white space."""
    if part.isascii():
        return part.split()
    return _WIDE_SPACE.sub(b" ", part).split()


def has_space(part: bytes) -> bool:
    """Whether the part is anything but one argument."""
    return split_arguments(part) != [part]


def open_envelope(line: bytes) -> Envelope | str:
    """Takes a line (without its line feed) apart, or returns the message of what is wrong with it.

    Spec: V1-2.1 to V1-2.5; the checks come in the order of the clauses.
    """
    parts = trimmed(line).split(b"|", 3)
    if len(parts) < 4:
        return EXPECTED_FORMAT
    version, correlation, command, arguments = parts
    if trimmed(version) != b"V1":
        return UNSUPPORTED_VERSION
    if not (correlation := trimmed(correlation)):
        return CORRELATION_REQUIRED
    if not (command := trimmed(command)):
        return COMMAND_REQUIRED
    return Envelope(correlation, command.upper(), split_arguments(arguments))


def integer(argument: bytes) -> int | None:
    """The number that the argument writes, or None.

    Spec: V1-2.8. The form is checked first, since `int` takes underscores and spaces, and the
        digits are counted, since it raises on more than 4,300 of them.
    """
    if not _INTEGER.fullmatch(argument):
        return None
    digits = argument.lstrip(b"+-").lstrip(b"0") or b"0"
    if len(digits) > _DIGITS_MAX:
        return None
    number = -int(digits) if argument[:1] == b"-" else int(digits)
    return number if INTEGER_MIN <= number <= INTEGER_MAX else None
