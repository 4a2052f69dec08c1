"""A real server under attack: raw sockets to it, and what the system says of its process."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WAIT_S = 20.0
_RESET = struct.pack("ii", 1, 0)
_FORGED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Prey(Server):
    """A server that is looked at from outside; its log is JSON unless flags say otherwise."""

    def __init__(self, data: Path, *flags: str) -> None:
        formatted = flags if "--log-format" in flags else ("--log-format", "json", *flags)
        super().__init__(data, *formatted)

    def dial(self, dialect: str, *, receive_bytes: int = 0) -> socket.socket:
        """A connected socket; `receive_bytes` makes it a narrow one."""
        made = socket.socket()
        made.settimeout(WAIT_S)
        if receive_bytes:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        made.connect(("127.0.0.1", self.ports[dialect]))
        return made

    def provoke(self, dialect: str, data: bytes) -> bytes:
        """Sends bytes and the end of the stream; returns everything that comes back."""
        with self.dial(dialect) as made:
            try:
                made.sendall(data)
                made.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # refused before all of it was sent
            return receive_all(made)

    def rss(self) -> int:
        """Resident bytes of the process."""
        return self._status("VmRSS")

    def peak_rss(self) -> int:
        """The most resident bytes since the last `forget_peak`."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        """Begins to watch for a new peak."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def sockets(self) -> int:
        """Open sockets."""
        count = 0
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            with suppress(OSError):
                count += os.readlink(entry).startswith("socket:")
        return count

    def log_lines(self) -> list[dict[str, Any]]:
        """Its log, which is JSON, a line each."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def wait_for(self, what: str, condition: Callable[[], bool]) -> None:
        """Returns once something holds that the server does by itself."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not happen: {self.tail()}"
            time.sleep(0.01)

    def assert_unharmed(self) -> None:
        """Its log tells of no fault and holds nothing that a peer wrote as it was."""
        text = self.log.read_text()
        assert "Traceback" not in text, text[-4000:]
        assert not re.search(r"\bfault\b", text), text[-4000:]
        assert '"level": "error"' not in text, text[-4000:]
        assert not (forged := _FORGED.search(text)), text[forged.start() - 200 :][:400]

    def _status(self, field: str) -> int:
        text = Path(f"/proc/{self.pid}/status").read_text()
        (line,) = [line for line in text.splitlines() if line.startswith(field + ":")]
        return int(line.split()[1]) * 1024


def receive_all(made: socket.socket) -> bytes:
    """Everything until the end of the stream, or its reset."""
    parts = []
    try:
        while part := made.recv(1 << 16):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def reset(made: socket.socket) -> None:
    """Closes a connection with RST instead of FIN."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    made.close()


@contextmanager
def many(prey: Prey, dialect: str, count: int) -> Iterator[list[socket.socket]]:
    """So many connections, closed in the end."""
    made = [prey.dial(dialect) for _ in range(count)]
    try:
        yield made
    finally:
        for one in made:
            one.close()
