"""Groups as servers tell of them, ours and others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.cursus.hear_group import hear_group
from dragoman.codecs.cursus.speaker import CursusSpeaker
from dragoman.core import calls
from support.conversation import Conversation

STATUS: dict[str, Any] = {
    "group_name": "g",
    "topic_name": "ns/t",
    "state": "Stable",
    "generation": 3,
    "member_count": 1,
    "partition_count": 2,
    "members": [
        {"member_id": "c-1", "last_heartbeat": "2026-07-11T10:00:00.25Z", "assignments": [0, 1]}
    ],
    "last_rebalance": "2026-07-11T10:00:00Z",
}


def test_a_status_is_heard() -> None:
    heard = hear_group(calls.DescribeGroup("t", "g", "ns"), json.dumps(STATUS))
    member = calls.MemberDescription("c-1", "", (0, 1), bound=False, heard_us=1_783_764_000_250_000)
    assert heard == calls.GroupDescribed(
        calls.GroupDescription(
            "ns",
            "t",
            "g",
            0,
            3,
            calls.Assignor.ROUND_ROBIN,
            2,
            [member],
            dealt_us=1_783_764_000_000_000,
        )
    )


def test_lists_that_go_writes_as_null_are_empty() -> None:
    member = {"member_id": "m", "assignments": None}
    for told, expected in ((None, []), ([member], [()])):
        heard = hear_group(calls.DescribeGroup("t", "g"), json.dumps({**STATUS, "members": told}))
        assert isinstance(heard, calls.GroupDescribed)
        assert [each.partitions for each in heard.group.members] == expected


@pytest.mark.parametrize(
    ("text", "names"), [("OK count=0 groups=", []), ("OK count=2 groups=a,b", ["a", "b"])]
)
def test_a_list_is_heard(text: str, names: list[str]) -> None:
    heard = hear_group(calls.ListGroups("t"), text)
    assert isinstance(heard, calls.GroupsListed)
    assert [(group.topic, group.name) for group in heard.groups] == [("t", name) for name in names]


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "null", "[]", '{"members":[1]}', "[" * 100_000),
        *(json.dumps({**STATUS, name: []}) for name in ("generation", "partition_count")),
        json.dumps({**STATUS, "members": 1}),
    ],
)
def test_what_is_no_status_breaks_the_protocol(text: str) -> None:
    with pytest.raises(ProtocolError):
        hear_group(calls.DescribeGroup("t", "g"), text)


@pytest.mark.parametrize("text", ["", "OK", "OK count=x groups=a", "OK count=1 groups=a b"])
def test_what_is_no_list_breaks_the_protocol(text: str) -> None:
    with pytest.raises(ProtocolError):
        hear_group(calls.ListGroups(), text)


def test_our_server_and_our_client_agree() -> None:
    server, speaker = Conversation("cursus"), CursusSpeaker()

    def ask(request: calls.Request) -> Any:
        (told,) = speaker.receive(server.send(b"".join(map(bytes, speaker.ask(request)))))
        return told.reply

    ask(calls.CreateTopic("t", 2, if_exists=calls.IfExists.GROW))
    member = ask(calls.JoinGroup("t", "g", "m")).member
    assert [group.name for group in ask(calls.ListGroups("t")).groups] == ["g"]
    assert [group.name for group in ask(calls.ListGroups()).groups] == ["g"]
    group = ask(calls.DescribeGroup("t", "g")).group
    assert group == ask(calls.DescribeGroup("", "g")).group
    assert (group.topic, group.name, group.generation, group.partition_count) == ("t", "g", 1, 2)
    assert [(each.member, each.partitions) for each in group.members] == [(member, (0, 1))]
    assert ask(calls.DescribeGroup("t", "h")).code.name == "UNKNOWN_GROUP"
