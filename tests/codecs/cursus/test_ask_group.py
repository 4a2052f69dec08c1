"""What commands of groups ask of core; their answers on the wire are vectors."""

from __future__ import annotations

import pytest

from dragoman.codecs.base import Asked
from dragoman.codecs.cursus.ask_group import CONSUMERS_MAX
from dragoman.core import calls
from dragoman.core.calls import ASSIGNED, Whence
from dragoman.core.error import ErrorCode, Failure
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


def test_a_connection_remembers_its_newest_consumers_only() -> None:
    listening = codec()
    for number in range(CONSUMERS_MAX + 1):
        (heard,) = listening.receive(framed(f"JOIN_GROUP t g c{number}"))
        assert isinstance(heard, Asked)
        listening.send(heard.tag, calls.GroupJoined(f"c{number}-0001", 1, ()))
    for number, member in ((0, "c0"), (1, "c1-0001"), (CONSUMERS_MAX, f"c{CONSUMERS_MAX}-0001")):
        (heard,) = listening.receive(framed(f"HEARTBEAT t g x c{number} 1"))
        assert isinstance(heard, Asked)
        assert isinstance(heard.request, calls.Heartbeat)
        assert heard.request.member == member


def test_a_subscription_joins_and_then_follows_what_it_is_assigned() -> None:
    listening = codec(push_records=1000)
    join, follow = listening.receive(framed("SUBSCRIBE t g"))
    assert isinstance(join, Asked)
    assert isinstance(follow, Asked)
    assert isinstance(join.request, calls.JoinGroup)
    assert join.request.bound
    assert isinstance(follow.request, calls.Follow)
    assert (follow.request.partition, follow.request.whence) == (ASSIGNED, Whence.LATEST)
    assert follow.request.records_max == 1000
    assert listening.receive(framed("SUBSCRIBE t g"))[0].request == join.request  # type: ignore[union-attr]


def test_after_a_join_that_was_refused_nothing_more_is_said() -> None:
    listening = codec()
    join, follow = listening.receive(framed("SUBSCRIBE t g"))
    assert isinstance(join, Asked)
    assert isinstance(follow, Asked)
    failure = Failure(ErrorCode.UNKNOWN_TOPIC)
    assert listening.send_failure(join.tag, failure).buffers
    assert not listening.send_failure(follow.tag, failure).buffers
