"""Peers for the same minute: Redis streams that sync before they answer, and a Cursus broker.

Both are optional: `redis-server` where it is on the PATH, and a Cursus broker of December 2025
where `--cursus-broker PATH` names its binary. That broker knows neither the idempotent byte nor the
event fields, listens on port 9000 of every interface, and does not sync before it answers.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from load import Connection, Load, Result, cursus_reply, timed, values

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


CURSUS_PORT = 9000
_U32 = struct.Struct(">I").pack


@contextmanager
def cursus_broker(binary: str | None, cpu: int) -> Iterator[bool]:
    """That broker with its data in a directory of its own; False where none is named."""
    if binary is None:
        yield False
        return
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(
            [str(Path(binary).absolute())],
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
        )
        try:
            wait_until_open(CURSUS_PORT)
            with socket.create_connection(("127.0.0.1", CURSUS_PORT), 5) as sock:
                command = b"\x00\x05adminCREATE topic=bench partitions=4"
                sock.sendall(_U32(len(command)) + command)
                sock.recv(4096)
            yield True
        finally:
            process.terminate()
            process.wait()


def cursus_batch(load: Load, partition: int, producer: bytes, first: int) -> bytes:
    """One frame of the load's batch in that broker's layout, its sequences beginning at `first`."""
    records = values(load)
    parts = [b"\xba\x7c\x00\x05bench", struct.pack(">iB1s", partition, 1, b"1")]
    parts.append(struct.pack(">QQI", first, first + len(records) - 1, len(records)))
    for sequence, value in enumerate(records, first):
        parts.append(struct.pack(">QQH", 0, sequence, len(producer)))
        parts.append(producer)
        parts.append(struct.pack(">HqI", 0, 1, len(value)))
        parts.append(value)
    body = b"".join(parts)
    return _U32(len(body)) + body


def cursus_acks(load: Load) -> Result:
    """Batches of that broker; it drops a repeated sequence, so every request is another one."""
    connections = []
    for number in range(load.connections):
        count = max(60_000 // load.batch, 600) // load.connections
        producer = b"bench-%d-%d" % (load.batch, number)
        requests = [
            cursus_batch(load, number % 4, producer, 1 + load.batch * turn) for turn in range(count)
        ]
        connections.append(Connection(CURSUS_PORT, requests, load.batch, cursus_reply))
    return timed(load, connections)


def wait_until_open(port: int) -> None:
    """Returns once something accepts on the port, or after five seconds."""
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
