"""Groups of this dialect beside members of others, on one log."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest

from dragoman.codecs.iggy import wire
from dragoman.codecs.iggy.group import member_id, member_number
from dragoman.codecs.iggy.xxhash import xxh32
from dragoman.core.calls import CreateTopic, MemberDescription, TopicCreated
from support.conversation import Conversation
from support.cursus import framed
from support.iggy import answer, frame, message, named, numbered, partition, send, u32

PLACE = numbered(4294967295) + named("t")
"""The topic `t` that dialects without streams write to."""


def group(code: int, number: int = 7) -> bytes:
    return frame(code, PLACE + u32(number))


def poll_group(number: int = 7, *, count: int = 10, commit: bool = True) -> bytes:
    tail = struct.pack("<IBQIB", 0, 5, 0, count, commit)
    return frame(100, struct.pack("<BI", 2, number) + PLACE + tail)


def store_group(offset: int, number: int = 7) -> bytes:
    return frame(121, struct.pack("<BI", 2, number) + PLACE + struct.pack("<IQ", 0, offset))


@pytest.fixture
def iggy() -> Conversation:
    """A connection to a topic of three partitions."""
    conversation = Conversation("iggy")
    outcome = conversation.engine.handle(
        CreateTopic("t", 3), conversation.session.client, conversation.now
    )
    assert isinstance(outcome.reply, TopicCreated)
    conversation.exchange.settle()
    return conversation


def members(conversation: Conversation, number: int = 7) -> dict[int, list[int]]:
    told = conversation.send(group(600, number))
    assert told[:4] == bytes(4), told[:8].hex()
    return {
        member.number: list(member.partitions)
        for member in wire.GROUP_DETAILS.parse(told[8:]).members
    }


def client_id(conversation: Conversation) -> int:
    return crc32(conversation.session.client.peer.encode())


def test_a_member_is_called_by_what_no_other_connection_has() -> None:
    first = member_id(("127.0.0.1", 5), b"a")
    assert first != member_id(("127.0.0.1", 5), b"b")
    shown = member_number(MemberDescription(first, "iggy", (), bound=True))
    assert shown == crc32(b"127.0.0.1:5")


@pytest.mark.parametrize("member", ["c1", "5", "99999999999-x", "é"])
def test_members_that_this_dialect_did_not_name_show_as_their_hash(member: str) -> None:
    for dialect in ("v1", "cursus"):
        described = MemberDescription(member, dialect, (), bound=False)
        assert member_number(described) == xxh32(member.encode())


def test_members_of_all_dialects_share_the_partitions(iggy: Conversation) -> None:
    assert iggy.send(group(602) + group(604)) == answer() * 2
    assert members(iggy) == {client_id(iggy): [1, 2, 3]}
    v1 = iggy.another("v1")
    assert v1.send(b"V1|1|JOIN|7 t ~\n") == b"V1|1|OK|generation=3 assigned=[1]\n"
    assert members(iggy) == {client_id(iggy): [1, 3], xxh32(b"~"): [2]}
    iggy.hang_up()
    assert v1.send(b"V1|2|HEARTBEAT|7 t ~ 3\n").endswith(b"stale generation\n")
    assert v1.send(b"V1|3|JOIN|7 t ~\n") == b"V1|3|OK|generation=4 assigned=[0 1 2]\n"


def test_a_group_of_another_dialect_has_a_number_here(iggy: Conversation) -> None:
    v1 = iggy.another("v1")
    v1.send(b"V1|1|JOIN|workers t c\n")
    listed = wire.GROUPS.parse(iggy.send(frame(601, PLACE))[8:])
    ((number, partitions, count),) = [(g.number, g.partitions, g.members) for g in listed]
    assert (partitions, count) == (3, 1)
    assert iggy.send(group(604, number)) == answer()
    assert len(members(iggy, number)) == 2


def test_what_a_group_committed_here_others_go_on_from(iggy: Conversation) -> None:
    iggy.send(send(message(b"a"), message(b"b"), to=partition(1), at=PLACE))
    assert iggy.send(group(602) + group(604)) == answer() * 2
    assert iggy.send(poll_group(count=1))[8:12] == u32(1)
    v1 = iggy.another("v1")
    assert v1.send(b"V1|1|OFFSET|7 t 0\n") == b"V1|1|OK|offset=1\n"


def test_nothing_is_stored_for_a_partition_that_went_to_another_member(iggy: Conversation) -> None:
    iggy.send(send(message(b"a"), to=partition(1), at=PLACE))
    iggy.send(send(message(b"b"), to=partition(2), at=PLACE))
    assert iggy.send(group(602) + group(604)) == answer() * 2
    assert iggy.send(poll_group(commit=False))[8:12] == u32(1)
    assert iggy.send(poll_group(commit=False))[8:12] == u32(2)
    v1 = iggy.another("v1")
    assert b"assigned=[1]" in v1.send(b"V1|1|JOIN|7 t ~\n")
    assert iggy.send(store_group(0)) == answer(status=5002)
    assert v1.send(b"V1|2|OFFSET|7 t 1\n") == b"V1|2|OK|offset=0\n"
    assert iggy.send(poll_group(commit=False))[8:12] == u32(3)


def test_a_group_does_not_outlive_its_topic(iggy: Conversation) -> None:
    assert iggy.send(group(602) + group(604)) == answer() * 2
    assert iggy.send(frame(303, PLACE)) == answer()
    assert iggy.send(group(604)) == answer(status=2011)


def test_every_number_of_a_group_is_answered(iggy: Conversation) -> None:
    for number in (0, 1, 2**31 - 1, 2**31, 2**32 - 1):
        for code in (600, 603, 604, 605):
            assert iggy.send(group(code, number)) == answer(status=5000)
        assert iggy.send(poll_group(number)) == answer(status=5000)
        assert iggy.send(store_group(0, number)) == answer(status=5000)
    assert iggy.send(group(602, 2**32 - 1)) == answer()


def test_a_topic_without_partitions_is_each_dialects_partition_error(iggy: Conversation) -> None:
    assert iggy.send(frame(403, PLACE + u32(3))) == answer()
    v1 = iggy.another("v1")
    assert v1.send(b"V1|1|JOIN|g t c\n") == b"V1|1|ERR|BAD_REQUEST|invalid partition\n"
    cursus = iggy.another("cursus")
    told = cursus.send(framed("JOIN_GROUP topic=t group=g member=c"))
    assert told == framed("ERROR: partition_not_found partition=0")
    assert iggy.send(group(602) + group(604)) == answer() * 2
    assert iggy.send(poll_group()) == answer(status=3008)
