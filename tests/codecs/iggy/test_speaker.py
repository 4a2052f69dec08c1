"""The client's half against the server's half, over a log in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.codecs.base import ProtocolError, Unsayable
from dragoman.codecs.iggy import wire
from dragoman.codecs.iggy.speaker import IggySpeaker, chosen_number
from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import OffsetKind, Whence
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.header import Header, HeaderKind, encode_headers
from support.conversation import WALL_US, Conversation
from support.iggy import answer, u32

if TYPE_CHECKING:
    from collections.abc import Sequence


class Talk:
    """A speaker and the server that answers it."""

    def __init__(self) -> None:
        self.speaker = IggySpeaker()
        self.server = Conversation("iggy")

    def ask(self, request: calls.Request) -> calls.Reply | Failure:
        data = self.server.send(b"".join(self.speaker.ask(request)))
        told = [one for at in range(len(data)) for one in self.speaker.receive(data[at : at + 1])]
        assert len(told) == 1
        return told[0].reply


@pytest.fixture
def talk() -> Talk:
    talk = Talk()
    talk.ask(calls.CreateNamespace("dev"))
    talk.ask(calls.CreateTopic("top", 2, "dev"))
    return talk


def batch(
    *values: bytes | None,
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[bytes | None] | None = None,
) -> RecordBatch:
    return RecordBatch(
        len(values),
        VarColumn.of(values),
        origin=Origin.NONE,
        keys=None if keys is None else VarColumn.of(keys),
        headers=None if headers is None else VarColumn.of(headers),
    )


def fetched(reply: calls.Reply | Failure) -> calls.Fetched:
    assert isinstance(reply, calls.Fetched), reply
    return reply


def values(reply: calls.Reply | Failure) -> list[bytes | None]:
    return [r.value for piece in fetched(reply).slices for r in piece.batch.records(*piece[1:])]


def test_a_ping_is_answered(talk: Talk) -> None:
    assert talk.ask(calls.Ping()) == calls.Ponged()


def test_streams_are_made_listed_renamed_and_deleted(talk: Talk) -> None:
    talk.ask(calls.CreateNamespace("two", 2))
    listed = talk.ask(calls.ListNamespaces())
    assert isinstance(listed, calls.NamespacesListed)
    assert [n.name for n in listed.namespaces] == ["two", "dev"]
    talk.ask(calls.RenameNamespace("two", "second"))
    described = talk.ask(calls.DescribeNamespace(2))
    assert isinstance(described, calls.NamespaceDescribed)
    assert (described.namespace.name, described.namespace.created_us) == ("second", WALL_US)
    assert talk.ask(calls.DeleteNamespace("second")) == calls.NamespaceDeleted("second")
    missing = talk.ask(calls.DescribeNamespace("second"))
    assert isinstance(missing, Failure)
    assert missing.code is ErrorCode.UNKNOWN_NAMESPACE


def test_an_id_is_chosen_where_none_is_named(talk: Talk) -> None:
    described = talk.ask(calls.DescribeNamespace("dev"))
    assert isinstance(described, calls.NamespaceDescribed)
    assert described.namespace.number == chosen_number("dev")
    assert [topic.name for topic in described.namespace.topics] == ["top"]


def test_a_creation_is_answered_with_the_name_as_stored_and_the_id_that_was_chosen() -> None:
    talk = Talk()
    made = talk.ask(calls.CreateNamespace("My  Stream"))
    assert isinstance(made, calls.NamespaceCreated)
    assert made.namespace.name == "my.stream"
    assert made.namespace.number == chosen_number("My  Stream")
    topic = talk.ask(calls.CreateTopic("Top", 3, "my.stream", 9))
    assert isinstance(topic, calls.TopicCreated)
    assert (topic.topic.name, topic.topic.number, len(topic.topic.partitions)) == ("top", 9, 3)


def test_topics_are_listed_described_updated_and_deleted(talk: Talk) -> None:
    talk.ask(calls.Produce("top", batch(b"a", b"b"), 1, "dev"))
    described = talk.ask(calls.DescribeTopic("top", "dev"))
    assert isinstance(described, calls.TopicDescribed)
    assert [(p.partition, p.high_watermark) for p in described.topic.partitions] == [(0, 0), (1, 2)]
    talk.ask(calls.UpdateTopic("top", "dev", "other", retention_ms=9000))
    listed = talk.ask(calls.ListTopics("dev"))
    assert isinstance(listed, calls.TopicsListed)
    (topic,) = listed.topics
    assert (topic.name, topic.config.retention_ms, topic.records) == ("other", 9000, 2)
    assert talk.ask(calls.DeleteTopic("other", "dev")) == calls.TopicDeleted("dev", "other")


def test_partitions_are_added_and_removed(talk: Talk) -> None:
    for request, count in (
        (calls.AddPartitions("top", 3, "dev"), 5),
        (calls.RemovePartitions("top", 4, "dev"), 1),
    ):
        assert isinstance(talk.ask(request), calls.TopicCreated)
        described = talk.ask(calls.DescribeTopic("top", "dev"))
        assert isinstance(described, calls.TopicDescribed)
        assert len(described.topic.partitions) == count


def test_what_is_sent_is_read_back_with_headers_and_times(talk: Talk) -> None:
    raw = encode_headers([Header("n", HeaderKind.INT32, b"\1\0\0\0")])
    sent = talk.ask(calls.Produce("top", batch(b"a", b"bc", headers=[raw, None]), 0, "dev"))
    assert sent == calls.Produced(0, -1, 2)
    found = fetched(talk.ask(calls.Fetch("top", 0, 0, "dev")))
    records = [record for piece in found.slices for record in piece.batch.records()]
    assert [(r.offset, r.value, r.headers, r.timestamp_us) for r in records] == [
        (0, b"a", raw, WALL_US),
        (1, b"bc", None, WALL_US),
    ]
    assert (found.start_offset, found.next_offset, found.high_watermark) == (0, 2, 2)


def test_a_key_routes_as_the_server_hashes_it(talk: Talk) -> None:
    talk.ask(calls.Produce("top", batch(b"x", keys=[b"hello world"]), namespace="dev"))
    assert values(talk.ask(calls.Fetch("top", 1, 0, "dev"))) == [b"x"]


def test_every_way_to_begin_reading_can_be_said(talk: Talk) -> None:
    talk.ask(calls.Produce("top", batch(b"0", b"1", b"2"), 0, "dev"))

    def read(whence: Whence, offset: int = 0) -> list[bytes | None]:
        request = calls.Fetch("top", 0, offset, "dev", whence, group="4", kind=OffsetKind.CONSUMER)
        return values(talk.ask(request))

    assert read(Whence.OFFSET, 1) == [b"1", b"2"]
    assert read(Whence.TIMESTAMP, WALL_US + 1) == []
    assert read(Whence.EARLIEST) == [b"0", b"1", b"2"]
    assert read(Whence.LATEST) == []
    assert read(Whence.LAST, 2) == [b"1", b"2"]
    assert read(Whence.COMMITTED) == [b"0", b"1", b"2"]


def test_reading_the_latest_tells_where_the_partition_ends(talk: Talk) -> None:
    talk.ask(calls.Produce("top", batch(b"0", b"1", b"2"), 0, "dev"))
    found = fetched(talk.ask(calls.Fetch("top", 0, 0, "dev", Whence.LATEST)))
    assert (found.start_offset, found.next_offset, found.high_watermark) == (3, 3, 3)


def test_offsets_are_stored_and_fetched(talk: Talk) -> None:
    kind = OffsetKind.CONSUMER
    talk.ask(calls.Produce("top", batch(b"0", b"1", b"2"), 0, "dev"))
    fetch = calls.FetchOffset("top", "9", 0, "dev", kind)
    assert talk.ask(fetch) == calls.OffsetFetched(0, None, 3)
    stored = talk.ask(calls.CommitOffset("top", "9", ((0, 2),), "dev", kind))
    assert stored == calls.OffsetCommitted(1)
    assert talk.ask(fetch) == calls.OffsetFetched(0, 2, 3)
    again = calls.Fetch("top", 0, 0, "dev", Whence.COMMITTED, group="9", kind=kind)
    assert values(talk.ask(again)) == [b"2"]


def test_groups_are_made_described_listed_and_deleted(talk: Talk) -> None:
    made = talk.ask(calls.CreateGroup("top", "9", namespace="dev"))
    assert isinstance(made, calls.GroupCreated)
    assert (made.group.name, made.group.number) == ("9", 9)
    joined = talk.ask(
        calls.JoinGroup("top", "9", "me", "dev", bound=True, must_exist=True, group_number=9)
    )
    assert joined == calls.GroupJoined("me", 0, ())
    described = talk.ask(calls.DescribeGroup("top", "9", "dev"))
    assert isinstance(described, calls.GroupDescribed)
    assert [member.partitions for member in described.group.members] == [(0, 1)]
    listed = talk.ask(calls.ListGroups("top", "dev"))
    assert isinstance(listed, calls.GroupsListed)
    assert [(group.number, group.partition_count) for group in listed.groups] == [(9, 2)]
    left = talk.ask(calls.LeaveGroup("top", "9", "me", None, "dev"))
    assert left == calls.GroupLeft("me", known=True)
    assert talk.ask(calls.DeleteGroup("top", "9", "dev")) == calls.GroupDeleted("9")
    missing = talk.ask(calls.DescribeGroup("top", "9", "dev"))
    assert isinstance(missing, Failure)
    assert missing.code is ErrorCode.UNKNOWN_GROUP


def test_a_member_reads_and_stores_where_it_is(talk: Talk) -> None:
    talk.ask(calls.Produce("top", batch(b"0", b"1", b"2"), 1, "dev"))
    talk.ask(calls.CreateGroup("top", "9", namespace="dev"))
    talk.ask(calls.JoinGroup("top", "9", "me", "dev", bound=True, must_exist=True))
    poll = calls.Fetch("top", calls.ASSIGNED, 0, "dev", Whence.COMMITTED, 2, group="9")
    first = fetched(talk.ask(poll))
    assert (first.partition, first.count) == (0, 0)
    second = fetched(talk.ask(poll))
    assert (second.partition, values(second)) == (1, [b"0", b"1"])
    stored = calls.CommitOffset("top", "9", ((calls.ASSIGNED, 2),), "dev")
    assert talk.ask(stored) == calls.OffsetCommitted(1)
    asked = calls.FetchOffset("top", "9", calls.ASSIGNED, "dev")
    assert talk.ask(asked) == calls.OffsetFetched(1, 2, 3)


def test_a_refusal_names_its_number(talk: Talk) -> None:
    refused = talk.ask(calls.Produce("top", batch(b"x"), 7, "dev"))
    assert refused == Failure(ErrorCode.UNKNOWN_PARTITION, "Iggy error 3007", {"number": 3007})


@pytest.mark.parametrize(
    "request_",
    [
        calls.Follow("top", 0),
        calls.JoinGroup("top", "1", "m"),
        calls.JoinGroup("top", "1", "m", bound=True),
        calls.JoinGroup("top", "g", "m", bound=True, must_exist=True),
        calls.JoinGroup(
            "top", "1", "m", assignor=calls.Assignor.RANGE, bound=True, must_exist=True
        ),
        calls.CreateGroup("top", "workers"),
        calls.ListGroups(),
        calls.Heartbeat("top", "1", "m", 1),
        calls.Fetch("t", 0, group="1"),
        calls.Fetch("t", calls.ASSIGNED, group="1", kind=OffsetKind.CONSUMER),
        calls.ListTopics(),
        calls.CreateTopic("t", 1, if_exists=calls.IfExists.GROW),
        calls.CreateTopic("t", 1, config=calls.TopicConfig(retention_bytes=1)),
        calls.CreateTopic("t", 1, config=calls.TopicConfig(retention_ms=1500)),
        calls.CreateNamespace("x" * 256),
        calls.UpdateTopic("t", name="u"),
        calls.Produce("t", batch(b"")),
        calls.Produce("t", batch(None)),
        calls.Produce("t", batch(b"x", b"")),
        calls.Produce("t", batch(b"a", b"b", keys=[b"k", b"l"])),
        calls.Produce("t", batch(b"a", b"b", keys=[b"k", None])),
        calls.Produce("t", batch(b"a", keys=[b""])),
        calls.Produce("t", batch(b"a", keys=[b"k"]), 0),
        calls.Produce("t", batch(b"a"), calls.ByHash(1)),
        calls.Produce("t", batch(b"a"), create_partitions=1),
        calls.Produce("t", batch(bytes(10 * 1024 * 1024 + 1))),
        calls.Fetch("t", 0, whence=Whence.MAX_COMMITTED),
        calls.Fetch("t", 0, 5, whence=Whence.COMMITTED),
        calls.Fetch("t", 0, group="workers"),
        calls.Fetch("t", 0, create_partitions=1),
        calls.CommitOffset("t", "1", ((0, 0),)),
        calls.CommitOffset("t", "1", ((0, 1), (1, 1))),
        calls.FetchOffset("t", str(1 << 32), 0),
    ],
    ids=repr,
)
def test_what_the_dialect_has_no_words_for_is_unsayable(request_: calls.Request) -> None:
    with pytest.raises(Unsayable):
        IggySpeaker().ask(request_)


def test_a_reply_to_nothing_breaks_the_protocol() -> None:
    with pytest.raises(ProtocolError):
        IggySpeaker().receive(answer())


@pytest.mark.parametrize(
    "data", [u32(0) + b"\xff" * 4, answer(b"x" * 17), answer(bytes(16) + b"x" * 46)]
)
def test_a_malformed_answer_breaks_the_protocol(data: bytes) -> None:
    speaker = IggySpeaker()
    speaker.ask(calls.Fetch("top", 0, 0, "dev"))
    with pytest.raises(ProtocolError):
        speaker.receive(data)


def test_an_answer_that_is_missing_breaks_the_protocol() -> None:
    speaker = IggySpeaker()
    speaker.ask(calls.DescribeNamespace("dev"))
    with pytest.raises(ProtocolError):
        speaker.receive(answer())


@pytest.mark.parametrize("offsets", [(5, 3), (0, 1 << 63)])
def test_offsets_and_times_that_cannot_be_break_the_protocol(offsets: tuple[int, int]) -> None:
    messages = [
        {
            "offset": offset,
            "state": 1,
            "timestamp_us": offset << 1 & (1 << 64) - 1,
            "id": bytes(16),
            "checksum": 0,
            "headers": b"",
            "payload": b"x",
        }
        for offset in offsets
    ]
    body = {"partition": 1, "current_offset": 9, "count": 2, "messages": messages}
    speaker = IggySpeaker()
    speaker.ask(calls.Fetch("top", 0, 0, "dev"))
    with pytest.raises(ProtocolError):
        speaker.receive(answer(wire.POLLED_MESSAGES.build(body)))


@pytest.mark.parametrize(
    "request_",
    [
        calls.Fetch("t", 1 << 40, namespace="s"),
        calls.Fetch("t", 0, 1 << 70, namespace="s"),
        calls.CreateTopic("t", -3, "s"),
        calls.Produce("t", RecordBatch(1, VarColumn.of([b"x"]), origin=Origin.NONE), 1 << 40, "s"),
    ],
)
def test_numbers_out_of_the_wires_range_are_unsayable(request_: calls.Request) -> None:
    with pytest.raises(Unsayable, match="range"):
        IggySpeaker().ask(request_)
