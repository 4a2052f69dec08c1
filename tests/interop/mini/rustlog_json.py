"""RustLog's JSON protocol in plain sockets and `json`, for a server to be judged by."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any, Self

TIMEOUT_S = 5


class Refused(Exception):
    """An Error reply: its message."""


class JsonClient:
    """One request at a time; a context."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.stream = self.socket.makefile("rb")

    def ask(self, name: str, **fields: Any) -> dict[str, Any]:
        """The body of the reply, which must be the request's namesake."""
        request = json.dumps({name: fields}).encode()
        self.socket.sendall(struct.pack(">I", len(request)) + request)
        (size,) = struct.unpack(">I", self.stream.read(4))
        reply = json.loads(self.stream.read(size))
        ((said, body),) = reply.items()
        if said == "Error":
            raise Refused(body["message"])
        assert said == name, reply
        found: dict[str, Any] = body
        return found

    def produce(self, topic: str, partition: int, records: list[bytes]) -> list[int]:
        """Produce; returns every record's offset."""
        rows = [list(record) for record in records]
        reply = self.ask("Produce", topic=topic, partition=partition, records=rows)
        offsets: list[int] = reply["offsets"]
        return offsets

    def fetch(
        self, topic: str, partition: int, offset: int, *, group: str | None = None
    ) -> tuple[list[tuple[int, bytes]], int]:
        """Fetch; returns offset and payload of each record, and the next offset."""
        reply = self.ask(
            "Fetch",
            topic=topic,
            partition=partition,
            offset=offset,
            max_bytes=1 << 20,
            group_id=group,
        )
        rows = [(record["offset"], bytes(record["payload"])) for record in reply["records"]]
        return rows, reply["next_offset"]

    def commit(self, group: str, topic: str, partition: int, offset: int) -> bool:
        """OffsetCommit."""
        reply = self.ask(
            "OffsetCommit", topic=topic, partition=partition, group_id=group, offset=offset
        )
        return reply == {"success": True}

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        """OffsetFetch."""
        reply = self.ask("OffsetFetch", topic=topic, partition=partition, group_id=group)
        offset: int | None = reply["offset"]
        return offset

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        self.socket.close()
