"""RustLog's binary protocol in plain sockets and `struct`, for a server to be judged by."""

from __future__ import annotations

import socket
import struct
from typing import Self

TIMEOUT_S = 5


class Refused(Exception):
    """An error reply: its code and message."""


def text(value: str) -> bytes:
    """A string: its length in two bytes, then UTF-8."""
    data = value.encode()
    return struct.pack(">H", len(data)) + data


class BinaryClient:
    """One request at a time; a context."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.stream = self.socket.makefile("rb")

    def ask(self, opcode: int, body: bytes = b"") -> bytes:
        """The reply's body behind its opcode, which must be the request's."""
        self.socket.sendall(struct.pack(">IB", 1 + len(body), opcode) + body)
        (size,) = struct.unpack(">I", self.stream.read(4))
        reply = self.stream.read(size)
        assert len(reply) == size, "the connection is closed"
        if reply[0] == 0xFE:
            code, length = struct.unpack_from(">HH", reply, 1)
            assert len(reply) == 5 + length, reply
            raise Refused(code, reply[5:].decode())
        assert reply[0] == opcode, reply
        return reply[1:]

    def create(self, topic: str, partitions: int) -> None:
        """CreateTopic."""
        assert self.ask(5, text(topic) + struct.pack(">I", partitions)) == b"\x01"

    def produce(self, topic: str, partition: int, records: list[bytes]) -> int:
        """Produce; returns the base offset."""
        body = text(topic) + struct.pack(">II", partition, len(records))
        for record in records:
            body += struct.pack(">I", len(record)) + record
        base, count = struct.unpack(">QI", self.ask(1, body))
        assert count == len(records)
        return int(base)

    def fetch(
        self, topic: str, partition: int, offset: int, *, group: str = "", bytes_max: int = 1 << 20
    ) -> tuple[list[bytes], int]:
        """Fetch; returns the records and the next offset."""
        body = text(group) + text(topic) + struct.pack(">IQI", partition, offset, bytes_max)
        reply = self.ask(2, body)
        (count,) = struct.unpack_from(">I", reply)
        records = []
        at = 4
        for _ in range(count):
            (size,) = struct.unpack_from(">I", reply, at)
            records.append(reply[at + 4 : at + 4 + size])
            at += 4 + size
        (next_offset,) = struct.unpack_from(">Q", reply, at)
        assert at + 8 == len(reply), "nothing follows the next offset"
        return records, next_offset

    def commit(self, group: str, topic: str, partition: int, offset: int) -> bool:
        """OffsetCommit."""
        body = text(group) + text(topic) + struct.pack(">IQ", partition, offset)
        return self.ask(3, body) == b"\x01"

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        """OffsetFetch."""
        reply = self.ask(4, text(group) + text(topic) + struct.pack(">I", partition))
        if reply == b"\x00":
            return None
        has, offset = struct.unpack(">BQ", reply)
        assert has == 1
        return int(offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        self.socket.close()
