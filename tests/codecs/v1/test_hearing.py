"""What a client makes of a server's lines."""

from __future__ import annotations

import pytest

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.v1.hearing import heard_failure, heard_reply
from dragoman.codecs.v1.translate import ERRORS
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    CommitOffset,
    Fetch,
    Fetched,
    FetchOffset,
    GroupJoined,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    Ping,
    Produce,
    Produced,
    ReportReplica,
    Role,
    SetRole,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode

PRODUCE = Produce("t", RecordBatch(1, VarColumn.single(b"v"), origin=Origin.NONE))


def test_every_error_of_the_server_is_heard_as_one_of_the_same_words() -> None:
    for code, text in ERRORS.values():
        heard = heard_failure(f"{code.value}|{text}".encode())
        assert ERRORS[heard.code] == (code, text)


def test_words_of_other_servers_are_heard_by_their_code() -> None:
    assert heard_failure(b"NOT_LEADER|go away").code is ErrorCode.NOT_LEADER
    assert heard_failure(b"BAD_REQUEST|CONSUME requires: a|b").code is ErrorCode.MALFORMED
    assert heard_failure(b"\xff").code is ErrorCode.MALFORMED


def test_payloads_may_grow() -> None:
    heard = heard_reply(PRODUCE, b"topic=t partition=2 extra=[1 2] offset=7 hw=9 more=x")
    assert heard == Produced(2, 7, 1, 10)
    joined = heard_reply(JoinGroup("t", "g", "c"), b"generation=4 assigned=[0 2] x=y")
    assert joined == GroupJoined("c", 3, (0, 2))


def test_records_come_with_their_offsets_and_exact_bytes() -> None:
    heard = heard_reply(Fetch("t", 0, 3), b"messages=3:a%2C:|,5:%2C,6: hw=9 escaped=[5] new=1")
    assert isinstance(heard, Fetched)
    (piece,) = heard.slices
    rows = [(record.offset, record.value) for record in piece.batch.records()]
    assert rows == [(3, b"a%2C:|"), (5, b","), (6, b"")]
    assert (heard.next_offset, heard.high_watermark) == (7, 10)


def test_nothing_to_read_is_no_record() -> None:
    heard = heard_reply(Fetch("t", 0, 3), b"messages= hw=-1")
    assert isinstance(heard, Fetched)
    assert (heard.slices, heard.next_offset, heard.high_watermark) == ([], 3, 0)


def test_no_more_records_come_than_were_asked_for() -> None:
    heard = heard_reply(Fetch("t", 0, 0, records_max=1), b"messages=0:a,1:b hw=1")
    assert isinstance(heard, Fetched)
    assert (heard.count, heard.next_offset) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"messages=0:a",
        b"hw=1 messages=0:a hw=1",
        b"messages=a hw=1",
        b"messages=x:a hw=1",
        b"messages=1:a,1:b hw=1",
        b"messages=0:a,9999999999:b hw=1",
        b"messages=0:a hw=x",
        b"messages=0:a hw=1 escaped=0",
        b"messages=0:a hw=1 escaped=[x]",
        b"messages=" + b"9" * 5000 + b":a hw=1",
    ],
)
def test_a_broken_list_of_records_is_the_servers_fault(text: bytes) -> None:
    with pytest.raises(ProtocolError):
        heard_reply(Fetch("t", 0), text)


def test_a_payload_of_something_else_is_the_servers_fault() -> None:
    for request in (
        PRODUCE,
        JoinGroup("t", "g", "c"),
        Heartbeat("t", "g", "c", 1),
        LeaveGroup("t", "g", "c", 1),
        CommitOffset("t", "g", ((0, 1),)),
        FetchOffset("t", "g", 0),
        Ping(),
    ):
        with pytest.raises(ProtocolError):
            heard_reply(request, b"something=else offset=99999999999999999999")


def test_a_role_that_is_none_breaks_the_protocol() -> None:
    with pytest.raises(ProtocolError, match="without a role"):
        heard_reply(SetRole("t", 0, Role.LEADER), b"topic=t partition=0 role=boss hw=1")


def test_replicas_in_sync_are_a_list() -> None:
    with pytest.raises(ProtocolError, match="list in brackets"):
        heard_reply(ReportReplica("t", 0, 1, 0), b"replica=1 acked_offset=0 hw=0 isr=0")
