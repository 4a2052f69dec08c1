"""Looking at groups through both faces of the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.clients.connection import open_client
from dragoman.clients.error import RequestRefused
from dragoman.clients.group import Progress
from dragoman.clients.sync import connect
from dragoman.codecs.base import Unsayable
from support.wired import WiredServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredServer]:
    with WiredServer("cursus", "iggy", "v1") as server:
        with connect("cursus", port=server.ports["cursus"]) as client:
            for topic in ("t", "u"):
                client.create_topic(topic, 2)
            client.produce("t", [b"a", b"b", b"c"], partition=1)
            joined = client.join("t", "g", "m")
            client.commit("t", "g", 1, 1, member=joined.member, generation=joined.generation)
            client.join("u", "g", "m")
            client.join("u", "h", "m")
        yield server


def test_groups_of_all_topics_and_of_one_are_listed(wired: WiredServer) -> None:
    with connect("cursus", port=wired.ports["cursus"]) as client:
        found = [(group.topic, group.name, len(group.members)) for group in client.groups()]
        assert found == [("t", "g", 1), ("u", "g", 1), ("u", "h", 1)]
        assert [group.name for group in client.groups("u")] == ["g", "h"]


def test_progress_tells_how_far_behind_a_group_is(wired: WiredServer) -> None:
    with connect("cursus", port=wired.ports["cursus"]) as client:
        group = client.describe_group("t", "g")
        (member,) = group.members
        assert client.group_progress("t", group) == [
            Progress(0, member.member, 0, 0, 0),
            Progress(1, member.member, 1, 3, 2),
        ]


def test_where_nothing_was_committed_all_that_is_kept_is_behind(wired: WiredServer) -> None:
    with connect("cursus", port=wired.ports["cursus"]) as client:
        client.create_topic("trimmed", 1)
        client.produce("trimmed", [b"a", b"b", b"c"], partition=0)
        client.delete_records("trimmed", 0, 1)
        client.join("trimmed", "g", "m")
        (only,) = client.group_progress("trimmed", client.describe_group("trimmed", "g"))
        assert (only.high_watermark, only.lag) == (3, 2)


def test_a_group_that_is_not_there_is_refused(wired: WiredServer) -> None:
    with (
        connect("cursus", port=wired.ports["cursus"]) as client,
        pytest.raises(RequestRefused, match="unknown group"),
    ):
        client.describe_group("t", "nobody")


def test_a_dialect_deletes_groups_and_lists_them_by_topic(wired: WiredServer) -> None:
    with connect("iggy", port=wired.ports["iggy"]) as client:
        client.create_topic("numbered", 1)
        client.join("numbered", "7", "m")
        assert [group.name for group in client.groups() if group.topic == "numbered"] == ["7"]
        assert (
            client.group_progress("numbered", client.describe_group("numbered", "7"))[0].lag is None
        )
        client.delete_group("numbered", "7")
        assert client.groups("numbered") == []


def test_what_a_dialect_has_no_words_for_is_said(wired: WiredServer) -> None:
    with connect("v1", port=wired.ports["v1"]) as client, pytest.raises(Unsayable):
        client.groups()
    with connect("cursus", port=wired.ports["cursus"]) as client, pytest.raises(Unsayable):
        client.delete_group("t", "g")


async def test_the_trio_face_says_the_same(wired: WiredServer) -> None:
    at = ("cursus", "127.0.0.1", wired.ports["cursus"])
    with connect(*at) as client:
        group = client.describe_group("t", "g")
        told = (client.groups("u"), client.group_progress("t", group))
    async with open_client(*at) as other:
        group = await other.describe_group("t", "g")
        assert (await other.groups("u"), await other.group_progress("t", group)) == told
        with pytest.raises(Unsayable):
            await other.delete_group("t", "g")
