"""The binary form of the client half, byte by byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.rustlog.speaker_binary import say, understand
from dragoman.codecs.rustlog.wire import REQUESTS, Command
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    CommitOffset,
    CreateTopic,
    DescribeTopic,
    Fetch,
    FetchOffset,
    ListTopics,
    Ping,
    Produce,
    ReadStatistics,
    StatisticsRead,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from dragoman.core.calls import Request

HI = RecordBatch(2, VarColumn.of([b"hi", b""]), origin=Origin.RUSTLOG)


@pytest.mark.parametrize(
    ("request_", "payload"),
    [
        (
            Produce("demo", HI, 0),
            "01 0004 64656d6f 00000000 00000002 00000002 6869 00000000",
        ),
        (
            Fetch("demo", 0, bytes_max=1024),
            "02 0000 0004 64656d6f 00000000 0000000000000000 00000400",
        ),
        (
            CommitOffset("demo", "g", ((0, 2),)),
            "03 0001 67 0004 64656d6f 00000000 0000000000000002",
        ),
        (FetchOffset("demo", "g", 0), "04 0001 67 0004 64656d6f 00000000"),
        (CreateTopic("demo", 2), "05 0004 64656d6f 00000002"),
        (CreateTopic("t", 1, "ns"), "05 0004 6e732f74 00000001"),
        (ListTopics(), "06"),
        (DescribeTopic("demo"), "07 0004 64656d6f"),
        (ReadStatistics(), "09"),
        (Ping(), "ff"),
    ],
)
def test_requests_are_said_as_declared(request_: Request, payload: str) -> None:
    said = say(request_)
    assert said == bytes.fromhex(payload)
    declared = REQUESTS[Command(said[0])]
    assert declared.build(declared.parse(said)) == said


@pytest.mark.parametrize(
    ("code", "text", "meaning"),
    [
        (10, "Topic or partition does not exist: topic=t, partition=0", ErrorCode.UNKNOWN_TOPIC),
        (11, "Topic 't' already exists", ErrorCode.TOPIC_EXISTS),
        (12, "Invalid partition count: 0", ErrorCode.INVALID_PARTITION_COUNT),
        (13, "DescribeTopic failed: Topic 't' not found", ErrorCode.UNKNOWN_TOPIC),
        (14, "DescribePartition failed: Partition 1 not found", ErrorCode.UNKNOWN_PARTITION),
        (4, "Fetch failed: storage failure: gone", ErrorCode.STORAGE_FAILED),
        (500, "Failed to write record: record too large: 9 bytes", ErrorCode.RECORD_TOO_LARGE),
        (500, "something new", ErrorCode.INTERNAL),
    ],
)
def test_errors_are_understood_by_code_and_text(code: int, text: str, meaning: ErrorCode) -> None:
    data = text.encode()
    payload = b"\xfe" + code.to_bytes(2, "big") + len(data).to_bytes(2, "big") + data
    failure = understand(Ping(), payload)
    assert failure == Failure(meaning, text)


def test_figures_are_read_from_the_text() -> None:
    text = b"# TYPE a gauge\na 5\nb 0.5\n"
    payload = b"\x09" + len(text).to_bytes(4, "big") + text
    assert understand(ReadStatistics(), payload) == StatisticsRead({"a": 5, "b": 0.5})
    with pytest.raises(ProtocolError):
        understand(ReadStatistics(), b"\x09\0\0\0\3a b")
