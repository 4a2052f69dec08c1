"""The gateway of a run: works at their own pace, and every way in which a life ends."""

from __future__ import annotations

import errno
from random import Random
from typing import TYPE_CHECKING

import pytest

from dragoman.codecs.registry import dialect
from dragoman.simulation.clock import SimClock
from dragoman.simulation.server import Server, Stop
from dragoman.simulation.trace import Trace

if TYPE_CHECKING:
    from dragoman.simulation.wire import Connection

CREATE = b"\0\0\0\x1d\0\0CREATE topic=t partitions=1"
PUBLISH = b"\0\0\0\x0b\0\x01tpublished"


def made() -> tuple[Server, Connection]:
    """A server with one client's connection."""
    server = Server(Random(1), SimClock(), Trace())
    server.start()
    connection = server.connect(dialect("cursus"))
    assert connection is not None
    return server, connection


def said(server: Server, connection: Connection, data: bytes) -> bytes:
    """What is answered once everything is done."""
    connection.to_server += data
    while connection.is_heard:
        server.bring(connection, len(connection.to_server))
    server.settle()
    return connection.take(1 << 20)


def test_a_reply_waits_for_its_flush() -> None:
    server, connection = made()
    said(server, connection, CREATE)
    connection.to_server += PUBLISH
    server.bring(connection, len(PUBLISH))
    server.poke()
    assert not connection.to_client
    server.settle()
    assert connection.take(100)[4:] == b"OK"


def test_a_server_that_is_down_has_no_connections() -> None:
    server, _ = made()
    server.crash(Stop.KILL)
    assert server.connect(dialect("v1")) is None
    assert server.connections == []


@pytest.mark.parametrize("stop", list(Stop))
def test_what_was_acknowledged_outlives_every_end(stop: Stop) -> None:
    server, connection = made()
    said(server, connection, CREATE)
    said(server, connection, PUBLISH)
    if stop is Stop.ORDERLY:
        server.stop()
    else:
        server.crash(stop)
    assert connection.is_gone
    server.start(cuts=0 if stop is Stop.ORDERLY else 3)
    assert server.store is not None
    assert server.store.catalog.topics[1].partitions[0].next_offset == 1
    assert server.store.clean is (stop is Stop.ORDERLY)


def test_a_failed_sync_fences_this_life_only() -> None:
    server, connection = made()
    said(server, connection, CREATE)
    server.disk.fail_at(1, errno.EIO, "sync")
    assert b"ERROR" in said(server, connection, PUBLISH)
    assert server.is_fenced
    assert server.life.is_impaired
    server.crash(Stop.POWER)
    server.start()
    assert not server.is_fenced
    assert not server.life.is_impaired


def test_a_recovery_that_finds_the_disk_full_is_tried_again() -> None:
    server, _ = made()
    server.crash(Stop.KILL)
    server.disk.bytes_max = 0
    server.start()
    assert server.engine is not None
    assert server.lives == 3


def test_time_passes_for_all_who_wait() -> None:
    server, connection = made()
    said(server, connection, CREATE)
    poll = b"\0\0CONSUME topic=t partition=0 offset=0 member=m wait_ms=500"
    assert said(server, connection, len(poll).to_bytes(4, "big") + poll) == b""
    server.tick(600_000)
    server.settle()
    assert connection.take(100)
