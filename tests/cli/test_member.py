"""`dragoman consume --group`: what each member prints, and what the group keeps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.cli.asking import Where
from dragoman.cli.consume import consume
from dragoman.clients.sync import connect
from support.wired import WiredServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredServer]:
    with WiredServer("cursus", "v1", "iggy") as server:
        with connect("cursus", port=server.ports["cursus"]) as client:
            client.create_topic("t", 2)
            client.produce("t", [b"0-0", b"0-1", b"0-2"], partition=0)
            client.produce("t", [b"1-0"], partition=1)
        yield server


def printed(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return [json.loads(line)["value"] for line in capfd.readouterr().out.splitlines()]


@pytest.mark.parametrize("dialect", ["cursus", "v1"])
def test_what_was_printed_is_not_printed_again(
    wired: WiredServer, capfd: Any, dialect: str
) -> None:
    at = Where(dialect, port=wired.ports[dialect])
    assert consume("t", group=f"g-{dialect}", at=at) == 0
    assert sorted(printed(capfd)) == ["0-0", "0-1", "0-2", "1-0"]
    assert consume("t", group=f"g-{dialect}", at=at) == 0
    assert printed(capfd) == []


def test_only_what_was_printed_is_committed(wired: WiredServer, capfd: Any) -> None:
    at = Where(port=wired.ports["cursus"])
    assert consume("t", group="some", max_=2, at=at) == 0
    first = printed(capfd)
    assert consume("t", group="some", at=at) == 0
    assert len(first) == 2
    assert sorted(first + printed(capfd)) == ["0-0", "0-1", "0-2", "1-0"]


def test_a_new_group_may_begin_with_what_comes(wired: WiredServer, capfd: Any) -> None:
    at = Where(port=wired.ports["cursus"])
    assert consume("t", group="new", offset="latest", at=at) == 0
    assert printed(capfd) == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"partition": 1}, "dragoman: a group deals the partitions: --partition goes without it\n"),
        ({"offset": "7"}, "dragoman: a group begins at earliest or latest, not 7\n"),
        ({"max_": -1}, "dragoman: --max is how many records to print, not -1\n"),
    ],
)
def test_what_a_group_cannot_be_told_is_one_sentence(
    wired: WiredServer, capfd: Any, given: dict[str, Any], sentence: str
) -> None:
    at = Where(port=wired.ports["cursus"])
    assert consume("t", group="g", at=at, **given) == 2
    assert capfd.readouterr().err == sentence


def test_a_dialect_without_such_groups_says_so(wired: WiredServer, capfd: Any) -> None:
    assert consume("t", group="g", at=Where("iggy", port=wired.ports["iggy"])) == 2
    assert capfd.readouterr().err.startswith("dragoman: iggy cannot say this: ")


def test_a_missing_topic_is_one_sentence(wired: WiredServer, capfd: Any) -> None:
    assert consume("nope", group="g", at=Where(port=wired.ports["cursus"])) == 1
    heard = capfd.readouterr()
    assert heard.err.startswith("dragoman: unknown topic: ")
    assert heard.err.count("\n") == 1


def test_a_server_that_is_nowhere_is_told_at_once(capfd: Any) -> None:
    assert consume("t", group="g", at=Where(port=1)) == 1
    assert capfd.readouterr().err.startswith("dragoman: cursus server 127.0.0.1:1: ")
