"""What is no answer of the event store breaks the protocol, and never anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.cursus.hear_event import hear_event
from dragoman.codecs.cursus.speaker import CursusSpeaker
from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from support.cursus import batch, framed, message

if TYPE_CHECKING:
    from dragoman.core.event import EventRequest

K = b"k"
NESTED = "[" * 100_000
"""JSON of more levels than Python reads."""
APPEND = calls.AppendEvent("t", K, 0, 1, RecordBatch(1, VarColumn.single(b"x"), origin=Origin.NONE))
VERSION = calls.ReadVersion("t", K, 0)
SAVE = calls.SaveSnapshot("t", K, 0, 1, b"")
SNAPSHOT = calls.ReadSnapshot("t", K, 0)
STREAM = calls.ReadEvents("t", K, 0)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (APPEND, "OK"),
        (APPEND, "OK version=1 offset=x partition=0"),
        (VERSION, "OK version="),
        (SAVE, "OK version=1"),
        (SNAPSHOT, "OK"),
        (SNAPSHOT, "OK snapshot="),
        (SNAPSHOT, "OK snapshot=[1]"),
        (SNAPSHOT, 'OK snapshot={"version":1}'),
        (SNAPSHOT, 'OK snapshot={"version":1,"payload":2}'),
        (SNAPSHOT, 'OK snapshot={"version":1,"payload":"\\ud83d"}'),
        (STREAM, "{}"),
        (STREAM, "[]"),
        (STREAM, '{"partition":"x"}'),
        pytest.param(SNAPSHOT, f"OK snapshot={NESTED}", id="nested"),
    ],
)
def test_other_texts_are_no_answers(request_: EventRequest, text: str) -> None:
    with pytest.raises(ProtocolError):
        hear_event(request_, text)


HEAD = framed('{"status":"OK","topic":"t","key":"k","partition":0,"count":1}')
BATCH = framed(batch(topic=b"t", messages=[message(key=K, aggregate_version=1)]))


def test_a_stream_is_whole_with_its_batch() -> None:
    speaker = CursusSpeaker()
    speaker.ask(STREAM)
    assert speaker.receive(HEAD) == []
    (told,) = speaker.receive(BATCH)
    assert isinstance(told.reply, calls.EventsRead)
    assert told.reply.count == 1


@pytest.mark.parametrize(
    "data",
    [BATCH, HEAD + HEAD, framed("OK"), framed("{"), pytest.param(framed(NESTED), id="nested")],
)
def test_a_stream_is_a_head_and_a_batch(data: bytes) -> None:
    speaker = CursusSpeaker()
    speaker.ask(STREAM)
    with pytest.raises(ProtocolError):
        speaker.receive(data)


@pytest.mark.parametrize(
    "told",
    ['{"error":"topic_not_found topic=t","status":"ERROR"}', "ERROR: topic_not_found topic=t"],
)
def test_a_refused_stream_is_one_frame(told: str) -> None:
    speaker = CursusSpeaker()
    speaker.ask(STREAM)
    (heard,) = speaker.receive(framed(told))
    assert isinstance(heard.reply, Failure)
    assert heard.reply.code is ErrorCode.UNKNOWN_TOPIC
