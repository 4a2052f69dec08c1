"""Commands of the event store; they exist in the clients' form alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.codecs.base import Asked
from dragoman.codecs.cursus.argument import (
    INT64,
    RECORDS_MAX,
    Bad,
    number_in,
    topic_of,
    value_of,
)
from dragoman.codecs.cursus.ask_read import CONSUME_BYTES
from dragoman.codecs.cursus.ask_write import KEY_BYTES_MAX
from dragoman.codecs.cursus.publish import one_record
from dragoman.core import calls
from dragoman.core.column import VarColumn
from dragoman.core.events.field import FIELD_BYTES_MAX, Event, event_headers
from dragoman.core.route import fnv1a_64

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.codecs.base import Heard
    from dragoman.codecs.cursus.argument import Context, Handler
    from dragoman.codecs.cursus.command import Command
    from dragoman.codecs.cursus.translate import Tag

_VERSIONS: Final = (0, INT64[1])
_UINT32: Final = (0, (1 << 32) - 1)


def _append_stream(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic, key = _stream_of(command, tag)
    version = number_in(value_of(command, "version"), _VERSIONS, "invalid_version")
    message = _message_of(command)
    values = command.values
    schema = values.get("schema_version", b"0")
    event = Event(
        _field_of(command, "event_type"),
        number_in(schema, _UINT32, "invalid_schema_version"),
        metadata=_field_of(command, "metadata"),
    )
    batch = one_record(message, key, producer=values.get("producerId", b""))
    if (headers := event_headers(event)) is not None:
        batch.headers = VarColumn.single(headers)
    request = calls.AppendEvent(topic, key, fnv1a_64(key), version, batch, namespace)
    return Asked(tag, request)


def _read_stream(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic, key = _stream_of(command, tag)
    from_version = 0
    if "from_version" in command.values:
        given = command.values["from_version"]
        from_version = number_in(given, _VERSIONS, "invalid_from_version")
    request = calls.ReadEvents(
        topic,
        key,
        fnv1a_64(key),
        from_version,
        namespace,
        RECORDS_MAX,
        min(CONSUME_BYTES, context.limits.reply_bytes_max),
    )
    return Asked(tag, request)


def _stream_version(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic, key = _stream_of(command, tag)
    return Asked(tag, calls.ReadVersion(topic, key, fnv1a_64(key), namespace))


def _save_snapshot(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic, key = _stream_of(command, tag)
    bounds = (1, INT64[1])
    version = number_in(value_of(command, "version"), bounds, "invalid_version")
    message = _message_of(command)
    request = calls.SaveSnapshot(topic, key, fnv1a_64(key), version, message, namespace)
    return Asked(tag, request)


def _read_snapshot(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic, key = _stream_of(command, tag)
    return Asked(tag, calls.ReadSnapshot(topic, key, fnv1a_64(key), namespace))


def _stream_of(command: Command, tag: Tag) -> tuple[str, str, bytes]:
    """Namespace, topic and key that a command names."""
    if command.positional:
        raise Bad("")
    namespace, topic = topic_of(command, tag)
    key = tag.key = value_of(command, "key")
    if len(key) > KEY_BYTES_MAX:
        raise Bad(f"invalid_key bytes={len(key)} limit={KEY_BYTES_MAX}")
    return namespace, topic, key


def _message_of(command: Command) -> bytes:
    message = command.values.get("message")
    if message is None:
        raise Bad(f"missing_message command={command.keyword}")
    return message


def _field_of(command: Command, name: str) -> bytes:
    """A field of an event; empty where it is missing."""
    value = command.values.get(name, b"")
    if len(value) > FIELD_BYTES_MAX:
        raise Bad(f"invalid_{name} bytes={len(value)} limit={FIELD_BYTES_MAX}")
    return value


EVENTS: Final[Mapping[str, Handler]] = {
    "APPEND_STREAM": _append_stream,
    "READ_STREAM": _read_stream,
    "STREAM_VERSION": _stream_version,
    "SAVE_SNAPSHOT": _save_snapshot,
    "READ_SNAPSHOT": _read_snapshot,
}
"""Which function asks what each of these commands means."""
