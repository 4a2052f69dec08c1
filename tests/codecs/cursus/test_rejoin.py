"""Members that are told of a new generation where they read, known by their names."""

from __future__ import annotations

import pytest

from dragoman.codecs.cursus.rejoin import is_told_by_reads, member_of
from dragoman.core import calls
from support.asked import asked

NAME = "3f2b8c1e-5d4a-4c6b-9e7f-0a1b2c3d4e5f"


def test_a_name_that_is_a_uuid_always_makes_the_same_member() -> None:
    member = member_of(NAME)
    assert member is not None
    assert member == member_of(NAME)
    assert member.startswith(f"{NAME}-")
    assert is_told_by_reads(member)
    assert member_of(NAME.upper()) is not None


@pytest.mark.parametrize(
    "member", ["", NAME, f"{NAME}-1234-5678", "consumer-1a2b3c4d-0001", f"g{NAME[1:]}-0001"]
)
def test_other_members_are_told_by_their_heartbeats(member: str) -> None:
    assert not is_told_by_reads(member)


@pytest.mark.parametrize("name", ["c1", f"{NAME}-0001", NAME[:-1], "consumer-1a2b3c4d"])
def test_other_names_make_new_members(name: str) -> None:
    assert member_of(name) is None


@pytest.mark.parametrize("keyword", ["CONSUME", "STREAM"])
def test_only_reads_of_such_members_are_fenced(keyword: str) -> None:
    text = f"{keyword} topic=t partition=0 offset=0 group=g generation=3"
    request = asked(f"{text} member={NAME}-0001").request
    assert isinstance(request, calls.Fetch | calls.Follow)
    assert (request.group, request.member, request.generation) == ("g", f"{NAME}-0001", 3)
    for member in ("consumer-1a2b3c4d-0001", "x" * 41):
        request = asked(f"{text} member={member}").request
        assert isinstance(request, calls.Fetch | calls.Follow)
        assert (request.member, request.generation) == ("", None)
    request = asked(f"{keyword} topic=t partition=0 offset=0 member={NAME}-0001").request
    assert isinstance(request, calls.Fetch | calls.Follow)
    assert request.member == ""


def test_such_a_member_is_heard_in_any_generation() -> None:
    request = asked(f"HEARTBEAT topic=t group=g member={NAME}-0001 generation=3").request
    assert isinstance(request, calls.Heartbeat)
    assert request.generation is None
    request = asked(f"HEARTBEAT t g c {NAME}-0001 3").request
    assert isinstance(request, calls.Heartbeat)
    assert request.generation == 3
