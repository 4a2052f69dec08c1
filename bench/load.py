"""One load: a dialect's requests, encoded before the clock starts, over plain sockets.

Runs in a process of its own (`python bench/load.py '{...}'`), prints one JSON object. The timed
loop sends bytes, finds each reply's end and checks that it is a success of the expected shape; a
request is done when its whole reply has been read. Latency is from just before the send until then.
"""

from __future__ import annotations

import json
import os
import random
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.codecs.registry import dialect
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import CreateTopic, Fetch, Produce
from dragoman.core.column import VarColumn

if TYPE_CHECKING:
    from dragoman.core.calls import Request

ReplyEnd = Callable[[bytes | bytearray, int], tuple[int, int]]
"""Takes bytes and the records expected; finds the end of the reply at their start (0: more is
needed) and the records in it. Raises ValueError where it is not a success of the expected shape."""

U32BE = struct.Struct(">I")
U32LE = struct.Struct("<I")
ALPHABET = b"abcdefghijklmnopqrstuvwxyz0123456789"
RECEIVE_BYTES = 1 << 20
V1_REPLY_BYTES = 1 << 20


@dataclass(frozen=True)
class Load:
    """What one run does.

    Attributes:
        op: "produce" or "fetch".
        spread: Record sizes lie evenly within this share of `size` to both sides; 0: all equal.
        batch: Records in one request; in V1 that many lines in one write.
        preload: Requests of 1,000 records put into each partition before a fetch.
        preload_dialect: Who fills the topic before a fetch; "" for the dialect itself.
        once: Read every preloaded request once, instead of for `seconds`.
        cpu: The processor of this process, or None.
        server_pid: Whose CPU time is reported.
    """

    dialect: str
    op: str
    port: int
    size: int = 100
    spread: float = 0.0
    batch: int = 1
    connections: int = 1
    seconds: float = 0.5
    topic: str = "bench"
    preload: int = 20
    preload_dialect: str = ""
    once: bool = False
    cpu: int | None = None
    server_pid: int = 0


@dataclass
class Result:
    """What one run measured; latencies in milliseconds, server CPU in microseconds a request."""

    requests_per_s: float
    records_per_s: float
    mb_per_s: float
    p50_ms: float
    p99_ms: float
    server_cpu_us: float


def values(load: Load) -> list[bytes]:
    """`batch` printable values whose mean size is `size`."""
    low, high = round(load.size * (1 - load.spread)), round(load.size * (1 + load.spread))
    dice = random.Random(7)
    whole = ALPHABET * (high // len(ALPHABET) + 1)
    return [whole[: dice.randint(low, high)] for _ in range(load.batch)]


def produce(load: Load, partition: int) -> Request:
    """One request of the load's shape."""
    records = values(load)
    batch = RecordBatch(len(records), VarColumn.of(records), origin=Origin.NONE)
    if load.dialect == "v1":
        batch.keys = VarColumn.of([b"key-%d" % partition] * len(records))
        return Produce(load.topic, batch)
    return Produce(load.topic, batch, partition)


def cursus_reply(data: bytes | bytearray, batch: int) -> tuple[int, int]:
    """A `ReplyEnd`: acknowledgement JSON, or a batch."""
    if len(data) < 4:
        return 0, 0
    end = 4 + U32BE.unpack_from(data)[0]
    if len(data) < end:
        return 0, 0
    if data[4:6] == b"\xba\x7c":
        acks_at = 12 + int.from_bytes(data[6:8], "big")
        count = U32BE.unpack_from(data, acks_at + 1 + data[acks_at] + 17)[0]
    elif b'"status":"OK"' in data[4:end]:
        count = batch
    else:
        raise ValueError(f"refused: {bytes(data[4:end])[:200]!r}")
    return end, checked(count, batch)


def rustlog_reply(data: bytes | bytearray, batch: int) -> tuple[int, int]:
    """A `ReplyEnd` of the binary form."""
    if len(data) < 5:
        return 0, 0
    end = 4 + U32BE.unpack_from(data)[0]
    if len(data) < end:
        return 0, 0
    if data[4] == 2:
        # A fetch says bytes, not records, so with mixed sizes the number only comes near the batch.
        return end, U32BE.unpack_from(data, 5)[0]
    if data[4] != 1:
        raise ValueError(f"refused: {bytes(data[4:80])!r}")
    return end, checked(U32BE.unpack_from(data, 13)[0], batch)


def iggy_reply(data: bytes | bytearray, batch: int) -> tuple[int, int]:
    """A `ReplyEnd`: empty for a send, polled messages otherwise."""
    if len(data) < 8:
        return 0, 0
    status, size = struct.unpack_from("<II", data)
    if status:
        raise ValueError(f"refused with status {status}")
    if len(data) < 8 + size:
        return 0, 0
    return 8 + size, checked(U32LE.unpack_from(data, 20)[0], batch) if size else batch


def v1_reply(data: bytes | bytearray, batch: int) -> tuple[int, int]:
    """A `ReplyEnd`: as many lines as were written, or one line of messages."""
    if data[-1:] != b"\n":
        return 0, 0
    if b"|ERR|" in data:
        raise ValueError(f"refused: {bytes(data[:200])!r}")
    if b"|OK|messages=" in data[:40]:
        return len(data), data.count(b",") + 1
    return (len(data), batch) if data.count(b"\n") == batch else (0, 0)


def checked(count: int, batch: int) -> int:
    """The count, which has to be that of the batch."""
    if count != batch:
        raise ValueError(f"{count} records where {batch} were expected")
    return count


REPLIES: dict[str, ReplyEnd] = {
    "cursus": cursus_reply,
    "v1": v1_reply,
    "iggy": iggy_reply,
    "rustlog": rustlog_reply,
}


class Connection:
    """One socket with its prepared requests, one in flight at a time."""

    __slots__ = (
        "buffer",
        "expected",
        "records",
        "reply",
        "requests",
        "sent_at",
        "socket",
        "turn",
    )

    def __init__(self, port: int, requests: list[bytes], expected: int, reply: ReplyEnd) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.requests = requests
        self.expected = expected
        self.reply = reply
        self.turn = 0
        self.buffer = bytearray()
        self.sent_at = 0.0
        self.records = 0

    def send(self) -> None:
        """Sends the next request."""
        request = self.requests[self.turn]
        self.turn = (self.turn + 1) % len(self.requests)
        self.sent_at = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Reads what is there; True once the reply is whole."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the server closed the connection")
        buffer = self.buffer
        if buffer:
            buffer += data
            data = buffer  # type: ignore[assignment]
        end, count = self.reply(data, self.expected)
        if end == 0:
            if not buffer:
                buffer += data
            return False
        if end != len(data):
            raise ValueError("more was answered than asked")
        buffer.clear()
        self.records += count
        return True


