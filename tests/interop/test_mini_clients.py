"""Clients of our own for the dialects that have no published one, across a kill of the server.

They share nothing with the server: sockets, `struct` and `json`, written from what the dialects'
documents and clients say. They need no network, so they are part of every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interop.mini import rustlog_binary, rustlog_json, v1
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDS = 1000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as running:
        yield running
        assert running.stop() == 0


def kill_and_start(server: Server) -> None:
    server.kill()
    server.start()


def test_rustlog_in_binary_keeps_what_it_acknowledged(server: Server) -> None:
    values = [b"%d\x00\n," % n for n in range(RECORDS)]
    with rustlog_binary.BinaryClient(server.ports["rustlog"]) as client:
        client.create("demo", 2)
        assert client.produce("demo", 1, values[:400]) == 0
        assert client.produce("demo", 1, values[400:]) == 400
        assert client.fetch("demo", 1, 0, group="new") == ([], 0)
        assert client.commit("g", "demo", 1, 900)
    kill_and_start(server)
    with rustlog_binary.BinaryClient(server.ports["rustlog"]) as client:
        assert client.fetch("demo", 1, 0) == (values, RECORDS)
        assert client.fetch("demo", 1, 5, bytes_max=1) == ([values[5]], 6)
        assert client.committed("g", "demo", 1) == 900
        assert client.committed("g", "demo", 0) is None
        assert client.fetch("demo", 1, 3, group="g") == (values[900:], RECORDS)
        assert client.fetch("demo", 1, 5000) == ([], 5000)
        assert client.produce("demo", 1, [b"after"]) == RECORDS
        with pytest.raises(rustlog_binary.Refused, match="already exists"):
            client.create("demo", 2)


def test_rustlog_in_json_keeps_what_it_acknowledged(server: Server) -> None:
    values = [b"%d\x00\xff," % n for n in range(RECORDS)]
    with rustlog_binary.BinaryClient(server.ports["rustlog"]) as maker:
        maker.create("demo", 1)
    with rustlog_json.JsonClient(server.ports["rustlog"]) as client:
        assert client.produce("demo", 0, values) == [*range(RECORDS)]
        assert client.commit("g", "demo", 0, 990)
        assert not client.commit("g", "missing", 0, 1)
    kill_and_start(server)
    with rustlog_json.JsonClient(server.ports["rustlog"]) as client:
        assert client.fetch("demo", 0, 0) == ([*enumerate(values)], RECORDS)
        assert client.committed("g", "demo", 0) == 990
        assert client.committed("none", "demo", 0) is None
        assert client.fetch("demo", 0, 3, group="g")[0][0] == (990, values[990])
        assert client.fetch("demo", 0, 5000) == ([], RECORDS)
        with pytest.raises(rustlog_json.Refused, match="partition not found: topic=demo"):
            client.fetch("demo", 7, 0)


def test_the_python_runtimes_loop_of_v1_goes_on_after_a_kill(server: Server) -> None:
    def run(client: v1.PythonClient, generation: int) -> list[str]:
        """One round of its runtime: join, sync, then each partition from its offset on."""
        joined = client.ask("JOIN", "g", "orders", "c1", "assignor=round_robin")
        assert v1.number_as_python(joined, "generation") == generation
        member = ("g", "orders", "c1", generation)
        partitions = v1.assigned(client.ask("SYNC", *member))
        assert partitions == v1.assigned(joined) == [0, 1, 2]
        assert client.ask("HEARTBEAT", *member) == "heartbeat=ok"
        seen = []
        for partition in partitions:
            at = v1.number_as_python(client.ask("OFFSET", "g", "orders", partition), "offset")
            while messages := client.consume("orders", partition, at):
                assert [offset for offset, _ in messages] == [*range(at, at + len(messages))]
                at += len(messages)
                seen += [value for _, value in messages]
                assert client.ask("COMMIT", *member, partition, at) == "committed=true"
        return seen

    with v1.PythonClient(server.ports["v1"]) as client:
        for n in range(RECORDS):
            produced = client.ask("PRODUCE", "orders", f"k{n % 7}:v|{n}=%", "acks=1")
            assert v1.number_as_python(produced, "hw") >= v1.number_as_python(produced, "offset")
        assert sorted(run(client, 2)) == sorted(f"v|{n}=%" for n in range(RECORDS))
    kill_and_start(server)
    with v1.PythonClient(server.ports["v1"]) as client:
        client.ask("PRODUCE", "orders", "k:after", "acks=all")
        assert client.ask("HEARTBEAT", "g", "orders", "c1", 2) == "heartbeat=ok"
        assert run(client, 2) == ["after"]
        assert client.ask("LEAVE", "g", "orders", "c1", 2) == "left=true"
        with pytest.raises(v1.Refused, match="GENERATION_MISMATCH"):
            client.ask("HEARTBEAT", "g", "orders", "c1", 2)


def test_the_typescript_client_of_v1_finds_its_replies_among_many(server: Server) -> None:
    with v1.TypeScriptClient(server.ports["v1"]) as client:
        lines = client.ask_all(*(f"PRODUCE|t k{n % 5}:value-{n} acks=1" for n in range(RECORDS)))
        places = [
            tuple(
                v1.number_as_typescript(v1.payload_of(line), name)
                for name in ("partition", "offset")
            )
            for line in lines
        ]
    kill_and_start(server)
    with v1.TypeScriptClient(server.ports["v1"]) as client:
        replies = client.ask_all(*(f"CONSUME|t {partition} 0" for partition in range(3)))
    found = {
        (partition, offset): value
        for partition, line in enumerate(replies)
        for offset, value in v1.read_as_typescript(line)
    }
    assert found == {place: f"value-{n}" for n, place in enumerate(places)}
