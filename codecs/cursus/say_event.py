"""Requests of the event store as a Cursus client says them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.codecs.base import Unsayable
from dragoman.codecs.cursus.sentence import command, topic_of
from dragoman.core import calls
from dragoman.core.events.field import NO_EVENT, event_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Buffer
    from dragoman.core.event import EventRequest


def say_event(request: EventRequest) -> Sequence[Buffer]:
    """The body of the frame that asks for something.

    Raises:
        Unsayable: A key or field is empty or has white space, or is no text.
    """
    stream = {"topic": topic_of(request.namespace, request.topic), "key": _text(request.key, "key")}
    match request:
        case calls.AppendEvent():
            return _append(request, stream)
        case calls.ReadEvents(from_version=from_version):
            return command("READ_STREAM", **stream, from_version=from_version or None)
        case calls.ReadVersion():
            return command("STREAM_VERSION", **stream)
        case calls.SaveSnapshot(version=version, payload=payload):
            return command("SAVE_SNAPSHOT", b" message=", payload, **stream, version=version)
        case calls.ReadSnapshot():
            return command("READ_SNAPSHOT", **stream)


def _append(request: calls.AppendEvent, stream: dict[str, str]) -> list[Buffer]:
    record = request.batch.record(0)
    if record.value is None:
        raise Unsayable("a Cursus event has a message")
    if record.epoch is not None or record.sequence is not None:
        raise Unsayable("a Cursus event has neither epoch nor sequence")
    event, exact = event_of(record.headers) if record.headers else (NO_EVENT, True)
    if not exact or event.aggregate_version:
        raise Unsayable("a Cursus event has an event type, a schema version and metadata alone")
    return command(
        "APPEND_STREAM",
        b" message=",
        record.value,
        **stream,
        version=request.version,
        event_type=_text(event.event_type, "event_type") or None,
        schema_version=event.schema_version or None,
        producerId=_text(record.producer or b"", "producerId") or None,
        metadata=_text(event.metadata, "metadata") or None,
    )


def _text(value: bytes, what: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Unsayable(f"a Cursus {what} is text") from None
