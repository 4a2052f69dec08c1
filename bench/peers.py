"""A peer for the same minute: Redis streams that sync before they answer.

It is optional: `redis-server` where it is on the PATH.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from load import Connection, Load, Result, timed, values

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def redis_server(cpu: int) -> Iterator[int | None]:
    """A Redis with `appendfsync always` on a free port; None where there is no redis-server."""
    binary = shutil.which("redis-server")
    if binary is None:
        yield None
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(
            [
                *(binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", directory),
                *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
            ],
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
        )
        try:
            wait_until_open(port)
            yield port
        finally:
            process.terminate()
            process.wait()


def redis_reply(data: bytes | bytearray, batch: int) -> tuple[int, int]:
    """A `ReplyEnd` of `batch` pipelined XADDs, each answered by a bulk string: the entry's id."""
    if data[:1] == b"-":
        raise ValueError(f"refused: {bytes(data[:200])!r}")
    return (len(data), batch) if data.count(b"\n") == 2 * batch else (0, 0)


def redis_acks(load: Load) -> Result:
    """XADD of the load's batch, pipelined in one write."""
    commands = [
        b"*5\r\n$4\r\nXADD\r\n$5\r\nbench\r\n$1\r\n*\r\n$1\r\nv\r\n$%d\r\n%b\r\n"
        % (len(value), value)
        for value in values(load)
    ]
    request = b"".join(commands)
    return timed(
        load,
        [
            Connection(load.port, [request], load.batch, redis_reply)
            for _ in range(load.connections)
        ],
    )


def wait_until_open(port: int) -> None:
    """Returns once something accepts on the port, or after five seconds."""
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
