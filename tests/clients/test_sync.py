"""The synchronous face of the client, over socket pairs and against a wired server."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from dragoman.clients.error import ConnectionLost, NoAnswer, RequestRefused, Unreachable
from dragoman.clients.sync import SyncClient, connect
from dragoman.codecs.registry import dialect
from dragoman.core import calls
from dragoman.core.error import ErrorCode
from support.wired import WiredServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredServer]:
    with WiredServer("cursus", "iggy", "rustlog") as server:
        yield server


def test_records_go_there_and_back(wired: WiredServer) -> None:
    with connect("iggy", port=wired.ports["iggy"]) as client:
        client.create_topic("sync", 2)
        client.produce("sync", [b"a", b"b"], partition=1)
        assert [record.value for record in client.fetch("sync", 1, 0)] == [b"a", b"b"]
        assert client.fetch("sync", 1, "latest") == []
        client.commit("sync", "7", 1, 2)
        assert client.committed("sync", "7", 1) == 2
        assert [len(topic.partitions) for topic in client.topics()] == [2]
        client.delete_topic("sync")
        with pytest.raises(RequestRefused) as refused:
            client.describe("sync")
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC


def test_requests_sent_together_are_answered_in_order(wired: WiredServer) -> None:
    with connect("rustlog", port=wired.ports["rustlog"]) as client:
        client.create_topic("together", 1)
        replies = client.ask_many(
            [calls.Ping(), calls.Fetch("together", 9), calls.Fetch("together", 0), calls.Ping()]
        )
    names = [type(reply).__name__ for reply in replies]
    assert names == ["Ponged", "Failure", "Fetched", "Ponged"]


@pytest.mark.parametrize("name", ["iggy", "rustlog"])
def test_a_follow_without_push_asks_again_and_again(wired: WiredServer, name: str) -> None:
    with connect(name, port=wired.ports[name]) as client:
        client.create_topic(f"again-{name}", 1)
        client.produce(f"again-{name}", [b"1", b"2"], partition=0)
        pushes = client.follow(f"again-{name}", 0, "earliest")
        first = next(pushes)
        assert (first.start_offset, first.next_offset) == (0, 2)
        with connect(name, port=wired.ports[name]) as writer:
            writer.produce(f"again-{name}", [b"3"], partition=0)
        assert next(pushes).next_offset == 3


def test_an_unreachable_server_is_named_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with (
        pytest.raises(Unreachable, match=f"iggy server 127.0.0.1:{port}"),
        connect("iggy", port=port),
    ):
        pass


def test_a_silent_server_is_given_up() -> None:
    ours, theirs = socket.socketpair()
    client = SyncClient(ours, dialect("rustlog").speaker(), read_timeout_s=0.01)
    with theirs, pytest.raises(NoAnswer):
        client.ask(calls.Ping())


@pytest.mark.parametrize(("said", "message"), [(b"", "closed"), (b"\xff" * 8, "broke")])
def test_a_lost_connection_is_named(said: bytes, message: str) -> None:
    ours, theirs = socket.socketpair()
    client = SyncClient(ours, dialect("rustlog").speaker())
    theirs.sendall(said)
    theirs.shutdown(socket.SHUT_WR)
    with theirs, pytest.raises(ConnectionLost, match=message):
        client.ask(calls.Ping())
    client.close()


@pytest.mark.parametrize("name", ["gzip", "lz4", "snappy", "zstd"])
def test_compressed_batches_are_read_back_plain(wired: WiredServer, name: str) -> None:
    with connect("cursus", port=wired.ports["cursus"], compression=name) as client:
        client.create_topic(f"packed-{name}", 1)
        client.produce(f"packed-{name}", [b"a" * 100_000, b"b"], partition=0)
    with connect("rustlog", port=wired.ports["rustlog"]) as client:
        values = [record.value for record in client.fetch(f"packed-{name}", 0, 0)]
    assert values == [b"a" * 100_000, b"b"]


def test_an_option_that_a_dialect_does_not_have_is_refused_before_anything_is_opened() -> None:
    with (
        pytest.raises(ValueError, match="iggy: unknown option 'compression'"),
        connect("iggy", port=1, compression="gzip"),
    ):
        pass
