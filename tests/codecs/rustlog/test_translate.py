"""Every failure has words in both forms."""

from __future__ import annotations

import pytest

from dragoman.codecs.rustlog.parse import Tag
from dragoman.codecs.rustlog.translate import ERRORS, told
from dragoman.codecs.rustlog.wire import Command
from dragoman.core.error import ErrorCode, Failure


def test_the_table_names_every_code_once() -> None:
    assert set(ERRORS) == set(ErrorCode)


@pytest.mark.parametrize("code", list(ErrorCode))
@pytest.mark.parametrize("json", [True, False])
def test_every_code_is_told_for_every_command(code: ErrorCode, *, json: bool) -> None:
    for command in Command:
        number, text = told(Tag(command, json, "t{x}", 3), Failure(code, "a {detail}"))
        assert text
        assert (number == 0) == json


@pytest.mark.parametrize(
    ("command", "failure", "binary", "json"),
    [
        (
            Command.PRODUCE,
            Failure(ErrorCode.UNKNOWN_TOPIC),
            (10, "Topic or partition does not exist: topic=t, partition=3"),
            "partition not found: topic=t, partition=3",
        ),
        (
            Command.FETCH,
            Failure(ErrorCode.UNKNOWN_PARTITION, "", {"partition": 99, "topic": "other"}),
            (10, "Topic or partition does not exist: topic=t, partition=3"),
            "partition not found: topic=t, partition=3",
        ),
        (
            Command.CREATE_TOPIC,
            Failure(ErrorCode.TOPIC_EXISTS),
            (11, "Topic 't' already exists"),
            "topic already exists: t",
        ),
        (
            Command.CREATE_TOPIC,
            Failure(ErrorCode.INVALID_PARTITION_COUNT),
            (12, "Invalid partition count: 3"),
            "invalid partition count: 3",
        ),
        (
            Command.DESCRIBE_TOPIC,
            Failure(ErrorCode.UNKNOWN_TOPIC),
            (13, "DescribeTopic failed: Topic 't' not found"),
            "topic not found: t",
        ),
        (
            Command.DESCRIBE_PARTITION,
            Failure(ErrorCode.UNKNOWN_PARTITION),
            (14, "DescribePartition failed: Partition 3 not found in topic 't'"),
            "partition not found: topic=t, partition=3",
        ),
        (
            Command.PRODUCE,
            Failure(ErrorCode.RECORD_TOO_LARGE, "", {"size": 40, "limit": 30}),
            (500, "Failed to write record: record too large: 40 bytes"),
            "record too large: 40 bytes",
        ),
        (
            Command.FETCH,
            Failure(ErrorCode.RECORD_TOO_LARGE, "", {"size": 40, "limit": 30, "offset": 8}),
            (4, "Fetch failed: max frame size exceeded: record at offset 8 does not fit"),
            "max frame size exceeded: record at offset 8 does not fit",
        ),
        (
            Command.FETCH,
            Failure(ErrorCode.OFFSET_OUT_OF_RANGE, "", {"requested": 1, "earliest": 5}),
            (4, "Fetch failed: offset out of range: requested 1, log start 5"),
            "offset out of range: requested 1, log start 5",
        ),
        (
            Command.OFFSET_COMMIT,
            Failure(ErrorCode.STORAGE_FAILED, "gone"),
            (5, "Offset commit failed: storage failure: gone"),
            "storage failure: gone",
        ),
        (
            Command.NONE,
            Failure(ErrorCode.FRAME_TOO_LARGE, "", {"size": 9, "limit": 8}),
            (1, "Frame error: frame too large: 9 bytes (max: 8)"),
            "max frame size exceeded: 9 bytes (max: 8)",
        ),
    ],
)
def test_the_words_of_each_form(
    command: Command, failure: Failure, binary: tuple[int, str], json: str
) -> None:
    assert told(Tag(command, False, "t", 3), failure) == binary
    assert told(Tag(command, True, "t", 3), failure) == (0, json)
