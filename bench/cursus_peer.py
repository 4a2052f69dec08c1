"""A peer for the same minute: a Cursus broker of December 2025, where `--cursus-broker` names it.

That broker knows neither the idempotent byte nor the event fields of a batch, listens on port 9000
of every interface, does not sync before it answers, drops sequences that it has seen, hands records
to members of a group alone, forgets those after ten seconds whatever they say, and hangs when a
topic is made twice. So every request is another one, and every loop joins a group of its own.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from load import Connection, Load, Result, checked, cursus_reply, timed, values
from peers import wait_until_open

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 9000
PARTITIONS = 4
READ_TOPIC = "bench-read"
READ_PRELOAD = 20
READ_WAIT_S = 10
_U32 = struct.Struct(">I").pack


@contextmanager
def cursus_broker(binary: str | None, cpu: int) -> Iterator[bool]:
    """That broker with its data in a directory of its own; False where none is named."""
    if binary is None:
        yield False
        return
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", PORT)) == 0:
            raise SystemExit(f"somebody else listens on port {PORT}, which that broker needs")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as directory:
        process = subprocess.Popen(
            [str(Path(binary).absolute())],
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
        )
        try:
            wait_until_open(PORT)
            told(f"CREATE topic=bench partitions={PARTITIONS}")
            told(f"CREATE topic={READ_TOPIC} partitions=1")
            _fill()
            yield True
        finally:
            process.terminate()
            process.wait()


def told(command: str) -> str:
    """What it answers to a command."""
    with socket.create_connection(("127.0.0.1", PORT), 5) as sock:
        sock.sendall(_command(command))
        with sock.makefile("rb") as stream:
            return stream.read(int.from_bytes(stream.read(4), "big")).decode()


def _command(text: str) -> bytes:
    body = b"\x00\x05admin" + text.encode()
    return _U32(len(body)) + body


def _batch(load: Load, topic: str, partition: int, producer: bytes, first: int) -> bytes:
    """One frame of the load's batch in its layout, with sequences that begin at `first`."""
    records = values(load)
    name = topic.encode()
    parts = [b"\xba\x7c", struct.pack(">H", len(name)), name]
    parts.append(struct.pack(">iB1s", partition, 1, b"1"))
    parts.append(struct.pack(">QQI", first, first + len(records) - 1, len(records)))
    for sequence, value in enumerate(records, first):
        parts.append(struct.pack(">QQH", 0, sequence, len(producer)))
        parts.append(producer)
        parts.append(struct.pack(">HqI", 0, 1, len(value)))
        parts.append(value)
    body = b"".join(parts)
    return _U32(len(body)) + body


def _fill() -> None:
    """Puts records where consumers read, and waits until the last of them can be read."""
    filling = Load("cursus", "produce", PORT, batch=1000)
    requests = [
        _batch(filling, READ_TOPIC, 0, b"filler", 1 + 1000 * turn) for turn in range(READ_PRELOAD)
    ]
    connection = Connection(PORT, requests, 1000, cursus_reply)
    with connection.socket:
        for _ in requests:
            connection.send()
            while not connection.receive():
                pass
    ends = time.monotonic() + READ_WAIT_S
    last = Load("cursus", "fetch", PORT, batch=1, seconds=0)
    while True:
        try:
            consume(last, first=1000 * READ_PRELOAD - 1)
        except ValueError:
            if time.monotonic() > ends:
                raise
        else:
            return


def produce(load: Load) -> Result:
    """Batches of new sequences, over as many connections as the load has."""
    connections = []
    for number in range(load.connections):
        count = max(200_000 // load.batch, 600) // load.connections
        producer = b"bench-%d-%d" % (time.monotonic_ns(), number)
        requests = [
            _batch(load, "bench", number % PARTITIONS, producer, 1 + load.batch * turn)
            for turn in range(count)
        ]
        connections.append(Connection(PORT, requests, load.batch, cursus_reply))
    return timed(load, connections)


def consume(load: Load, first: int = 0) -> Result:
    """CONSUME of the load's batch from one offset after another, by a new member."""
    us = f"topic={READ_TOPIC} group=g{time.monotonic_ns()}"
    joined = told(f"JOIN_GROUP {us} member=bench")
    found = re.search(r"generation=(\d+) member=(\S+)", joined)
    if found is None:
        raise ValueError(f"refused: {joined}")
    whole = 1000 * READ_PRELOAD
    member = f"{us} partition=0 member={found[2]} generation={found[1]} batch={load.batch}"
    # Behind offset 0, which it takes for none at all.
    offsets = range(first or 1, whole - load.batch + 1, max(load.batch, 100))
    requests = [_command(f"CONSUME {member} offset={offset}") for offset in offsets]
    return timed(load, [Connection(PORT, requests, load.batch, _read)])


def _read(data: bytes | bytearray, batch: int) -> tuple[int, int]:
    """A `ReplyEnd` of a batch in its layout."""
    if len(data) < 4:
        return 0, 0
    end = 4 + int.from_bytes(data[:4], "big")
    if len(data) < end:
        return 0, 0
    if data[4:6] != b"\xba\x7c":
        raise ValueError(f"refused: {bytes(data[4:end])[:200]!r}")
    acks_at = 12 + int.from_bytes(data[6:8], "big")
    count = int.from_bytes(data[acks_at + 1 + data[acks_at] + 16 :][:4], "big")
    return end, checked(count, batch)
