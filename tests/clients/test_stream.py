"""Streams of events through both faces of the client, against the real server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.clients.connection import open_client
from dragoman.clients.error import RequestRefused
from dragoman.clients.stream import StreamEvent
from dragoman.clients.sync import connect
from dragoman.codecs.base import Unsayable
from dragoman.core.calls import Snapshot, TopicConfig
from dragoman.core.error import ErrorCode
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAMS = TopicConfig(event_sourcing=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running
        assert running.stop() == 0


def test_a_stream_is_written_and_read(server: Server) -> None:
    with connect("cursus", port=server.ports["cursus"]) as client:
        assert client.create_topic("s", 2, STREAMS).config.event_sourcing
        first = client.append_event(
            "s", b"k1", 1, b"one", event_type="Made", schema_version=2, metadata="{}"
        )
        assert (first.version, first.partition) == (1, 1)
        client.append_event("s", b"k1", 2, b"two")
        stream = client.read_events("s", b"k1")
        assert stream.events == [
            StreamEvent(1, b"one", "Made", 2, "{}", 0),
            StreamEvent(2, b"two", "", 0, "", 1),
        ]
        assert client.stream_version("s", b"k1") == 2
        with pytest.raises(RequestRefused) as refused:
            client.append_event("s", b"k1", 2, b"too late")
        assert refused.value.code is ErrorCode.VERSION_CONFLICT
        assert client.read_snapshot("s", b"k1") is None
        client.save_snapshot("s", b"k1", 1, b"state \xff")
        assert client.read_snapshot("s", b"k1") == Snapshot(1, b"state \xff")
        stream = client.read_events("s", b"k1")
        assert (stream.snapshot, len(stream.events)) == (Snapshot(1, b"state \xff"), 1)
        assert len(client.read_events("s", b"k1", 1).events) == 2


async def test_the_asynchronous_face_does_the_same(server: Server) -> None:
    async with open_client("cursus", port=server.ports["cursus"]) as client:
        await client.create_topic("a", 1, STREAMS)
        await client.append_event("a", b"k", 1, b"one")
        assert await client.stream_version("a", b"k") == 1
        await client.save_snapshot("a", b"k", 1, b"state")
        assert await client.read_snapshot("a", b"k") == Snapshot(1, b"state")
        assert [event.value for event in (await client.read_events("a", b"k", 1)).events] == [
            b"one"
        ]


@pytest.mark.parametrize("name", ["v1", "iggy", "rustlog"])
def test_other_dialects_have_no_words_for_streams(server: Server, name: str) -> None:
    with connect(name, port=server.ports[name]) as client, pytest.raises(Unsayable):
        client.stream_version("s", b"k")


def test_streams_are_known_after_a_kill(server: Server) -> None:
    with connect("cursus", port=server.ports["cursus"]) as client:
        client.create_topic("killed", 1, STREAMS)
        for version in range(1, 20):
            client.append_event("killed", b"k", version, b"%d" % version)
    server.kill()
    server.start()
    with connect("cursus", port=server.ports["cursus"]) as client:
        assert client.stream_version("killed", b"k") == 19
        assert client.append_event("killed", b"k", 20, b"20").offset == 19
        assert [event.version for event in client.read_events("killed", b"k").events] == [
            *range(1, 21)
        ]
