"""The client's half: what it says, what it has no words for, and what it makes of the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.codecs.base import ProtocolError, Unsayable
from dragoman.codecs.v1.speaker import V1Speaker
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    ROUND_ROBIN,
    Acks,
    Assignor,
    CommitOffset,
    CreateTopic,
    Fetch,
    Fetched,
    FetchOffset,
    GroupJoined,
    GroupLeft,
    Heartbeat,
    HeartbeatAccepted,
    JoinGroup,
    LeaveGroup,
    ListTopics,
    OffsetCommitted,
    OffsetFetched,
    OffsetKind,
    Ping,
    Produce,
    Produced,
    ProducedMany,
    ReplicaReported,
    ReportReplica,
    Role,
    RoleSet,
    SetRole,
    SyncGroup,
    Whence,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from support.conversation import Conversation

if TYPE_CHECKING:
    from dragoman.core.calls import Reply, Request


def batch(values: list[bytes | None], keys: list[bytes | None] | None = None) -> RecordBatch:
    columns = None if keys is None else VarColumn.of(keys)
    return RecordBatch(len(values), VarColumn.of(values), origin=Origin.NONE, keys=columns)


def said(request: Request) -> bytes:
    return b"".join(map(bytes, V1Speaker().ask(request)))


class Pair:
    """A speaker and a server."""

    def __init__(self) -> None:
        self.speaker = V1Speaker()
        self.server = Conversation("v1")

    def ask(self, request: Request) -> Reply | Failure:
        sent = b"".join(map(bytes, self.speaker.ask(request)))
        (told,) = self.speaker.receive(self.server.send(sent))
        return told.reply


def test_every_request_is_answered_in_core_words() -> None:
    pair = Pair()
    assert pair.ask(Produce("t", batch([b"a"], [b"user1"]))) == Produced(2, 0, 1, 1)
    assert pair.ask(JoinGroup("t", "g", "c", assignor=Assignor.RANGE)) == GroupJoined(
        "c", 1, (0, 1, 2)
    )
    assert pair.ask(SyncGroup("t", "g", "c", 1)) == GroupJoined("c", 1, (0, 1, 2))
    assert pair.ask(Heartbeat("t", "g", "c", 1)) == HeartbeatAccepted("c", 1)
    commit = CommitOffset("t", "g", ((2, 1),), member="c", generation=1)
    assert pair.ask(commit) == OffsetCommitted(1)
    assert pair.ask(FetchOffset("t", "g", 2)) == OffsetFetched(2, 1, 0)
    assert pair.ask(LeaveGroup("t", "g", "c", 1)) == GroupLeft("c", True)
    fetched = pair.ask(Fetch("t", 2, whence=Whence.EARLIEST))
    assert isinstance(fetched, Fetched)
    assert fetched.count == 1


def test_roles_and_replicas_are_answered_in_core_words() -> None:
    pair = Pair()
    pair.ask(Produce("t", batch([b"a"], [b"user1"])))
    assert pair.ask(ReportReplica("t", 2, 1, 0)) == ReplicaReported(2, 1, 0, 1, (0, 1), False)
    set_role = SetRole("t", 2, Role.FOLLOWER)
    assert pair.ask(set_role) == RoleSet("default", "t", 2, Role.FOLLOWER, 1)
    refused = pair.ask(Produce("t", batch([b"a"], [b"user1"])))
    assert isinstance(refused, Failure)
    assert refused.code is ErrorCode.NOT_LEADER


def test_refusals_are_heard_as_failures() -> None:
    pair = Pair()
    for request, code in (
        (Fetch("t", 3), ErrorCode.UNKNOWN_PARTITION),
        (Fetch("t", 0, -1), ErrorCode.INVALID_OFFSET),
        (Fetch("a:b", 0), ErrorCode.INVALID_NAME),
        (Heartbeat("t", "g", "c", 1), ErrorCode.UNKNOWN_GROUP),
    ):
        reply = pair.ask(request)
        assert isinstance(reply, Failure)
        assert reply.code is code


def test_records_of_one_key_are_told_as_one_run() -> None:
    pair = Pair()
    assert pair.ask(Produce("t", batch([b"a", b"b", b"c"]), acks=Acks.ALL)) == Produced(1, 0, 3, 3)


def test_records_of_several_keys_are_told_part_by_part() -> None:
    reply = Pair().ask(Produce("t", batch([b"1", b"2", b"3", b"4"], [b"a", b"b", b"c", b"a"])))
    assert isinstance(reply, ProducedMany)
    assert reply.places == [0, 0, 1, 2]
    assert [(p.partition, p.base_offset, p.count) for p in reply.parts] == [  # type: ignore[union-attr]
        (1, 0, 2),
        (2, 0, 1),
        (1, 2, 1),
    ]


def test_refused_lines_among_others_stay_at_their_place() -> None:
    speaker = V1Speaker()
    speaker.ask(Produce("t", batch([b"1", b"2", b"3"])))
    assert speaker.receive(b"V1|1|OK|partition=0 offset=5 hw=5\nV1|2|ERR|SERVER_ERROR|x\n") == []
    (told,) = speaker.receive(b"V1|3|ERR|SERVER_ERROR|x\n")
    assert isinstance(told.reply, ProducedMany)
    assert told.reply.places == [0, 1, 1]


def test_replies_may_arrive_in_pieces() -> None:
    speaker = V1Speaker()
    speaker.ask(FetchOffset("t", "g", 0))
    speaker.ask(FetchOffset("t", "g", 1))
    heard = [
        told.reply
        for byte in b"V1|1|OK|offset=7\r\nV1|2|OK|offset=8\n"
        for told in speaker.receive(bytes((byte,)))
    ]
    assert heard == [OffsetFetched(0, 7, 0), OffsetFetched(1, 8, 0)]


@pytest.mark.parametrize(
    "line",
    [
        b"V1|2|OK|offset=7\n",
        b"V1|0|OK|offset=7\n",
        b"V2|1|OK|offset=7\n",
        b"V1|1|MAYBE|offset=7\n",
        b"V1|1\n",
        b"\n",
        b"V1|1|OK|offset=7\nV1|2|OK|offset=8\n",
    ],
)
def test_a_line_that_answers_nothing_is_the_servers_fault(line: bytes) -> None:
    speaker = V1Speaker()
    speaker.ask(FetchOffset("t", "g", 0))
    with pytest.raises(ProtocolError):
        speaker.receive(line)


def test_a_server_that_could_not_read_the_line_answers_with_zero() -> None:
    speaker = V1Speaker()
    speaker.ask(FetchOffset("t", "g", 0))
    (told,) = speaker.receive(b"V1|0|ERR|BAD_REQUEST|unsupported version\n")
    assert isinstance(told.reply, Failure)


def test_a_line_without_an_end_is_not_collected_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.codecs.v1.speaker.REPLY_LINE_BYTES_MAX", 100)
    speaker = V1Speaker()
    speaker.receive(b"x" * 100)
    with pytest.raises(ProtocolError, match="no end"):
        speaker.receive(b"x")


def test_produce_says_a_line_a_record() -> None:
    request = Produce("t", batch([b"a", b""], [b"k", None]), namespace="n", acks=Acks.NONE)
    assert said(request) == b"V1|1|PRODUCE|n/t k:a acks=0\nV1|2|PRODUCE|n/t : acks=0\n"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Produce("t", batch([b"a b"])), "a value that holds white space"),
        (Produce("t", batch(["a\u2003".encode()])), "a value that holds white space"),
        (Produce("t", batch([b"\n"])), "a value that holds white space"),
        (Produce("t", batch([None])), "an absent value"),
        (Produce("t", batch([b"a"], [b"k:"])), "a key that holds a colon"),
        (Produce("t", batch([b"a"], [b"k y"])), "a key that holds a colon or white space"),
        (Produce("t", batch([b"a"]), 0), "partition to the server"),
        (Produce(7, batch([b"a"])), "by name, not by number"),
        (Produce("", batch([b"a"])), "topic that is empty"),
        (Produce("\udcff", batch([b"a"])), "as UTF-8"),
        (Fetch("t", 0, whence=Whence.LATEST), "from an offset"),
        (Fetch("t", 0, auto_commit=True, group="g"), "only when asked"),
        (SyncGroup("t", "g", "c"), "generation"),
        (JoinGroup("t", "g", "c d"), "member id that is empty or holds white space"),
        (CommitOffset("t", "g", ((0, 1), (1, 1)), member="c", generation=1), "one partition"),
        (CommitOffset("t", "g", ((0, 1),)), "generation"),
        (FetchOffset("t", "g", 0, kind=OffsetKind.CONSUMER), "offsets of groups"),
        (CreateTopic("t", 3), "CreateTopic"),
        (ListTopics(), "ListTopics"),
        (Ping(), "Ping"),
    ],
)
def test_what_v1_has_no_words_for_is_named(request_: Request, reason: str) -> None:
    with pytest.raises(Unsayable, match=reason):
        said(request_)


def test_headers_and_ids_have_no_words() -> None:
    for column in ({"headers": VarColumn.of([b""])}, {"ids": bytes(16)}, {"producers": (b"p",)}):
        records = RecordBatch(1, VarColumn.single(b"v"), origin=Origin.NONE, **column)  # type: ignore[arg-type]
        with pytest.raises(Unsayable, match="headers, record ids and producers"):
            said(Produce("t", records, ROUND_ROBIN))


def test_nothing_is_owed_for_what_could_not_be_said() -> None:
    speaker = V1Speaker()
    with pytest.raises(Unsayable):
        speaker.ask(Ping())
    assert b"".join(map(bytes, speaker.ask(FetchOffset("t", "g", 0)))) == b"V1|1|OFFSET|g t 0\n"
