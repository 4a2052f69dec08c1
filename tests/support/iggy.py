"""Frames of the Iggy dialect, laid down field by field for tests."""

from __future__ import annotations

import struct


def u32(value: int) -> bytes:
    """A little-endian u32."""
    return struct.pack("<I", value)


def frame(code: int, body: bytes = b"") -> bytes:
    """A request."""
    return u32(4 + len(body)) + u32(code) + body


def answer(body: bytes = b"", status: int = 0) -> bytes:
    """A response."""
    return u32(status) + u32(len(body)) + body


def named(name: str) -> bytes:
    """An identifier by name."""
    return b"\2" + bytes((len(name.encode()),)) + name.encode()


def numbered(number: int) -> bytes:
    """An identifier by number."""
    return b"\1\4" + u32(number)


def short(text: str) -> bytes:
    """A name behind its length."""
    return bytes((len(text.encode()),)) + text.encode()


def message(payload: bytes, ident: int = 1, headers: bytes = b"") -> bytes:
    """A message to send."""
    return ident.to_bytes(16, "little") + u32(len(headers)) + headers + u32(len(payload)) + payload


def header(key: bytes, kind: int, value: bytes) -> bytes:
    """A header entry."""
    return u32(len(key)) + key + bytes((kind,)) + u32(len(value)) + value


PLACE = numbered(1) + numbered(1)
BALANCED = b"\1\0"
CREATE_STREAM = frame(202, u32(1) + short("dev"))
CREATE_TOPIC = frame(302, numbered(1) + u32(1) + u32(2) + u32(0) + short("top"))


def partition(number: int) -> bytes:
    """A partitioning that names its partition."""
    return b"\2\4" + u32(number)


def send(*messages: bytes, to: bytes = partition(1), at: bytes = PLACE) -> bytes:
    """A SEND_MESSAGES frame."""
    return frame(101, at + to + b"".join(messages))


def poll(
    *, strategy: int = 3, value: int = 0, count: int = 1000, number: int = 1, at: bytes = PLACE
) -> bytes:
    """A POLL_MESSAGES frame of consumer 1, without commit."""
    body = struct.pack("<BI", 1, 1) + at + struct.pack("<IBQIB", number, strategy, value, count, 0)
    return frame(100, body)
