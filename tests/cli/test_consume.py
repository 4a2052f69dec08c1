"""`dragoman consume`: where it begins, when it stops, and what it prints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.cli.asking import Where
from dragoman.cli.consume import consume
from dragoman.clients.sync import connect
from support.wired import WiredServer

if TYPE_CHECKING:
    from collections.abc import Iterator

DIALECT = "iggy"


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredServer]:
    with WiredServer(DIALECT) as server:
        with connect(DIALECT, port=server.ports[DIALECT]) as client:
            client.create_topic("t", 2)
            client.produce("t", [b"0-0", b"\xff\x00", b"0-2"], partition=0)
            client.produce("t", [b"1-0", "dritter Brief, Köln".encode()], partition=1)
        yield server


@pytest.fixture
def at(wired: WiredServer) -> Where:
    return Where(DIALECT, port=wired.ports[DIALECT])


def rows(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def places(found: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in found]


def test_all_partitions_are_read_to_their_ends(at: Where, capfd: Any) -> None:
    assert consume("t", at=at) == 0
    found = rows(capfd)
    assert places(found) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert found[0]["value"] == "0-0"
    assert found[0]["key"] is None
    assert found[0]["timestamp_us"] > 0
    assert found[4]["value"] == "dritter Brief, Köln"


def test_bytes_that_are_no_text_come_as_base64_and_say_so(at: Where, capfd: Any) -> None:
    assert consume("t", partition=0, offset="1", max_=1, at=at) == 0
    (row,) = rows(capfd)
    assert (row["value"], row["encoding"]) == ("/wA=", "base64")


@pytest.mark.parametrize(
    ("offset", "expected"), [("earliest", [0, 1, 2]), ("2", [2]), ("latest", []), ("99", [])]
)
def test_reading_begins_where_it_is_told(
    at: Where, capfd: Any, offset: str, expected: list[int]
) -> None:
    assert consume("t", partition=0, offset=offset, at=at) == 0
    assert [row["offset"] for row in rows(capfd)] == expected


def test_it_stops_after_as_many_as_asked(at: Where, capfd: Any) -> None:
    assert consume("t", max_=4, at=at) == 0
    assert places(rows(capfd)) == [(0, 0), (0, 1), (0, 2), (1, 0)]


def test_it_follows_all_partitions_until_it_has_enough(at: Where, capfd: Any) -> None:
    assert consume("t", max_=5, follow=True, at=at) == 0
    assert sorted(places(rows(capfd))) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


def test_a_missing_topic_is_refused_while_following_too(at: Where, capfd: Any) -> None:
    assert consume("nowhere", at=at) == 1
    assert consume("nowhere", partition=0, follow=True, at=at) == 1
    assert capfd.readouterr().err.count("unknown topic") == 2


def test_an_offset_that_is_none_is_refused_before_anything_is_asked(at: Where, capfd: Any) -> None:
    assert consume("t", offset="newest", at=at) == 2
    assert "earliest or latest" in capfd.readouterr().err


def test_a_count_below_zero_is_refused(at: Where, capfd: Any) -> None:
    assert consume("t", max_=-1, at=at) == 2
    assert "--max" in capfd.readouterr().err


def test_a_server_that_is_not_there_is_said_in_the_systems_words(capfd: Any) -> None:
    assert consume("t", at=Where("iggy", port=1)) == 1
    assert capfd.readouterr().err == "dragoman: iggy server 127.0.0.1:1: Connection refused\n"


def test_a_reader_that_goes_away_is_no_failure(wired: WiredServer) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    arguments = ["consume", "t", "--dialect", DIALECT, "--port", str(wired.ports[DIALECT])]
    done = subprocess.run(
        [Path(sys.executable).with_name("dragoman"), *arguments],
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
        timeout=30,
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_follow_that_is_interrupted_says_nothing(wired: WiredServer) -> None:
    arguments = ["consume", "t", "--follow", "--dialect", DIALECT]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "dragoman.cli.main",
            *arguments,
            "--port",
            str(wired.ports[DIALECT]),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell starts what runs in its background deaf to interrupts, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, b"")
