"""The client's half against the server's half."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codecs.base import ProtocolError, Told, Unsayable
from dragoman.codecs.compression import registry
from dragoman.codecs.cursus import hearing, saying
from dragoman.codecs.cursus.hear_topic import described
from dragoman.codecs.cursus.speaker import CursusSpeaker
from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.header import Header, HeaderKind, encode_headers
from support.conversation import Conversation
from support.cursus import batch, framed, message


class Talk:
    """A speaker connected to a server."""

    def __init__(self, server: Conversation | None = None) -> None:
        self.server = Conversation("cursus") if server is None else server
        self.speaker = CursusSpeaker()

    def tell(self, request: calls.Request) -> list[Told]:
        asked = b"".join(map(bytes, self.speaker.ask(request)))
        return self.speaker.receive(self.server.send(asked))

    def ask(self, request: calls.Request) -> Any:
        (told,) = self.tell(request)
        assert not told.push
        return told.reply


@pytest.fixture
def talk() -> Talk:
    talking = Talk()
    create = calls.CreateTopic("t", 2, if_exists=calls.IfExists.GROW)
    assert len(talking.ask(create).topic.partitions) == 2
    return talking


def records(values: list[bytes | None], **given: Any) -> RecordBatch:
    return RecordBatch(len(values), VarColumn.of(values), origin=Origin.NONE, **given)


def test_topics_are_made_described_listed_and_deleted(talk: Talk) -> None:
    assert len(talk.ask(calls.DescribeTopic("t")).topic.partitions) == 2
    assert [topic.name for topic in talk.ask(calls.ListTopics()).topics] == ["t"]
    assert talk.ask(calls.DeleteTopic("t")) == calls.TopicDeleted("default", "t")
    assert talk.ask(calls.DescribeTopic("t")).code is ErrorCode.UNKNOWN_TOPIC


def test_records_are_deleted_below_an_offset(talk: Talk) -> None:
    talk.ask(calls.Produce("t", records([b"a", b"b"]), 0))
    assert talk.ask(calls.DeleteRecords("t", 0, 1)) == calls.RecordsDeleted(0, 1)
    assert talk.ask(calls.DeleteRecords("t", 0, -1)) == calls.RecordsDeleted(0, 2)
    assert talk.ask(calls.DeleteRecords("t", 0, 3)).code is ErrorCode.INVALID_OFFSET


def test_settings_are_asked_for_and_heard(talk: Talk) -> None:
    config = calls.TopicConfig(1, 2, True, True, 3, 4)
    create = calls.CreateTopic("u", 1, config=config, if_exists=calls.IfExists.GROW)
    assert talk.ask(create).topic.config == config
    assert talk.ask(calls.DescribeTopic("u")).topic.config == config


def test_a_batch_that_is_sent_again_is_written_once(talk: Talk) -> None:
    def once(sequence: int, *values: bytes) -> Any:
        batch = records([*values], producers=(b"p",), base_sequence=sequence)
        return talk.ask(calls.Produce("t", batch, 0, idempotent=True))

    assert once(1, b"a", b"b") == once(1, b"a", b"b") == calls.Produced(0, 0, 2)
    gap = once(4, b"d")
    assert gap.code is ErrorCode.OUT_OF_ORDER_SEQUENCE
    talk.ask(calls.Produce("t", records([b"x"], producers=(b"q",), producer_epoch=5), 0))
    assert len(talk.ask(calls.Fetch("t", 0)).slices[0].batch.values) == 3


def test_a_batch_is_written_and_read_back_with_all_its_fields(talk: Talk) -> None:
    event = encode_headers([Header("cursus.event_type", HeaderKind.STRING, b"Made")])
    written = records(
        [b"a", b"", b"c"],
        keys=VarColumn.of([b"k", None, b"l"]),
        headers=VarColumn.of([event, None, None]),
        producers=(b"p",),
        producer_epoch=9,
        base_sequence=4,
    )
    assert talk.ask(calls.Produce("t", written, 1)) == calls.Produced(1, 0, 3)
    fetched = talk.ask(calls.Fetch("t", 1))
    assert (fetched.start_offset, fetched.next_offset, fetched.count) == (0, 3, 3)
    (piece,) = fetched.slices
    rows = list(piece.batch.records())
    assert [(row.offset, row.value, row.key) for row in rows] == [
        (0, b"a", b"k"),
        (1, b"", None),
        (2, b"c", b"l"),
    ]
    assert [row.headers for row in rows] == [event, None, None]
    assert [(row.producer, row.epoch, row.sequence) for row in rows] == [
        (b"p", 9, 4),
        (b"p", 9, 5),
        (b"p", 9, 6),
    ]


def test_one_record_may_be_routed_by_the_server(talk: Talk) -> None:
    first = talk.ask(calls.Produce("t", records([b" any\0 bytes=\xff\r\n"])))
    assert first == calls.Produced(-1, 0, 1)
    (piece,) = talk.ask(calls.Fetch("t", 0)).slices
    assert piece.batch.values[0] == b" any\0 bytes=\xff\r\n"
    keyed = talk.ask(calls.Produce("t", records([b"x"], keys=VarColumn.of([b"k1"]))))
    assert keyed.count == 1


def test_reading_stops_and_waits_where_it_is_told(talk: Talk) -> None:
    talk.ask(calls.Produce("t", records([b"%d" % n for n in range(5)]), 0))
    assert talk.ask(calls.Fetch("t", 0, 2, records_max=2)).next_offset == 4
    assert talk.ask(calls.Fetch("t", 0, whence=calls.Whence.LATEST)).count == 0
    assert talk.tell(calls.Fetch("t", 0, 5, wait_us=900_000)) == []
    (told,) = talk.speaker.receive(talk.server.advance(1))
    assert isinstance(told.reply, calls.Fetched)
    assert (told.reply.count, told.reply.next_offset) == (0, 5)


def test_a_follow_is_pushed_and_keep_alives_are_not_told(talk: Talk) -> None:
    assert talk.tell(calls.Follow("t", 0)) == []
    assert talk.speaker.receive(talk.server.advance(4)) == []
    writer = Talk(talk.server.another("cursus"))
    writer.ask(calls.Produce("t", records([b"x", b"y"]), 0))
    (told,) = talk.speaker.receive(talk.server.advance(0.1))
    assert told.push
    assert isinstance(told.reply, calls.Followed)
    assert (told.reply.start_offset, told.reply.next_offset) == (0, 2)


def test_other_requests_are_answered_beside_a_follow(talk: Talk) -> None:
    talk.tell(calls.Follow("t", 0))
    assert talk.ask(calls.Fetch("t", 1)).count == 0
    with pytest.raises(Unsayable):
        talk.speaker.ask(calls.Fetch("t", 0))


def test_a_follow_that_is_refused_tells_why() -> None:
    talking = Talk()
    (told,) = talking.tell(calls.Follow("nope", 0))
    assert told.push
    assert isinstance(told.reply, Failure)
    assert told.reply.code is ErrorCode.UNKNOWN_TOPIC


def test_groups_and_offsets(talk: Talk) -> None:
    joined = talk.ask(calls.JoinGroup("t", "g", "c"))
    assert (joined.generation, joined.partitions) == (1, (0, 1))
    member = joined.member
    assert talk.ask(calls.SyncGroup("t", "g", member, 1)).partitions == (0, 1)
    beat = talk.ask(calls.Heartbeat("t", "g", member, 1))
    assert beat == calls.HeartbeatAccepted(member, 1)
    stale = talk.ask(calls.Heartbeat("t", "g", member, 7))
    assert stale.code is ErrorCode.STALE_GENERATION
    assert stale.facts["current"] == 1
    commit = calls.CommitOffset("t", "g", ((0, 3), (1, 4)), member=member, generation=1)
    assert talk.ask(commit) == calls.OffsetCommitted(2)
    assert talk.ask(calls.FetchOffset("t", "g", 1)).offset == 4
    assert talk.ask(calls.CommitOffset("t", "g", ((0, 9),))) == calls.OffsetCommitted(1)
    lower = talk.ask(calls.CommitOffset("t", "g", ((0, 8),)))
    assert lower.code is ErrorCode.OFFSET_REGRESSION
    assert talk.ask(calls.LeaveGroup("t", "g", member)) == calls.GroupLeft(member, True)


UNSAYABLE: list[calls.Request] = [
    calls.Ping(),
    calls.ListNamespaces(),
    calls.ListTopics("default"),
    calls.CreateTopic("t", 2),
    calls.CreateTopic("t", 2, number=3, if_exists=calls.IfExists.GROW),
    calls.DescribeTopic(5),
    calls.DescribeTopic("a b"),
    calls.DescribeTopic(""),
    calls.Fetch("t", 0, whence=calls.Whence.TIMESTAMP),
    calls.Fetch("t", 0, group="g", whence=calls.Whence.COMMITTED, offset=5),
    calls.Fetch("t", 0, group="g", auto_commit=True),
    calls.Fetch("t", 0, create_partitions=1),
    calls.FetchOffset("t", "g", 0, kind=calls.OffsetKind.CONSUMER),
    calls.CommitOffset("t", "g", ()),
    calls.CommitOffset("t", "g", ((0, 1), (1, 1))),
    calls.CommitOffset("t", "g", ((0, 1),), within_log=True),
    calls.JoinGroup("t", "g", "m", bound=True),
    calls.Produce("t", records([]), 0),
    calls.Produce("t", records([b"x"]), 0, dedupe=True),
    calls.Produce("t", records([b"x"]), 0, create_partitions=2),
    calls.Produce("t", records([b"x"]), 2**31),
    calls.Produce("t", records([b"x", b"y"])),
    calls.Produce("t", records([None]), 0),
    calls.Produce("t", records([None])),
    calls.Produce("t", records([b"x"]), calls.ByHash(1)),
    calls.Produce("t", records([b"x"], keys=VarColumn.of([b"a b"]))),
    calls.Produce("t", records([b"x"], keys=VarColumn.of([b"\xff"]))),
    calls.Produce("t", records([b"x"], keys=VarColumn.of([b""])), 0),
    calls.Produce("t", records([b"x"], keys=VarColumn.of([bytes(65_536)])), 0),
    calls.Produce("t", records([b"x"], base_sequence=4)),
    calls.Produce(
        "t",
        records(
            [b"x"],
            headers=VarColumn.of([encode_headers([Header("h", HeaderKind.RAW, b"")])]),
        ),
        0,
    ),
]


@pytest.mark.parametrize("request_", UNSAYABLE, ids=lambda request: type(request).__name__)
def test_what_the_dialect_has_no_words_for_is_not_sent(request_: calls.Request) -> None:
    with pytest.raises(Unsayable):
        CursusSpeaker().ask(request_)


def test_a_batch_larger_than_a_frame_is_not_sent() -> None:
    with pytest.raises(Unsayable, match="frame"):
        CursusSpeaker().ask(calls.Produce("t", records([bytes(32 << 20), bytes(32 << 20)]), 0))


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xff",
        b"OK",
        b"OK offset=x",
        b"NO",
        b"\xba\x7c",
        batch([]),
    ],
)
def test_answers_that_are_none_break_the_protocol(body: bytes) -> None:
    speaker = CursusSpeaker()
    speaker.ask(calls.FetchOffset("t", "g", 0))
    with pytest.raises(ProtocolError):
        speaker.receive(framed(body))


@pytest.mark.parametrize("body", [b"OK", batch([message()])])
def test_an_answer_to_nothing_breaks_the_protocol(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        CursusSpeaker().receive(framed(body))


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"status":"OK"}', b'{"status":"OK","last_offset":"3"}', b"OK"]
)
def test_acks_that_are_none_break_the_protocol(body: bytes) -> None:
    speaker = CursusSpeaker()
    speaker.ask(calls.Produce("t", records([b"x"]), 0))
    with pytest.raises(ProtocolError):
        speaker.receive(framed(body))


def test_a_length_beyond_the_limit_breaks_the_protocol() -> None:
    with pytest.raises(ProtocolError):
        CursusSpeaker().receive(b"\xff\xff\xff\xff")


@pytest.mark.parametrize("offsets", [(5, 5), (5, 4), (0, 2**40)])
def test_offsets_that_cannot_be_break_the_protocol(offsets: tuple[int, int]) -> None:
    body = batch([message(offset=offset) for offset in offsets])
    with pytest.raises(ProtocolError):
        hearing.batch_of(body)


def test_offsets_with_gaps_are_kept() -> None:
    body = batch([message(offset=offset) for offset in (5, 9)])
    (piece,) = hearing.batch_of(body).slices
    assert [record.offset for record in piece.batch.records()] == [5, 9]


def test_the_published_brokers_answers_are_understood_too() -> None:
    speaker = CursusSpeaker()
    speaker.ask(calls.DescribeTopic("t"))
    speaker.ask(calls.CreateTopic("t", 1, if_exists=calls.IfExists.GROW))
    told = speaker.receive(
        framed("OK topic=t partitions=2 leaders=h:1,h:1 epochs=0,0 partitioner=hash_key")
        + framed("OK topic=t partitions=1 partitioner=hash_key retention_hours=0")
    )
    assert [type(item.reply) for item in told] == [calls.TopicDescribed, calls.TopicCreated]


def test_names_outside_the_default_namespace_are_flat() -> None:
    assert saying.topic_of("ns", "t") == "ns/t"
    assert described("ns/t", 0).namespace == "ns"


@pytest.mark.parametrize("name", registry().names())
def test_a_speaker_compresses_batches_when_asked_and_nothing_else(name: str) -> None:
    talk = Talk(Conversation("cursus", compression="snappy-block"))
    talk.speaker = CursusSpeaker(compression=name)
    create = calls.CreateTopic("t", 1, if_exists=calls.IfExists.GROW)
    command = b"".join(map(bytes, talk.speaker.ask(create)))
    assert b"CREATE topic=t" in command
    talk.speaker.receive(talk.server.send(command))
    request = calls.Produce("t", records([b"a" * 1000, b"b" * 1000]), 0)
    sent = b"".join(map(bytes, talk.speaker.ask(request)))
    plain = b"".join(map(bytes, CursusSpeaker().ask(request)))
    assert len(sent) < len(plain)
    assert sent[4:].startswith(registry().named(name).magic)
    assert registry().named(name).decompress(sent[4:], 10_000) == plain[4:]
    (told,) = talk.speaker.receive(talk.server.send(sent))
    assert told.reply == calls.Produced(0, 0, 2)
    values = [
        record.value for record in talk.ask(calls.Fetch("t", 0)).slices[0].batch.records(0, 2)
    ]
    assert values == [b"a" * 1000, b"b" * 1000]


def test_a_batch_that_shrinks_more_than_servers_open_goes_plain() -> None:
    request = calls.Produce("t", records([bytes(5_000_000)]), 0)
    for name in ("gzip", "zstd", "lz4"):
        sent = b"".join(map(bytes, CursusSpeaker(compression=name).ask(request)))
        assert sent == b"".join(map(bytes, CursusSpeaker().ask(request)))


def test_a_speaker_of_an_unknown_compression_is_not_made() -> None:
    with pytest.raises(ValueError, match="compression is one of none, gzip"):
        CursusSpeaker(compression="rar")


@pytest.mark.parametrize("follows", [False, True])
def test_a_member_that_asks_nothing_is_told_that_its_group_moved_on(follows: bool) -> None:
    speaker = CursusSpeaker()
    if follows:
        speaker.ask(calls.Follow("t", 0))
    (told,) = speaker.receive(framed("REBALANCE_REQUIRED generation=4"))
    assert told.push
    assert isinstance(told.reply, Failure)
    assert (told.reply.code, told.reply.facts["current"]) == (ErrorCode.STALE_GENERATION, 4)


def test_the_leaders_of_partitions_are_heard() -> None:
    speaker = CursusSpeaker()
    speaker.ask(calls.DescribeTopic("t"))
    line = "OK topic=t partitions=3 leaders=a:1,,?:9999999 epochs=0,0,0"
    (told,) = speaker.receive(framed(line))
    assert isinstance(told.reply, calls.TopicDescribed)
    assert [each.leader for each in told.reply.topic.partitions] == ["a:1", "", ""]


def test_members_name_themselves_where_they_read() -> None:
    speaker = CursusSpeaker()
    fetch = calls.Fetch("t", 0, 5, group="g", member="m-1", generation=2)
    follow = calls.Follow("t", 1, 5, group="g", member="m-1", generation=2)
    for request in (fetch, follow):
        asked = b"".join(map(bytes, speaker.ask(request)))
        assert b" offset=5 group=g member=m-1 generation=2" in asked
