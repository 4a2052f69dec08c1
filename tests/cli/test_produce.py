"""`dragoman produce`: arguments, stdin, keys, and what it prints."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING

import pytest

from dragoman.cli.asking import Where
from dragoman.cli.produce import lines_of, produce
from dragoman.clients.sync import connect
from support.wired import WiredServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredServer]:
    with WiredServer("cursus", "iggy", "rustlog") as server:
        for name, port in server.ports.items():
            with connect(name, port=port) as client:
                client.create_topic(f"from-{name}", 1)
        yield server


def test_values_are_written_and_their_place_printed(
    wired: WiredServer, capfd: pytest.CaptureFixture[str]
) -> None:
    at = Where("rustlog", port=wired.ports["rustlog"])
    assert produce("from-rustlog", "one", "two", partition=0, at=at) == 0
    row = json.loads(capfd.readouterr().out)
    assert row == {"partition": 0, "base_offset": row["base_offset"], "count": 2}


def test_what_a_dialect_does_not_tell_is_null(
    wired: WiredServer, capfd: pytest.CaptureFixture[str]
) -> None:
    at = Where("iggy", port=wired.ports["iggy"])
    assert produce("from-iggy", "one", key="k", at=at) == 0
    row = json.loads(capfd.readouterr().out)
    assert row == {"partition": None, "base_offset": None, "count": 1}


def test_what_a_dialect_cannot_say_is_one_sentence_and_code_2(
    wired: WiredServer, capfd: pytest.CaptureFixture[str]
) -> None:
    at = Where("rustlog", port=wired.ports["rustlog"])
    assert produce("from-rustlog", "one", key="k", at=at) == 2
    heard = capfd.readouterr()
    assert heard.out == ""
    assert heard.err.startswith("dragoman: rustlog cannot say this: ")
    assert "a payload and nothing else: no key" in heard.err
    assert heard.err.count("\n") == 1


def test_a_refused_request_is_code_1(wired: WiredServer, capfd: pytest.CaptureFixture[str]) -> None:
    at = Where("iggy", port=wired.ports["iggy"])
    assert produce("nowhere", "one", at=at) == 1
    assert "unknown topic" in capfd.readouterr().err


def test_a_dash_stands_for_the_lines_of_stdin(
    wired: WiredServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"line 1\nline 2\n\xff last")
    os.close(theirs)
    with open(ours, "rb") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        at = Where("rustlog", port=wired.ports["rustlog"])
        assert produce("from-rustlog", "first", "-", "after", partition=0, at=at) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [row["count"] for row in rows] == [1, 2, 1, 1]
    with connect("rustlog", port=wired.ports["rustlog"]) as client:
        records = client.fetch("from-rustlog", 0, rows[0]["base_offset"])
    assert [record.value for record in records] == [
        b"first",
        b"line 1",
        b"line 2",
        b"\xff last",
        b"after",
    ]


def test_lines_go_out_as_they_arrive() -> None:
    ours, theirs = os.pipe()
    lines = lines_of(ours)
    os.write(theirs, b"a\nb\nc")
    assert next(lines) == [b"a", b"b"]
    writer = threading.Thread(target=lambda: (os.write(theirs, b"d\n"), os.close(theirs)))
    writer.start()
    assert [*lines] == [[b"cd"]]
    writer.join()
    os.close(ours)


@pytest.mark.parametrize("values", [(), ("one", "--partitoin", "0")])
def test_nothing_to_write_and_an_unknown_option_are_refused_before_anything_is_written(
    values: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    assert produce("t", *values, at=Where("iggy", port=1)) == 2
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("port", [-1, 0, 65_536])
def test_a_port_that_is_none_is_refused(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert produce("t", "one", at=Where("iggy", port=port)) == 2
    assert capfd.readouterr().err == f"dragoman: {port} is not a port\n"


def test_batches_are_compressed_when_asked(
    wired: WiredServer, capfd: pytest.CaptureFixture[str]
) -> None:
    at = Where("cursus", port=wired.ports["cursus"])
    values = ["a" * 1000, "b"]
    assert produce("from-cursus", *values, partition=0, compression="gzip", at=at) == 0
    assert json.loads(capfd.readouterr().out)["count"] == 2


@pytest.mark.parametrize(
    ("dialect", "compression", "said"),
    [
        ("cursus", "rar", "cursus: compression is one of none, gzip, lz4,"),
        ("iggy", "gzip", "iggy: unknown option 'compression'"),
    ],
)
def test_a_compression_that_cannot_be_is_one_sentence_and_code_2(
    wired: WiredServer,
    capfd: pytest.CaptureFixture[str],
    dialect: str,
    compression: str,
    said: str,
) -> None:
    at = Where(dialect, port=wired.ports[dialect])
    assert produce("from-iggy", "one", compression=compression, at=at) == 2
    heard = capfd.readouterr()
    assert said in heard.err
    assert heard.err.count("\n") == 1
