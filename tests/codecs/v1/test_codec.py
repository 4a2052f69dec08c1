"""The server's half of a connection: runs of lines, limits, foreign protocols, failures."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codecs.base import Asked, Facts, HungUp, Limits, Offload, Refused
from dragoman.codecs.rendering import RenderingCache
from dragoman.codecs.v1.codec import V1Codec
from dragoman.codecs.v1.dialect import DIALECT
from dragoman.codecs.v1.wire import EXPECTED_FORMAT
from dragoman.core.calls import (
    FetchOffset,
    GroupLeft,
    Produce,
    Produced,
    ProducedMany,
    ProduceMany,
)
from dragoman.core.error import ErrorCode, Failure
from support.conversation import Conversation

MALFORMED = f"V1|0|ERR|BAD_REQUEST|{EXPECTED_FORMAT}\n".encode()
TOO_LONG = b"V1|0|ERR|BAD_REQUEST|line too long\n"


def codec(line_bytes_max: int = 2 * 1024 * 1024) -> V1Codec:
    return V1Codec(
        Facts(
            limits=Limits(line_bytes_max, 1024 * 1024),
            renderings=RenderingCache(),
            options=DIALECT.options({}),
        )
    )


def produce(number: int, key: bytes, value: bytes = b"v") -> bytes:
    return b"V1|%d|PRODUCE|t %b:%b acks=1\n" % (number, key, value)


# ---------------------------------------------------------------- runs


def test_neighbours_of_one_key_are_one_batch() -> None:
    (heard,) = codec().receive(produce(1, b"k", b"a") + produce(2, b"k", b"b"))
    assert isinstance(heard, Asked)
    assert isinstance(heard.request, Produce)
    assert list(heard.request.batch.values) == [b"a", b"b"]


def test_neighbours_of_several_keys_are_one_request() -> None:
    (heard,) = codec().receive(produce(1, b"a") + produce(2, b"b"))
    assert isinstance(heard, Asked)
    assert isinstance(heard.request, ProduceMany)


@pytest.mark.parametrize(
    "other",
    [
        b"V1|9|PRODUCE|u k:v acks=1\n",
        b"V1|9|PRODUCE|t k:v acks=all\n",
        b"V1|9|OFFSET|g t 0\n",
        b"\n",
        b"V1|9|produce|t k:v\n",
    ],
)
def test_any_other_line_ends_a_run(other: bytes) -> None:
    run = produce(1, b"k") + produce(2, b"k")
    heard = codec().receive(run + other + run)
    assert len(heard) == 3
    assert [isinstance(item, Asked) and item.tag[1] for item in (heard[0], heard[2])] == [
        (b"1", b"2")
    ] * 2


def test_each_line_of_a_run_has_its_own_offset_in_order() -> None:
    conversation = Conversation("v1")
    lines = [produce(number, b"user%d" % (number % 10)) for number in range(60)]
    replies = conversation.send(b"".join(lines)).splitlines()
    assert [reply.split(b"|")[1] for reply in replies] == [b"%d" % n for n in range(60)]
    seen: dict[bytes, int] = {}
    for reply in replies:
        partition, offset, watermark = reply.split(b"|")[3].split(b" ")
        assert int(offset[7:]) == seen.get(partition, -1) + 1
        assert int(watermark[3:]) >= int(offset[7:])
        seen[partition] = int(offset[7:])
    assert sum(offset + 1 for offset in seen.values()) == 60


def test_a_refused_part_of_a_run_is_answered_in_its_lines() -> None:
    failure = Failure(ErrorCode.STORAGE_FULL, "no room")
    reply = ProducedMany([Produced(2, 7, 2, 9), failure], [0, 1, 0])
    sent = codec().send(("PRODUCE", (b"1", b"2", b"3")), reply)
    assert b"".join(map(bytes, sent.buffers)) == (
        b"V1|1|OK|partition=2 offset=7 hw=8\n"
        b"V1|2|ERR|SERVER_ERROR|storage full\n"
        b"V1|3|OK|partition=2 offset=8 hw=8\n"
    )


def test_a_refused_run_is_refused_line_by_line() -> None:
    sent = codec().send_failure(("PRODUCE", (b"1", b"2")), Failure(ErrorCode.REPLICATION_TIMEOUT))
    assert b"".join(map(bytes, sent.buffers)) == (
        b"V1|1|ERR|REPLICATION_TIMEOUT|acks=all timeout\n"
        b"V1|2|ERR|REPLICATION_TIMEOUT|acks=all timeout\n"
    )


# ---------------------------------------------------------------- arrival


def test_a_line_may_arrive_in_pieces_of_any_size() -> None:
    data = produce(1, b"k", b"x" * 100)
    for size in (1, 2, 7, 63, len(data)):
        spoken = codec()
        heard: list[Any] = []
        for at in range(0, len(data), size):
            heard += spoken.receive(memoryview(data)[at : at + size])
        assert len(heard) == 1
        assert list(heard[0].request.batch.values) == [b"x" * 100]


def test_the_last_line_needs_no_line_feed() -> None:
    spoken = codec()
    assert spoken.receive(b"V1|1|OFFSET|g t 0") == []
    asked, hung_up = spoken.receive(b"")
    assert asked == Asked(("OFFSET", b"1"), FetchOffset("t", "g", 0))
    assert isinstance(hung_up, HungUp)


def test_an_empty_stream_just_ends() -> None:
    assert [type(item) for item in codec().receive(b"")] == [HungUp]


def test_replies_keep_the_order_of_lines_that_fail_and_lines_that_do_not() -> None:
    conversation = Conversation("v1")
    said = conversation.send(produce(1, b"k") + b"\nV1|2|NOPE|\n" + produce(3, b"k"))
    heads = [reply.split(b"|")[1:3] for reply in said.splitlines()]
    assert heads == [[b"1", b"OK"], [b"0", b"ERR"], [b"2", b"ERR"], [b"3", b"OK"]]


# ---------------------------------------------------------------- limits


def test_a_line_of_the_largest_size_is_served() -> None:
    conversation = Conversation("v1")
    line = b"V1|1|PRODUCE|t k:"
    line += b"x" * (DIALECT.limits.frame_bytes_max - len(line))
    assert conversation.send(line + b"\n") == b"V1|1|OK|partition=0 offset=0 hw=0\n"


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_longer_line_is_refused_and_the_connection_closed(end: bytes) -> None:
    conversation = Conversation("v1")
    line = b"x" * (DIALECT.limits.frame_bytes_max + 1)
    assert conversation.send(line + end) == TOO_LONG
    assert conversation.closed


@pytest.mark.parametrize("pieces", [1, 3])
def test_lines_before_one_that_is_too_long_are_served(pieces: int) -> None:
    spoken = codec(line_bytes_max=40)
    data = b"V1|1|OFFSET|g t 0\n" + b"x" * 41 + b"\nV1|2|OFFSET|g t 0\n"
    heard: list[Any] = []
    for at in range(0, len(data), -(-len(data) // pieces)):
        heard += spoken.receive(data[at : at + -(-len(data) // pieces)])
        if isinstance(heard[-1], Refused):
            break
    assert [type(item) for item in heard] == [Asked, Refused]
    assert heard[1].fatal
    assert heard[1].failure.code is ErrorCode.FRAME_TOO_LARGE


def test_a_tail_that_is_too_long_is_refused_after_the_lines_before_it() -> None:
    heard = codec(line_bytes_max=40).receive(b"V1|1|OFFSET|g t 0\n" + b"x" * 41)
    assert [type(item) for item in heard] == [Asked, Refused]


def test_long_lines_are_read_in_a_thread() -> None:
    (heard,) = codec().receive(produce(1, b"k" * 20_000))
    assert isinstance(heard, Offload)
    (asked,) = heard.call()
    assert isinstance(asked, Asked)


def test_a_long_last_line_is_read_in_a_thread_and_then_the_stream_ends() -> None:
    spoken = codec()
    spoken.receive(produce(1, b"k" * 20_000)[:-1])
    (heard,) = spoken.receive(b"")
    assert isinstance(heard, Offload)
    assert [type(item) for item in heard.call()] == [Asked, HungUp]


# ---------------------------------------------------------------- foreign protocols


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01", "TLS"),
        (b"SSH-2.0-x\r\n", "SSH"),
        (b"\0\0\0\x05\0\0hi!", "big-endian"),
        (b"\x04\0\0\0\x01\0\0\0", "little-endian"),
    ],
)
def test_another_protocol_is_named_answered_once_and_closed(first: bytes, name: str) -> None:
    for size in (1, len(first)):
        spoken = codec()
        heard: list[Any] = []
        for at in range(0, len(first), size):
            heard = spoken.receive(first[at : at + size])
            if heard:
                break
        (refused,) = heard
        assert refused.fatal
        assert refused.failure.code is ErrorCode.WRONG_PROTOCOL
        assert name in refused.failure.detail
        sent = spoken.send_failure(refused.tag, refused.failure)
        assert b"".join(map(bytes, sent.buffers)) == MALFORMED


@pytest.mark.parametrize("first", [b"\n", b"V1|", b"GET", b"hi\n", b" V1|1|X|\n"])
def test_what_may_be_a_line_is_not_foreign(first: bytes) -> None:
    heard = codec().receive(first)
    assert not [item for item in heard if isinstance(item, Refused) and item.fatal]


def test_only_the_first_bytes_of_a_connection_can_be_foreign() -> None:
    conversation = Conversation("v1")
    assert conversation.send(b"\nGET / HTTP/1.1\r\n") == MALFORMED * 2
    assert not conversation.closed


# ---------------------------------------------------------------- failures


def test_a_member_that_was_not_there_did_not_leave() -> None:
    sent = codec().send(("LEAVE", b"1"), GroupLeft("c", known=False))
    assert list(sent.buffers) == [b"V1|1|ERR|GENERATION_MISMATCH|unknown member\n"]


@pytest.mark.parametrize("code", ErrorCode)
@pytest.mark.parametrize("name", ["PRODUCE", "CONSUME", "JOIN", "COMMIT", "OFFSET"])
def test_every_failure_is_one_line_that_repeats_nothing(name: str, code: ErrorCode) -> None:
    failure = Failure(code, "peer said\n\r|evil", {"topic": "a\nb"})
    sent = codec().send_failure((name, b"7"), failure)
    line = b"".join(map(bytes, sent.buffers))
    assert line.startswith(b"V1|7|")
    assert line.count(b"\n") == 1
    assert b"evil" not in line


def test_v1_never_speaks_unasked() -> None:
    assert not codec().send_idle(("CONSUME", b"1")).buffers
    assert codec().wanted() == 0
