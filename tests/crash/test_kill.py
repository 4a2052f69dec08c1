"""SIGKILL of the real server under load of all dialects, again and again, on one data directory.

Afterwards a reader sees every acknowledged record once and in its writer's order, offsets without a
gap, nothing that was never sent, and the last committed offset that was answered.
"""

from __future__ import annotations

import random
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from dragoman.codecs.registry import BUILT_IN, dialect
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    ROUND_ROBIN,
    CommitOffset,
    CreateTopic,
    Fetch,
    Fetched,
    FetchOffset,
    OffsetCommitted,
    OffsetFetched,
    OffsetKind,
    Produce,
    Produced,
    TopicCreated,
)
from dragoman.core.column import VarColumn
from support.effort import effort
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dragoman.core.calls import Reply, Request, Route
    from dragoman.core.error import Failure

KILLS = effort("CRASH_KILLS", 30)
"""How often; `make crash` sets a longer form."""
SEED = effort("CRASH_SEED", 20)
PARTITIONS = 3
WRITERS = [(name, batch) for name in BUILT_IN for batch in (1, 7)]
LOAD_S = (0.05, 0.35)


class Caller:
    """A blocking connection that asks one request at a time."""

    def __init__(self, name: str, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.speaker = dialect(name).speaker()

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


class Writer(threading.Thread):
    """Writes numbered records until the server is gone, and remembers what was acknowledged."""

    def __init__(self, name: str, batch: int, number: int) -> None:
        super().__init__(daemon=True)
        self.dialect = name
        self.batch = batch
        self.number = number
        self.sent = 0
        self.acknowledged: list[tuple[int, int]] = []
        self.failure: Exception | None = None
        self.port = 0

    def run(self) -> None:
        try:
            caller = Caller(self.dialect, self.port)
            with caller.socket:
                while True:
                    first = self.sent
                    self.sent += self.batch
                    values = [b"%d:%d" % (self.number, n) for n in range(first, self.sent)]
                    batch = RecordBatch(self.batch, VarColumn.of(values), origin=Origin.NONE)
                    route: Route = self.number % PARTITIONS
                    if self.dialect == "v1":
                        # The server chooses by key there.
                        batch.keys = VarColumn.of([b"k%d" % self.number] * self.batch)
                        route = ROUND_ROBIN
                    reply = caller.ask(Produce("load", batch, route))
                    assert isinstance(reply, Produced), reply
                    self.acknowledged.append((first, self.sent))
        except OSError:
            pass
        except Exception as error:
            self.failure = error

    def again(self, port: int) -> Writer:
        """The same writer on its next life."""
        other = Writer(self.dialect, self.batch, self.number)
        other.sent = self.sent
        other.acknowledged = self.acknowledged
        other.port = port
        return other


class Committer(threading.Thread):
    """Commits rising offsets until the server is gone."""

    def __init__(self, port: int, committed: list[int]) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.committed = committed
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            caller = Caller("rustlog", self.port)
            with caller.socket:
                while True:
                    offset = self.committed[-1] + 1
                    reply = caller.ask(CommitOffset("load", "g", ((0, offset),)))
                    assert isinstance(reply, OffsetCommitted), reply
                    self.committed.append(offset)
        except OSError:
            pass
        except Exception as error:
            self.failure = error


def start_all(writers: list[Writer], server: Server) -> list[Writer]:
    started = [writer.again(server.ports[writer.dialect]) for writer in writers]
    for writer in started:
        writer.start()
    return started


def read_all(caller: Caller, partition: int) -> list[tuple[int, bytes]]:
    rows: list[tuple[int, bytes]] = []
    offset = 0
    while True:
        reply = caller.ask(Fetch("load", partition, offset, bytes_max=4 << 20))
        assert isinstance(reply, Fetched), reply
        if not reply.slices:
            return rows
        for piece in reply.slices:
            records = piece.batch.records(piece.first, piece.last)
            rows.extend((record.offset, record.value or b"") for record in records)
        offset = reply.next_offset


def check_records(writers: list[Writer], read: Callable[[int], list[tuple[int, bytes]]]) -> int:
    seen: dict[int, list[int]] = {writer.number: [] for writer in writers}
    for partition in range(PARTITIONS):
        rows = read(partition)
        assert [offset for offset, _ in rows] == list(range(len(rows))), "offsets without a gap"
        for _, value in rows:
            number, _, n = value.partition(b":")
            seen[int(number)].append(int(n))
    for writer in writers:
        records = seen[writer.number]
        assert records == sorted(set(records)), f"{writer.dialect}: once each and in order"
        held = set(records)
        lost = [
            n for first, last in writer.acknowledged for n in range(first, last) if n not in held
        ]
        assert not lost, f"{writer.dialect}: acknowledged and lost: {lost[:10]}"
        assert not records or records[-1] < writer.sent, "nothing that was never sent"
    return sum(len(records) for records in seen.values())


@pytest.mark.slow
@pytest.mark.timeout(40 + 12 * KILLS)
def test_no_acknowledged_record_or_commit_is_lost_by_kills_under_load(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    server = Server(tmp_path / "data", "--set", "storage.segment_bytes=256KiB")
    writers = [Writer(name, batch, number) for number, (name, batch) in enumerate(WRITERS)]
    committed = [0]
    with server:
        caller = Caller("rustlog", server.ports["rustlog"])
        with caller.socket:
            made = caller.ask(CreateTopic("load", PARTITIONS))
        assert isinstance(made, TopicCreated), made
        for _ in range(KILLS):
            writers = start_all(writers, server)
            committer = Committer(server.ports["rustlog"], committed)
            committer.start()
            committer.join(dice.uniform(*LOAD_S))
            server.kill()
            for thread in (*writers, committer):
                thread.join(20)
                assert thread.failure is None, thread.failure
            server.start()
            caller = Caller("rustlog", server.ports["rustlog"])
            with caller.socket:
                found = caller.ask(FetchOffset("load", "g", 0, kind=OffsetKind.GROUP))
            assert isinstance(found, OffsetFetched), found
            assert (found.offset or 0) in (committed[-1], committed[-1] + 1)
            committed[-1] = found.offset or 0
        caller = Caller("rustlog", server.ports["rustlog"])
        with caller.socket:
            kept = check_records(writers, lambda partition: read_all(caller, partition))
        assert kept > KILLS
        assert server.stop() == 0
