"""`dragoman verify`: what it prints of a sound, a damaged and no data directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.cli.verify import verify
from dragoman.clients.sync import connect
from support.server import Server

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The log of a server that took 300 records and stopped in order."""
    with Server(tmp_path / "data") as server:
        with connect("iggy", port=server.ports["iggy"]) as client:
            client.create_topic("t", 1)
            for number in range(3):
                client.produce("t", [b"%d" % number * 100] * 100, partition=0)
        assert server.stop() == 0
    return tmp_path / "data"


def rows(capfd: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_a_sound_directory_verifies(data: Path, capfd: Any) -> None:
    assert verify(str(data)) == 0
    (summary,) = rows(capfd)
    assert (summary["records"], summary["damage"], summary["clean"]) == (300, 0, True)


def test_damage_is_named_with_offsets_and_file(data: Path, capfd: Any) -> None:
    (segment,) = [
        path
        for path in (data / "topics").rglob("*")
        if path.is_file() and b"0" * 100 in path.read_bytes()
    ]
    damaged = bytearray(segment.read_bytes())
    damaged[damaged.index(b"0" * 100)] ^= 1
    segment.write_bytes(damaged)
    assert verify(str(data)) == 1
    heard = capfd.readouterr()
    damage, summary = map(json.loads, heard.out.splitlines())
    assert damage["damage"]["topic"] == "t"
    assert damage["damage"]["first"] == 0
    assert damage["damage"]["path"] == str(segment)
    assert summary["damage"] == 1
    assert str(segment) in heard.err


def test_what_is_no_data_directory_is_said_in_one_sentence(tmp_path: Path, capfd: Any) -> None:
    assert verify(str(tmp_path)) == 2
    heard = capfd.readouterr()
    assert heard.out == ""
    assert heard.err.count("\n") == 1


def test_what_a_crash_left_is_a_remark_and_the_status_is_that_of_a_sound_one(
    tmp_path: Path, capfd: Any
) -> None:
    with Server(tmp_path / "data") as server:
        with connect("iggy", port=server.ports["iggy"]) as client:
            client.create_topic("t", 1)
            client.produce("t", [b"x"] * 100, partition=0)
        server.kill()
    (tmp_path / "data" / "visible").write_bytes(b"torn")
    assert verify(str(tmp_path / "data")) == 0
    remark, summary = rows(capfd)
    assert "visible" in remark["remark"]
    assert (summary["damage"], summary["remarks"], summary["clean"]) == (0, 1, False)


def test_beside_a_live_server_under_load_nothing_is_named(tmp_path: Path, capfd: Any) -> None:
    flags = ("--set", "storage.segment_bytes=65536", "--set", "storage.checkpoint_interval_s=0.2")
    with Server(tmp_path / "data", *flags) as server:
        with connect("iggy", port=server.ports["iggy"]) as client:
            client.create_topic("t", 2)
            for number in range(2000):
                client.produce("t", [b"%d" % number * 200] * 100, partition=number % 2)
                if number % 4 == 0:
                    assert verify(str(tmp_path / "data")) == 0
                    (summary,) = rows(capfd)
                    if summary["indexes"] > 20:
                        break
        assert summary["indexes"] > 20
        assert server.stop() == 0
