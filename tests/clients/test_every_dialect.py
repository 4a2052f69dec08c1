"""Every dialect's client against the real server: create, produce, fetch, and across dialects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.clients.sync import connect
from dragoman.codecs.base import Unsayable
from dragoman.codecs.registry import BUILT_IN
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running
        assert running.stop() == 0


def made(server: Server, name: str, topic: str) -> None:
    """Makes the topic by the dialect itself; V1 makes topics by using them."""
    with connect(name, port=server.ports[name]) as client:
        if name == "v1":
            with pytest.raises(Unsayable):
                client.create_topic(topic, 3)
        else:
            created = client.create_topic(topic, 3)
            assert (created.name, len(created.partitions)) == (topic, 3)


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_is_produced_is_fetched(server: Server, name: str) -> None:
    topic = f"own-{name}"
    made(server, name, topic)
    values = [b"value-%d" % number for number in range(25)]
    with connect(name, port=server.ports[name]) as client:
        produced = client.produce(topic, values)
        assert sum(part.count for part in produced) == len(values)
        read = [record.value for p in range(3) for record in client.fetch(topic, p, "earliest")]
        assert sorted(read, key=str) == sorted(values, key=str)


@pytest.mark.parametrize("name", ["cursus", "iggy", "rustlog"])
def test_offsets_are_committed_and_read_back(server: Server, name: str) -> None:
    topic = f"committed-{name}"
    made(server, name, topic)
    with connect(name, port=server.ports[name]) as client:
        client.produce(topic, [b"1", b"2", b"3"], partition=0)
        assert client.committed(topic, "1", 0) in (None, 0)
        client.commit(topic, "1", 0, 2)
        assert client.committed(topic, "1", 0) == 2


@pytest.mark.parametrize("name", ["cursus", "iggy", "v1"])
def test_a_member_joins_and_leaves(server: Server, name: str) -> None:
    topic = f"joined-{name}"
    made(server, "rustlog", topic)
    with connect(name, port=server.ports[name]) as client:
        joined = client.join(topic, "1", "me")
        if name == "iggy":
            client.join(topic, "1", "me")
        else:
            assert joined.partitions == (0, 1, 2)
            client.heartbeat(topic, "1", joined.member, joined.generation)
            member, generation = joined.member, joined.generation
            client.commit(topic, "1", 0, 0, member=member, generation=generation)
        client.leave(topic, "1", joined.member, joined.generation)


def test_a_member_that_is_its_connection_polls_where_it_is_assigned(server: Server) -> None:
    topic = "polled"
    made(server, "rustlog", topic)
    with connect("iggy", port=server.ports["iggy"]) as client:
        client.produce(topic, [b"1", b"2"], partition=1)
        client.join(topic, "5", "me")
        polled = [client.poll(topic, "5") for _ in range(6)]
    assert [(one.partition, one.count) for one in polled] == [
        (0, 0),
        (1, 2),
        (2, 0),
        (0, 0),
        (1, 0),
        (2, 0),
    ]


def test_a_dialect_without_members_says_so(server: Server) -> None:
    with connect("rustlog", port=server.ports["rustlog"]) as client:
        with pytest.raises(Unsayable, match="JoinGroup"):
            client.join("t", "g", "me")
        with pytest.raises(Unsayable):
            client.poll("t", "g")


@pytest.mark.parametrize("reader", BUILT_IN)
@pytest.mark.parametrize("writer", BUILT_IN)
def test_records_cross_from_dialect_to_dialect(server: Server, writer: str, reader: str) -> None:
    topic = f"{writer}-to-{reader}"
    made(server, writer, topic)
    with connect(writer, port=server.ports[writer]) as client:
        client.produce(topic, [b"crossing"])
    with connect(reader, port=server.ports[reader]) as client:
        read = [r.value for p in range(3) for r in client.fetch(topic, p, "earliest")]
    assert read == [b"crossing"]
