"""A blocking connection in any dialect, for tests that talk to a real server."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Self

from dragoman.codecs.registry import dialect
from dragoman.core.calls import Fetch, Fetched

if TYPE_CHECKING:
    from dragoman.codecs.base import Speaker
    from dragoman.core.calls import Reply, Request
    from dragoman.core.error import Failure


class Caller:
    """A connection that asks one request at a time.

    Args:
        speaker: What it speaks with, where the dialect's own would not do.
    """

    def __init__(self, name: str, port: int, speaker: Speaker | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.speaker = dialect(name).speaker() if speaker is None else speaker

    def ask(self, request: Request) -> Reply | Failure:
        """One request, one reply; OSError once the server is gone."""
        for buffer in self.speaker.ask(request):
            self.socket.sendall(buffer)
        while True:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionResetError("the server is gone")
            if told := self.speaker.receive(data):
                return told[0].reply

    def read_all(self, topic: str, partition: int) -> list[tuple[int, bytes]]:
        """Every record of a partition: its offset and value."""
        rows: list[tuple[int, bytes]] = []
        offset = 0
        while True:
            reply = self.ask(Fetch(topic, partition, offset, bytes_max=4 << 20))
            assert isinstance(reply, Fetched), reply
            if not reply.slices:
                return rows
            for piece in reply.slices:
                records = piece.batch.records(piece.first, piece.last)
                rows.extend((record.offset, record.value or b"") for record in records)
            offset = reply.next_offset

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
