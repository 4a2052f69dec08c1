"""The client half against the server half, in both forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dragoman.codecs.base import ProtocolError, Unsayable
from dragoman.codecs.rustlog.speaker import RustLogSpeaker
from dragoman.codecs.rustlog.wire import FRAME_BYTES_MAX
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    ROUND_ROBIN,
    CommitOffset,
    CreateTopic,
    DescribeTopic,
    Fetch,
    Fetched,
    FetchOffset,
    Follow,
    IfExists,
    ListTopics,
    OffsetCommitted,
    OffsetFetched,
    OffsetKind,
    Ping,
    Ponged,
    Produce,
    Produced,
    ReadStatistics,
    StatisticsRead,
    TopicConfig,
    TopicCreated,
    TopicDescribed,
    TopicsListed,
    Whence,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from support.conversation import Conversation

if TYPE_CHECKING:
    from dragoman.core.calls import Request


def batch(*values: bytes | None, **columns: Any) -> RecordBatch:
    return RecordBatch(len(values), VarColumn.of(values), origin=Origin.RUSTLOG, **columns)


class Line:
    """A client connected to a server of its own."""

    def __init__(self, *, json: bool) -> None:
        self.conversation = Conversation("rustlog")
        self.speaker = RustLogSpeaker(json=json)

    def call(self, request: Request) -> Any:
        (told,) = self.speaker.receive(self.conversation.send(b"".join(self.speaker.ask(request))))
        assert not told.push
        return told.reply


@pytest.fixture(params=[False, True], ids=["binary", "json"])
def line(request: pytest.FixtureRequest) -> Line:
    line = Line(json=request.param)
    assert isinstance(line.call(CreateTopic("t", 2)), TopicCreated)
    return line


def rows(fetched: Fetched) -> list[tuple[int, bytes | None]]:
    return [
        (record.offset, record.value)
        for piece in fetched.slices
        for record in piece.batch.records(piece.first, piece.last)
    ]


def test_records_go_there_and_back(line: Line) -> None:
    values = (b"a", b"", bytes(range(256)))
    assert line.call(Produce("t", batch(*values), 1)) == Produced(1, 0, 3)
    fetched = line.call(Fetch("t", 1, 1))
    assert rows(fetched) == [(1, b""), (2, bytes(range(256)))]
    assert (fetched.start_offset, fetched.next_offset) == (1, 3)


def test_the_most_records_asked_for_are_kept_by_the_client(line: Line) -> None:
    line.call(Produce("t", batch(b"a", b"b", b"c"), 0))
    fetched = line.call(Fetch("t", 0, 0, records_max=2))
    assert rows(fetched) == [(0, b"a"), (1, b"b")]
    assert fetched.next_offset == 2


def test_offsets_are_committed_and_read_back(line: Line) -> None:
    assert line.call(FetchOffset("t", "g", 0)) == OffsetFetched(0, None, 0)
    assert line.call(CommitOffset("t", "g", ((0, 7),))) == OffsetCommitted(1)
    assert line.call(FetchOffset("t", "g", 0)) == OffsetFetched(0, 7, 0)


def test_topics_are_listed(line: Line) -> None:
    listed = line.call(ListTopics())
    assert isinstance(listed, TopicsListed)
    assert [(topic.name, len(topic.partitions)) for topic in listed.topics] == [("t", 2)]
    assert line.call(ListTopics("elsewhere")) == TopicsListed([])


def test_a_ping_is_answered(line: Line) -> None:
    assert line.call(Ping()) == Ponged()


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (CreateTopic("t", 2), ErrorCode.TOPIC_EXISTS),
        (CreateTopic("x", 0), ErrorCode.INVALID_PARTITION_COUNT),
        (CreateTopic("a b", 1), ErrorCode.INVALID_NAME),
        (Fetch("none", 0), ErrorCode.UNKNOWN_TOPIC),
        (Produce("t", batch(b"x"), 9), ErrorCode.UNKNOWN_TOPIC),
        (CommitOffset("t", "", ((0, 1),)), None),
    ],
)
def test_failures_are_understood(line: Line, request_: Request, code: ErrorCode | None) -> None:
    failure = line.call(request_)
    assert isinstance(failure, Failure)
    if code is not None:
        assert failure.code is code


def test_a_binary_topic_is_described_with_its_watermarks() -> None:
    line = Line(json=False)
    line.call(CreateTopic("t", 2))
    line.call(Produce("t", batch(b"a"), 1))
    described = line.call(DescribeTopic("t"))
    assert isinstance(described, TopicDescribed)
    assert [p.high_watermark for p in described.topic.partitions] == [0, 1]
    assert line.call(DescribeTopic("none")).code is ErrorCode.UNKNOWN_TOPIC


def test_binary_statistics_are_figures() -> None:
    read = Line(json=False).call(ReadStatistics())
    assert isinstance(read, StatisticsRead)
    assert read.values["dragoman_topics"] == 0


def test_a_binary_group_reads_from_its_committed_offset() -> None:
    line = Line(json=False)
    line.call(CreateTopic("t", 1))
    line.call(Produce("t", batch(b"a", b"b"), 0))
    fetch = Fetch("t", 0, 0, whence=Whence.COMMITTED, group="g")
    assert rows(line.call(fetch)) == []
    line.call(CommitOffset("t", "g", ((0, 1),)))
    assert rows(line.call(fetch)) == [(1, b"b")]


def test_a_json_group_reads_from_the_larger_offset() -> None:
    line = Line(json=True)
    line.call(CreateTopic("t", 1))
    line.call(Produce("t", batch(b"a", b"b"), 0))
    fetch = Fetch("t", 0, 0, whence=Whence.MAX_COMMITTED, group="g")
    assert rows(line.call(fetch)) == [(0, b"a"), (1, b"b")]
    line.call(CommitOffset("t", "g", ((0, 1),)))
    assert rows(line.call(fetch)) == [(1, b"b")]


UNSAYABLE = [
    Follow("t", 0),
    Produce("t", batch(b"x"), ROUND_ROBIN),
    Produce("t", batch(b"x", keys=VarColumn.of([b"k"])), 0),
    Produce("t", batch(b"x", headers=VarColumn.of([b"h"])), 0),
    Produce("t", batch(b"x", ids=bytes(16)), 0),
    Produce("t", batch(b"x", producers=(b"p",)), 0),
    Produce("t", batch(b"x", None), 0),
    Produce("t", batch(b"x"), 0, create_partitions=3),
    Produce(7, batch(b"x"), 0),
    Produce("t", batch(bytes(FRAME_BYTES_MAX)), 0),
    Produce("t", batch(b"x"), -1),
    Produce("t" * 70_000, batch(b"x"), 0),
    Fetch("t", 0, whence=Whence.EARLIEST),
    Fetch("t", 0, whence=Whence.TIMESTAMP),
    Fetch("t", 0, whence=Whence.COMMITTED),
    Fetch("t", 0, whence=Whence.COMMITTED, group="g", kind=OffsetKind.CONSUMER),
    Fetch("t", 0, whence=Whence.MAX_COMMITTED, group="g"),
    Fetch("t", 0, auto_commit=True),
    Fetch("t", 0, create_partitions=1),
    Fetch("t", 0, -1),
    CommitOffset("t", "g", ((0, 1), (1, 1))),
    CommitOffset("t", "g", ((0, -1),)),
    CommitOffset("t", "g", ((0, 1),), member="m"),
    CommitOffset("t", "g", ((0, 1),), monotonic=True),
    CommitOffset("t", "g", ((0, 1 << 64),)),
    FetchOffset("t", "g", 0, kind=OffsetKind.CONSUMER),
    CreateTopic("t", 1, if_exists=IfExists.GROW),
    CreateTopic("t", 1, config=TopicConfig(retention_ms=5)),
    CreateTopic("t", 1, number=5),
    DescribeTopic(5),
]


@pytest.mark.parametrize("request_", UNSAYABLE, ids=lambda r: type(r).__name__)
def test_what_the_binary_form_has_no_words_for_is_unsayable(request_: Request) -> None:
    with pytest.raises(Unsayable):
        RustLogSpeaker().ask(request_)


@pytest.mark.parametrize(
    "request_",
    [
        Fetch("t", 0, whence=Whence.COMMITTED, group="g"),
        DescribeTopic("t"),
        ReadStatistics(),
        CommitOffset("t", "g", ((0, 1 << 70),)),
    ],
    ids=lambda r: type(r).__name__,
)
def test_what_the_json_form_has_no_words_for_is_unsayable(request_: Request) -> None:
    with pytest.raises(Unsayable):
        RustLogSpeaker(json=True).ask(request_)


def test_replies_are_heard_byte_by_byte() -> None:
    speaker = RustLogSpeaker()
    speaker.ask(Ping())
    speaker.ask(FetchOffset("t", "g", 3))
    told = []
    for byte in bytes.fromhex("00000001ff0000000a04010000000000000009"):
        told += [item.reply for item in speaker.receive(bytes((byte,)))]
    assert told == [Ponged(), OffsetFetched(3, 9, 0)]


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        (Ping(), "00000000"),
        (Ping(), "7fffffff"),
        (Ping(), "0000000101"),
        (Ping(), "0000000322" + "7822"),
        (FetchOffset("t", "g", 0), "00000003040100"),
        (FetchOffset("t", "g", 0), "000000020301"),
        (Fetch("t", 0), "0000000d02000000ff0000000000000000"),
        (Fetch("t", 0), "0000000e020000000000000000000000000000"),
        (CommitOffset("t", "g", ((0, 1),)), "000000020300"),
        (ListTopics(), "00000006060000000100"),
        (Fetch("t", 0), "000000027b7d"),
        (Fetch("t", 0), "000000017b"),
    ],
)
def test_a_reply_that_is_none_is_a_protocol_error(request_: Request, reply: str) -> None:
    speaker = RustLogSpeaker()
    speaker.ask(request_)
    with pytest.raises(ProtocolError):
        speaker.receive(bytes.fromhex(reply))


def test_a_reply_that_nobody_asked_for_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError):
        RustLogSpeaker().receive(bytes.fromhex("00000001ff"))
