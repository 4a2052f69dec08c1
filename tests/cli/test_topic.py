"""`dragoman topic`, and what all commands that ask a server share."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.cli import topic
from dragoman.cli.asking import Where
from dragoman.clients.sync import connect
from support.wired import WiredServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredServer]:
    with WiredServer("iggy", "rustlog", "cursus") as server:
        yield server


def rows(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_a_topic_lives_from_create_to_delete(wired: WiredServer, capfd: Any) -> None:
    at = Where("iggy", port=wired.ports["iggy"])
    assert topic.create("lives", partitions=2, at=at) == 0
    assert topic.ls(at=at) == 0
    assert topic.describe("lives", at=at) == 0
    assert topic.delete("lives", at=at) == 0
    assert topic.describe("lives", at=at) == 1
    made, listed, described, deleted = rows(capfd)
    assert made == listed == {"topic": "lives", "partitions": 2}
    assert [partition["high_watermark"] for partition in described["partitions"]] == [0, 0]
    assert deleted == {"topic": "lives", "deleted": True}


def test_settings_are_made_and_shown(wired: WiredServer, capfd: Any) -> None:
    at = Where("cursus", port=wired.ports["cursus"])
    made = topic.create(
        "settled",
        partitions=2,
        retention="7d",
        retention_bytes="1KiB",
        compact=True,
        tombstone="24h",
        idempotent=True,
        dedupe="30m",
        at=at,
    )
    assert made == 0
    assert topic.describe("settled", at=at) == 0
    told = {
        "retention_ms": 604_800_000,
        "retention_bytes": 1024,
        "idempotent": True,
        "compact": True,
        "tombstone_ms": 86_400_000,
        "dedupe_ms": 1_800_000,
    }
    for row in rows(capfd):
        assert {name: row[name] for name in told} == told


def test_a_setting_that_cannot_be_read_or_said_is_code_2(wired: WiredServer, capfd: Any) -> None:
    at = Where("iggy", port=wired.ports["iggy"])
    assert topic.create("never", dedupe="soon", at=at) == 2
    assert "'soon' is not a time" in capfd.readouterr().err
    assert topic.create("never", dedupe="30m", at=at) == 2
    assert "iggy cannot say this" in capfd.readouterr().err


def test_records_are_trimmed(wired: WiredServer, capfd: Any) -> None:
    at = Where("cursus", port=wired.ports["cursus"])
    assert topic.create("trimmed", at=at) == 0
    with connect("cursus", port=wired.ports["cursus"]) as client:
        client.produce("trimmed", [b"0", b"1", b"2"], partition=0)
    assert topic.trim("trimmed", partition=0, before="2", at=at) == 0
    assert topic.trim("trimmed", partition=0, before="end", at=at) == 0
    assert topic.trim("trimmed", partition=0, before="9", at=at) == 1
    assert topic.trim("trimmed", partition=0, before="some", at=at) == 2
    heard = capfd.readouterr()
    starts = [json.loads(line).get("log_start_offset") for line in heard.out.splitlines()]
    assert starts == [None, 2, 3]
    assert "--before is an offset or `end`, not 'some'" in heard.err


def test_what_the_dialect_has_no_words_for_is_code_2(wired: WiredServer, capfd: Any) -> None:
    at = Where("rustlog", port=wired.ports["rustlog"])
    assert topic.delete("anything", at=at) == 2
    heard = capfd.readouterr()
    assert heard.out == ""
    assert heard.err.startswith("dragoman: rustlog cannot say this: ")
    assert heard.err.count("\n") == 1


def test_a_server_that_is_not_there_is_named(capfd: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert topic.ls(at=Where("v1", port=port)) == 1
    assert f"v1 server 127.0.0.1:{port}" in capfd.readouterr().err


def test_a_dialect_that_does_not_exist_is_told_which_do(capfd: Any) -> None:
    assert topic.ls(at=Where("kafka")) == 2
    assert "cursus, v1, iggy, rustlog" in capfd.readouterr().err


def test_the_command_line_leads_to_it(wired: WiredServer) -> None:
    command = Path(sys.executable).with_name("dragoman")
    where = ["--dialect", "iggy", "--port", str(wired.ports["iggy"])]

    def run(*arguments: str) -> tuple[int, bytes]:
        done = subprocess.run(
            [command, *arguments, *where], capture_output=True, check=False, timeout=30
        )
        return done.returncode, done.stdout

    assert run("topic", "create", "by-hand", "--partitions", "1") == (
        0,
        b'{"topic":"by-hand","partitions":1}\n',
    )
    assert run("produce", "by-hand", "a value", "--partition", "0")[0] == 0
    status, out = run("consume", "by-hand", "--offset", "earliest")
    assert status == 0
    assert json.loads(out)["value"] == "a value"
    assert run("topic", "describe", "by-other-hand")[0] == 1


def test_a_topic_of_streams_is_made_and_shown(wired: WiredServer, capfd: Any) -> None:
    at = Where("cursus", port=wired.ports["cursus"])
    assert topic.create("streams", partitions=2, event_sourcing=True, at=at) == 0
    assert topic.describe("streams", at=at) == 0
    assert all(row["event_sourcing"] for row in rows(capfd))


def test_what_is_said_of_a_name_is_about_the_name(wired: WiredServer, capfd: Any) -> None:
    at = Where("cursus", port=wired.ports["cursus"])
    assert topic.create("two words", at=at) == 2
    said = capfd.readouterr().err
    assert said.startswith("dragoman: cursus cannot say this: a Cursus topic is neither empty nor")
