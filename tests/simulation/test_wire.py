"""A simulated connection: bytes arrive when and as the run says, and either end may hang up."""

from __future__ import annotations

from random import Random

from dragoman.codecs.registry import dialect
from dragoman.simulation.clock import SimClock
from dragoman.simulation.server import Server, Stop
from dragoman.simulation.trace import Trace
from dragoman.simulation.wire import SOCKET_BYTES_MAX, Connection

PING = b"V1|1|PING|\n"


def connected() -> tuple[Server, Connection]:
    server = Server(Random(1), SimClock(), Trace())
    server.start()
    connection = server.connect(dialect("v1"))
    assert connection is not None
    return server, connection


def test_a_request_may_arrive_byte_by_byte() -> None:
    server, connection = connected()
    connection.to_server += PING
    for _ in PING:
        assert connection.take(100) == b""
        server.bring(connection, 1)
    assert connection.take(100).startswith(b"V1|1|ERR|UNKNOWN_COMMAND")


def test_after_a_hang_up_the_server_hears_what_was_sent_before() -> None:
    server, connection = connected()
    connection.to_server += PING
    connection.hang_up(reset=False)
    server.bring(connection, len(PING))
    assert connection.session.requests + connection.session.refusals == 1
    assert connection.is_heard
    server.bring(connection, 0)
    assert connection.is_gone
    assert connection.to_client == b""


def test_after_a_reset_the_server_hears_nothing_more() -> None:
    _, connection = connected()
    connection.to_server += PING
    connection.hang_up(reset=True)
    assert connection.is_gone
    assert not connection.is_heard
    assert connection.session.refusals == 0


def test_bytes_on_their_way_outlive_the_server() -> None:
    server, connection = connected()
    connection.to_server += PING
    server.bring(connection, len(PING))
    server.crash(Stop.KILL)
    assert connection.take(100)
    assert connection.is_broken


def test_a_client_that_does_not_read_is_sent_so_much_and_no_more() -> None:
    server, connection = connected()
    connection.to_server += PING * 1000
    while connection.is_heard:
        server.bring(connection, 1 << 20)
    assert len(connection.to_client) == SOCKET_BYTES_MAX
    told = b""
    while data := connection.take(1000):
        told += data
    assert told.count(b"\n") == 1000


def test_a_witness_is_told_what_left_the_server_whether_it_arrived_or_not() -> None:
    for ends in ("reads", "hangs up", "resets", "is cut off"):
        server, connection = connected()
        told: list[bytes] = []
        connection.witness = told.append
        connection.to_server += PING * 1000
        while connection.is_heard:
            server.bring(connection, 1 << 20)
        assert len(b"".join(told)) == SOCKET_BYTES_MAX
        if ends == "reads":
            while connection.take(1000):
                pass
        elif ends == "is cut off":
            server.crash(Stop.KILL)
        else:
            connection.hang_up(reset=ends == "resets")
            connection.attend()
        assert b"".join(told).count(b"\n") == 1000
