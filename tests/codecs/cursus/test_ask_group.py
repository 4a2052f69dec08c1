"""What commands of groups ask of core; their answers on the wire are vectors."""

from __future__ import annotations

import pytest

from dragoman.codecs.base import Asked
from dragoman.core import calls
from support.asked import asked, codec
from support.cursus import framed


def test_commits_of_members_are_fenced_and_never_fall() -> None:
    request = asked(
        "COMMIT_OFFSET topic=t partition=1 group=g offset=5 generation=2 member=m"
    ).request
    assert isinstance(request, calls.CommitOffset)
    assert (request.member, request.generation, request.monotonic) == ("m", 2, True)
    assert request.offsets == ((1, 5),)


@pytest.mark.parametrize(
    "pairs", ["0:11,1:12", "P0:11,P1:12", "0:11 1:12", "P0:11, P1:12", ",0:11,,1:12,"]
)
def test_pairs_are_taken_in_every_form(pairs: str) -> None:
    request = asked(f"BATCH_COMMIT topic=t group=g generation=1 member=m {pairs}").request
    assert isinstance(request, calls.CommitOffset)
    assert request.offsets == ((0, 11), (1, 12))


def test_members_of_one_connection_get_different_digits() -> None:
    listening = codec()
    members = set()
    for _ in range(5):
        (heard,) = listening.receive(framed("JOIN_GROUP topic=t group=g member=c"))
        assert isinstance(heard, Asked)
        assert isinstance(heard.request, calls.JoinGroup)
        members.add(heard.request.member)
    assert len(members) == 5