def requests_of(load: Load, partition: int) -> tuple[list[bytes], int]:
    """The prepared requests of one connection, and the records or lines of each reply."""
    if load.op == "produce":
        speaker = dialect(load.dialect).speaker()
        return [b"".join(map(bytes, speaker.ask(produce(load, partition))))], load.batch
    if load.dialect == "v1":
        # A reply runs to the end of the log or the reply limit, so only the offset is chosen.
        last = 1000 * load.preload - load.batch
        offsets = range(0, last + 1, V1_REPLY_BYTES // (load.size + 10)) if load.once else (last,)
    else:
        offsets = range(0, 1000 * load.preload - load.batch + 1, max(load.batch, 100))
    bytes_max = load.batch * (load.size + 12) if load.dialect == "rustlog" else 8 * 1024 * 1024
    requests = []
    for offset in offsets:
        speaker = dialect(load.dialect).speaker()
        asked = Fetch(load.topic, partition, offset, records_max=load.batch, bytes_max=bytes_max)
        requests.append(b"".join(map(bytes, speaker.ask(asked))))
    return requests, load.batch


def prepare(load: Load, partitions: int) -> None:
    """Makes the topic, and for a fetch fills it, in chunks of 1,000 records."""
    maker = load.preload_dialect or ("rustlog" if load.dialect == "v1" else load.dialect)
    ports = json.loads(os.environ["BENCH_PORTS"])
    speaker = dialect("rustlog").speaker()
    with socket.create_connection(("127.0.0.1", ports["rustlog"]), 10) as sock:
        for buffer in speaker.ask(CreateTopic(load.topic, partitions)):
            sock.sendall(buffer)
        sock.recv(65_536)
    if load.op == "fetch":
        filling = Load(
            dialect=maker,
            op="produce",
            port=ports[maker],
            size=load.size,
            spread=load.spread,
            batch=1000,
            topic=load.topic,
        )
        for partition in range(partitions):
            requests, expected = requests_of(filling, partition)
            connection = Connection(filling.port, requests, expected, REPLIES[maker])
            with connection.socket:
                for _ in range(load.preload):
                    connection.send()
                    while not connection.receive():
                        pass


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far; 0 where nobody asked."""
    if not pid:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(load: Load, connections: list[Connection]) -> Result:
    """Runs the load for its time."""
    poller = select.epoll()
    by_descriptor = {c.socket.fileno(): c for c in connections}
    for descriptor in by_descriptor:
        poller.register(descriptor, select.EPOLLIN)
    latencies: list[float] = []
    clock = time.perf_counter
    for connection in connections:
        connection.send()
    cpu = cpu_seconds(load.server_pid)
    started = clock()
    ends = started + load.seconds
    waiting = len(connections)
    left = sum(len(c.requests) for c in connections) - waiting if load.once else -1
    while waiting:
        for descriptor, _ in poller.poll():
            connection = by_descriptor[descriptor]
            if connection.receive():
                now = clock()
                latencies.append(now - connection.sent_at)
                if left != 0 and (left > 0 or now < ends):
                    left -= left > 0
                    connection.send()
                else:
                    waiting -= 1
    took = clock() - started
    cpu = cpu_seconds(load.server_pid) - cpu
    for connection in connections:
        connection.socket.close()
    latencies.sort()
    count = len(latencies)
    records = sum(connection.records for connection in connections)
    return Result(
        requests_per_s=count / took,
        records_per_s=records / took,
        mb_per_s=records * load.size / took / 1e6,
        p50_ms=latencies[count // 2] * 1e3,
        p99_ms=latencies[min(count - 1, count * 99 // 100)] * 1e3,
        server_cpu_us=cpu / count * 1e6,
    )


def run(load: Load) -> Result:
    """Prepares and measures one load."""
    if load.cpu is not None:
        os.sched_setaffinity(0, {load.cpu})
    partitions = min(load.connections, 4)
    prepare(load, partitions)
    prepared = [requests_of(load, partition) for partition in range(partitions)]
    connections = [
        Connection(load.port, *prepared[number % partitions], REPLIES[load.dialect])
        for number in range(load.connections)
    ]
    if not load.once:
        for connection in connections[:partitions]:
            connection.send()
            while not connection.receive():
                pass
            connection.records = 0
    return timed(load, connections)


if __name__ == "__main__":
    print(json.dumps(asdict(run(Load(**json.loads(sys.argv[1]))))))
