"""The JSON form of the client half, in the document's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.rustlog.document import read_request
from dragoman.codecs.rustlog.speaker_json import say, understand
from dragoman.codecs.rustlog.wire import FRAME_BYTES_MAX
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    CommitOffset,
    CreateTopic,
    DescribeTopic,
    Fetch,
    FetchOffset,
    ListTopics,
    OffsetFetched,
    Ping,
    Produce,
    Produced,
    Whence,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode

if TYPE_CHECKING:
    from dragoman.core.calls import Request

BYTES = RecordBatch(2, VarColumn.of([b"\x0a\x14", b""]), origin=Origin.RUSTLOG)


@pytest.mark.parametrize(
    ("request_", "payload"),
    [
        (
            Produce("orders", BYTES, 0),
            b'{"Produce":{"topic":"orders","partition":0,"records":[[10,20],[]]}}',
        ),
        (
            Fetch("orders", 0, 7, bytes_max=9),
            b'{"Fetch":{"topic":"orders","partition":0,"offset":7,"max_bytes":9,"group_id":null}}',
        ),
        (
            Fetch("o", 0, 7, bytes_max=9, group="g", whence=Whence.MAX_COMMITTED),
            b'{"Fetch":{"topic":"o","partition":0,"offset":7,"max_bytes":9,"group_id":"g"}}',
        ),
        (
            CommitOffset("o", "g", ((0, 5),)),
            b'{"OffsetCommit":{"topic":"o","partition":0,"group_id":"g","offset":5}}',
        ),
        (
            FetchOffset("o", "g", 0),
            b'{"OffsetFetch":{"topic":"o","partition":0,"group_id":"g"}}',
        ),
        (CreateTopic("o", 2), b'{"CreateTopic":{"topic":"o","partition_count":2}}'),
        (ListTopics(), b'"ListTopics"'),
        (Ping(), b'"Ping"'),
    ],
)
def test_requests_are_said_so_that_the_server_half_reads_them(
    request_: Request, payload: bytes
) -> None:
    assert say(request_) == payload
    read_request(payload, FRAME_BYTES_MAX)


def test_replies_are_understood() -> None:
    produced = understand(Produce("o", BYTES, 3), b'{"Produce":{"offsets":[4,5]}}')
    assert produced == Produced(3, 4, 2)
    read = understand(FetchOffset("o", "g", 1), b'{"OffsetFetch":{"offset":null}}')
    assert read == OffsetFetched(1, None, 0)


def test_an_error_is_understood_by_its_text() -> None:
    payload = b'{"Error":{"message":"offset out of range: requested 1, log start 5"}}'
    failure = understand(Fetch("o", 0), payload)
    assert failure.code is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    "payload",
    [
        b"{",
        b"[]",
        b'{"Fetch":{"records":[{"offset":0,"payload":[256]}],"next_offset":1}}',
        b'{"Fetch":{"records":[{"payload":[1]}],"next_offset":1}}',
        b'{"Produce":{"offsets":[]}}',
        b'{"Error":"x"}',
        b'"Pong"',
    ],
)
def test_a_reply_that_is_none_is_a_protocol_error(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        understand(Fetch("o", 0), payload)


def test_a_create_without_success_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError):
        understand(CreateTopic("o", 1), b'{"CreateTopic":{"success":false}}')


def test_a_reply_to_what_json_cannot_ask_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError):
        understand(DescribeTopic("o"), b'{"DescribeTopic":{}}')
