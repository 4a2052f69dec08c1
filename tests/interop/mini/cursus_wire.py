"""What the Go and the Java client of Cursus have in common on the wire: frames, envelopes, batches.

Written from what those clients send, in plain sockets and `struct`, for a server to be judged by.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import NamedTuple, Self

FRAME_BYTES_MAX = 64 * 1024 * 1024
_MESSAGE = struct.Struct(">QQ")
_EVENT_END = struct.Struct(">IQ")


class Message(NamedTuple):
    """One message of a batch, without its event fields."""

    offset: int
    sequence: int
    payload: bytes
    producer: bytes = b""
    key: bytes = b""
    epoch: int = 0


def envelope(command: str, topic: str = "") -> bytes:
    """A command behind the length and name of a topic, which is empty for most."""
    return _string(topic.encode()) + command.encode()


def fields(reply: str) -> dict[str, str]:
    """The `name=value` words of a reply."""
    return dict(word.split("=", 1) for word in reply.split() if "=" in word)


def address(text: str) -> tuple[str, int]:
    """`host:port`, as METADATA and FIND_COORDINATOR tell it."""
    host, _, port = text.rpartition(":")
    return host, int(port)


class Wire:
    """A connection; a context.

    Args:
        place: Host and port.
        timeout_s: For connecting and for each reply.
    """

    def __init__(self, place: tuple[str, int], timeout_s: float = 5) -> None:
        self.timeout_s = timeout_s
        self.socket = socket.create_connection(place, timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.arrived = bytearray()

    def send(self, body: bytes) -> None:
        """Sends one frame."""
        self.socket.settimeout(self.timeout_s)
        self.socket.sendall(len(body).to_bytes(4, "big") + body)

    def receive(self, timeout_s: float | None = None) -> bytes | None:
        """The next frame; None where it is not whole in time. What came of it stays."""
        ends = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while True:
            size = int.from_bytes(self.arrived[:4], "big")
            assert size <= FRAME_BYTES_MAX, "a frame that clients refuse"
            if len(self.arrived) >= 4 + size and len(self.arrived) >= 4:
                body = bytes(self.arrived[4 : 4 + size])
                del self.arrived[: 4 + size]
                return body
            left_s = ends - time.monotonic()
            if left_s <= 0:
                return None
            self.socket.settimeout(left_s)
            try:
                data = self.socket.recv(1 << 20)
            except TimeoutError:
                return None
            if not data:
                raise ConnectionError("the server closed the connection")
            self.arrived += data

    def ask(self, body: bytes) -> str:
        """The reply to one frame, as text."""
        self.send(body)
        reply = self.receive()
        assert reply is not None, f"no reply to {body!r} in {self.timeout_s} s"
        return reply.decode()

    def close(self) -> None:
        """Leaves."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def one_shot(place: tuple[str, int], body: bytes, timeout_s: float = 5) -> str:
    """The reply to one frame on a connection of its own."""
    with Wire(place, timeout_s) as wire:
        return wire.ask(body)


def batch(
    topic: str, partition: int, acks: str, messages: list[Message], *, idempotent: bool = False
) -> bytes:
    """A batch as both clients write it, with empty event fields."""
    parts = [b"\xba\x7c", _string(topic.encode()), struct.pack(">i", partition)]
    parts.append(struct.pack(">B", len(acks)) + acks.encode() + struct.pack(">?", idempotent))
    ends = (messages[0].sequence, messages[-1].sequence) if messages else (0, 0)
    parts.append(struct.pack(">QQi", *ends, len(messages)))
    for message in messages:
        parts += [
            _MESSAGE.pack(message.offset, message.sequence),
            _string(message.producer) + _string(message.key),
            struct.pack(">qI", message.epoch, len(message.payload)),
            message.payload,
            b"\x00\x00" + _EVENT_END.pack(0, 0) + b"\x00\x00",
        ]
    return b"".join(parts)


def messages_of(body: bytes, topic: str, partition: int) -> list[Message]:
    """The messages of a batch, whose every byte has to be accounted for."""
    reader = _Reader(body)
    assert reader.take(2) == b"\xba\x7c", body[:80]
    assert reader.string() == topic.encode()
    assert reader.integer(4) == partition
    assert reader.take(reader.integer(1)) == b"1", "replies say acks 1"
    assert reader.integer(1) == 0, "replies are not idempotent"
    ends = (reader.integer(8), reader.integer(8))
    found = []
    for _ in range(reader.integer(4)):
        offset, sequence = reader.integer(8), reader.integer(8)
        producer, key = reader.string(), reader.string()
        epoch = int.from_bytes(reader.take(8), "big", signed=True)
        payload = reader.take(reader.integer(4))
        assert reader.take(2 + 4 + 8 + 2) == bytes(16), "event fields that nobody wrote"
        found.append(Message(offset, sequence, payload, producer, key, epoch))
    assert reader.at == len(body), "nothing follows the last message"
    assert ends == ((found[0].sequence, found[-1].sequence) if found else (0, 0))
    return found


def _string(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data


class _Reader:
    """Takes one part after another."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.at = 0

    def take(self, count: int) -> bytes:
        part = self.body[self.at : self.at + count]
        assert len(part) == count, "the batch is cut off"
        self.at += count
        return part

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def string(self) -> bytes:
        return self.take(self.integer(2))
