"""`dragoman group`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.cli import group
from dragoman.cli.asking import REFUSED, UNSAYABLE, Where
from dragoman.clients.sync import connect
from support.wired import WiredServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredServer]:
    with WiredServer("cursus", "iggy", "v1") as server:
        with connect("cursus", port=server.ports["cursus"]) as client:
            client.create_topic("t", 2)
            client.produce("t", [b"a", b"b"], partition=1)
            client.join("t", "g", "m")
        yield server


def rows(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_groups_are_listed(wired: WiredServer, capfd: Any) -> None:
    at = Where(port=wired.ports["cursus"])
    assert group.ls(at=at) == 0
    assert group.ls("t", at=at) == 0
    assert rows(capfd) == [{"group": "g", "topic": "t", "generation": 1, "members": 1}] * 2


def test_a_description_has_members_and_progress(wired: WiredServer, capfd: Any) -> None:
    assert group.describe("t", "g", at=Where(port=wired.ports["cursus"])) == 0
    (row,) = rows(capfd)
    (member,) = row["members"]
    assert member["partitions"] == [0, 1]
    assert row["partitions"][1] == {
        "partition": 1,
        "member": member["member"],
        "committed": 0,
        "high_watermark": 2,
        "lag": 2,
    }


def test_a_group_is_deleted(wired: WiredServer, capfd: Any) -> None:
    at = Where("iggy", port=wired.ports["iggy"])
    with connect("iggy", port=wired.ports["iggy"]) as client:
        client.create_topic("numbered", 1)
        client.join("numbered", "7", "m")
        assert group.delete("numbered", "7", at=at) == 0
    assert group.ls("numbered", at=at) == 0
    assert rows(capfd) == [{"group": "7", "topic": "numbered", "deleted": True}]


def test_what_is_refused_or_cannot_be_said_has_its_exit_code(
    wired: WiredServer, capfd: Any
) -> None:
    at = Where(port=wired.ports["cursus"])
    assert group.describe("t", "nobody", at=at) == REFUSED
    assert group.ls("nothing", at=at) == REFUSED
    assert group.delete("t", "g", at=at) == UNSAYABLE
    assert group.ls(at=Where("v1", port=wired.ports["v1"])) == UNSAYABLE
    captured = capfd.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 4
