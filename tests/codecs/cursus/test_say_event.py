"""The event store as our client asks for it and hears of it, against the server's half."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codecs.base import Unsayable
from dragoman.codecs.cursus.say_event import say_event
from dragoman.codecs.cursus.speaker import CursusSpeaker
from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode
from dragoman.core.events.field import Event, event_headers, event_of
from support.conversation import Conversation

K = b"k1"


def event(value: bytes | None = b"x", fields: Event | None = None, **given: Any) -> RecordBatch:
    headers = event_headers(fields) if fields is not None else None
    return RecordBatch(
        1,
        VarColumn.of([value]),
        origin=Origin.NONE,
        headers=None if headers is None else VarColumn.single(headers),
        **given,
    )


class Talk:
    """A speaker connected to a server that has a topic of streams."""

    def __init__(self, **options: Any) -> None:
        self.server = Conversation("cursus", **options)
        self.speaker = CursusSpeaker()
        config = calls.TopicConfig(event_sourcing=True)
        self.ask(calls.CreateTopic("t", 2, config=config, if_exists=calls.IfExists.GROW))

    def ask(self, request: calls.Request) -> Any:
        asked = b"".join(map(bytes, self.speaker.ask(request)))
        (told,) = self.speaker.receive(self.server.send(asked))
        return told.reply

    def append(self, version: int, batch: RecordBatch) -> Any:
        return self.ask(calls.AppendEvent("t", K, 0, version, batch))


@pytest.fixture(params=[False, True], ids=["", "legacy"])
def talk(request: pytest.FixtureRequest) -> Talk:
    return Talk(legacy_replies=request.param)


def test_an_event_comes_back_with_all_its_fields(talk: Talk) -> None:
    fields = Event(b"Made", 3, 0, b'{"by":1}')
    first = event(b"a \xff\0", fields, producers=(b"p",))
    assert talk.append(1, first) == calls.EventAppended(1, 0, 1)
    assert talk.append(2, event(b"")) == calls.EventAppended(2, 1, 1)
    stream = talk.ask(calls.ReadEvents("t", K, 0))
    assert (stream.partition, stream.count, stream.snapshot) == (1, 2, None)
    one, two = [r for piece in stream.slices for r in piece.batch.records(*piece[1:])]
    assert (one.value, one.key, one.producer, one.offset) == (b"a \xff\0", K, b"p", 0)
    assert event_of(one.headers)[0] == Event(b"Made", 3, 1, b'{"by":1}')
    assert (two.value, event_of(two.headers)[0]) == (b"", Event(aggregate_version=2))


def test_versions_and_conflicts_are_heard(talk: Talk) -> None:
    talk.append(1, event())
    assert talk.ask(calls.ReadVersion("t", K, 0)) == calls.VersionRead(1)
    refused = talk.append(5, event())
    assert refused.code is ErrorCode.VERSION_CONFLICT
    assert refused.facts == {"current": 1, "expected": 5}


@pytest.mark.parametrize("payload", [b"", b'{"a": "b"}', "hé\n".encode(), b"\xff\0\xed\xa0\x80"])
def test_a_snapshot_comes_back_byte_for_byte(talk: Talk, payload: bytes) -> None:
    talk.append(1, event())
    assert talk.ask(calls.ReadSnapshot("t", K, 0)) == calls.SnapshotRead(None)
    assert talk.ask(calls.SaveSnapshot("t", K, 0, 1, payload)) == calls.SnapshotSaved(1, 1)
    snapshot = calls.Snapshot(1, payload)
    assert talk.ask(calls.ReadSnapshot("t", K, 0)) == calls.SnapshotRead(snapshot)
    stream = talk.ask(calls.ReadEvents("t", K, 0))
    assert (stream.snapshot, stream.count) == (snapshot, 0)
    assert talk.ask(calls.ReadEvents("t", K, 0, 1)).count == 1


def test_a_snapshot_that_is_too_new_is_heard(talk: Talk) -> None:
    refused = talk.ask(calls.SaveSnapshot("t", K, 0, 1, b""))
    assert refused.code is ErrorCode.SNAPSHOT_TOO_NEW


@pytest.mark.parametrize(
    "request_",
    [
        calls.ReadEvents("nope", K, 0),
        calls.ReadVersion("nope", K, 0),
        calls.ReadSnapshot("nope", K, 0),
        calls.SaveSnapshot("nope", K, 0, 1, b""),
    ],
)
def test_a_missing_topic_is_heard(talk: Talk, request_: calls.Request) -> None:
    assert talk.ask(request_).code is ErrorCode.UNKNOWN_TOPIC
    assert talk.ask(calls.ListTopics()).topics


def test_a_topic_without_streams_is_heard(talk: Talk) -> None:
    talk.ask(calls.CreateTopic("plain", 1, if_exists=calls.IfExists.GROW))
    for request in (calls.ReadEvents("plain", K, 0), calls.ReadVersion("plain", K, 0)):
        assert talk.ask(request).code is ErrorCode.NOT_EVENT_SOURCED


@pytest.mark.parametrize(
    "request_",
    [
        calls.ReadVersion("t", b"two words", 0),
        calls.ReadVersion("t", b"", 0),
        calls.ReadVersion("t", b"\xff", 0),
        calls.ReadVersion(7, K, 0),
        calls.AppendEvent("t", K, 0, 1, event(None)),
        calls.AppendEvent("t", K, 0, 1, event(fields=Event(metadata=b"a b"))),
        calls.AppendEvent("t", K, 0, 1, event(fields=Event(aggregate_version=4))),
        calls.AppendEvent("t", K, 0, 1, event(producers=(b"p",), base_sequence=1)),
    ],
)
def test_what_the_wire_has_no_words_for_is_unsayable(request_: Any) -> None:
    with pytest.raises(Unsayable):
        say_event(request_)


def test_a_connection_that_follows_reads_no_streams() -> None:
    speaker = CursusSpeaker()
    speaker.ask(calls.Follow("t", 0))
    with pytest.raises(Unsayable):
        speaker.ask(calls.ReadEvents("t", K, 0))
