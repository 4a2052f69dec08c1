"""The vectors of Cursus over real sockets: what a server in a process of its own answers.

Of those that name no options and need no time; the server keeps its log in files, and topics are
deleted between two vectors. Members have other digits with every connection, and are compared
without them.
"""

from __future__ import annotations

import re
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from support.server import Server
from support.vectors import Vector, data_of, load_vectors

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS_MAX = 10
SHOWS_THE_TIME = "GROUP_STATUS"
VECTORS = [
    vector
    for vector in load_vectors("cursus")
    if not (vector.options or vector.engine or SHOWS_THE_TIME in str(vector.steps))
    and not any("advance" in step for step in vector.steps)
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flags = ("--durability=os", "--set=listeners.cursus.advertised=127.0.0.1:9000")
    running = Server(tmp_path_factory.mktemp("vectors") / "data", *flags).start()
    yield running
    running.stop()


def connected(server: Server, dialect: str = "cursus") -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.ports[dialect]), SECONDS_MAX)


def received(connection: socket.socket, count: int) -> bytes:
    """So many bytes, or those before the end."""
    data = b""
    while len(data) < count and (piece := connection.recv(count - len(data))):
        data += piece
    return data


def asked(connection: socket.socket, command: str) -> str:
    connection.sendall(len(command).to_bytes(4, "big") + command.encode())
    return received(connection, int.from_bytes(received(connection, 4), "big")).decode()


@pytest.fixture
def empty(server: Server) -> Iterator[Server]:
    """The server, whose topics are deleted behind each vector."""
    yield server
    with connected(server) as connection:
        names = asked(connection, "LIST").partition("topics=")[2]
        for name in filter(None, names.split(",")):
            asked(connection, f"DELETE {name}")


def without_digits(data: bytes) -> bytes:
    return re.sub(rb"-\d{4}\b", b"-dddd", data)


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_a_vector_is_answered_over_a_socket(vector: Vector, empty: Server) -> None:
    connections: dict[str, socket.socket] = {}
    with ExitStack() as stack:
        for index, step in enumerate(vector.steps):
            name = step.get("on", "")
            if name not in connections:
                dialect = step.get("dialect", "cursus")
                connections[name] = stack.enter_context(connected(empty, dialect))
            connection = connections[name]
            if step.get("hang_up"):
                connection.shutdown(socket.SHUT_WR)
            else:
                connection.sendall(data_of(step["send"]))
            expected = data_of(step.get("expect"))
            heard = received(connection, len(expected))
            assert without_digits(heard) == without_digits(expected), f"step {index + 1}"
            if step.get("closed"):
                assert received(connection, 1) == b"", f"step {index + 1}"
