"""What commands of the event store ask of core; their answers on the wire are vectors."""

from __future__ import annotations

import pytest

from dragoman.core import calls
from dragoman.core.events.field import Event, event_of
from dragoman.core.route import fnv1a_64
from support.asked import asked
from support.conversation import Conversation
from support.cursus import framed, unframed


def test_an_event_has_the_fields_that_are_named() -> None:
    text = "APPEND_STREAM topic=n/t key=k version=7 event_type=E schema_version=2 metadata={}"
    request = asked(f"{text} producerId=p message=a  b").request
    assert isinstance(request, calls.AppendEvent)
    assert (request.namespace, request.topic, request.key) == ("n", "t", b"k")
    assert (request.version, request.key_hash) == (7, fnv1a_64(b"k"))
    record = request.batch.record(0)
    assert (record.value, record.key, record.producer) == (b"a  b", b"k", b"p")
    assert event_of(record.headers or b"") == (Event(b"E", 2, 0, b"{}"), True)


def test_an_event_without_fields_has_no_headers() -> None:
    request = asked("APPEND_STREAM topic=t key=k version=1 message=").request
    assert isinstance(request, calls.AppendEvent)
    assert request.batch.headers is None
    assert request.batch.producers == ()


def test_a_stream_is_read_within_the_limits_of_a_reply() -> None:
    request = asked("READ_STREAM topic=t key=k from_version=3").request
    assert isinstance(request, calls.ReadEvents)
    assert (request.from_version, request.records_max) == (3, 8192)
    assert request.bytes_max == 8 * 1024 * 1024


@pytest.mark.parametrize(
    ("tail", "told"),
    [
        (b"key=" + b"k" * 4097 + b" version=1 message=x", "invalid_key bytes=4097 limit=4096"),
        (
            b"key=k version=1 metadata=" + b"m" * 65_536 + b" message=x",
            "invalid_metadata bytes=65536 limit=65535",
        ),
        (
            b"key=k version=1 event_type=" + b"m" * 65_536 + b" message=x",
            "invalid_event_type bytes=65536 limit=65535",
        ),
    ],
)
def test_what_is_too_long_is_refused(tail: bytes, told: str) -> None:
    server = Conversation("cursus")
    (answer,) = unframed(server.send(framed(b"APPEND_STREAM topic=t " + tail)))
    assert answer.decode() == f"ERROR: {told}"
