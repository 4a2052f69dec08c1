"""What a record says of itself as an event: four fields, at rest as headers of reserved names.

They are the event fields of the Cursus wire. The aggregate version is also the engine's own: it
numbers the events of a stream (`core.events.eventing`).
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from dragoman.core.header import Header, HeaderKind, decode_headers, encode_headers

EVENT_TYPE: Final = "cursus.event_type"
SCHEMA_VERSION: Final = "cursus.schema_version"
AGGREGATE_VERSION: Final = "cursus.aggregate_version"
METADATA: Final = "cursus.metadata"

FIELD_BYTES_MAX: Final = 0xFFFF
"""Bytes of the longest event type or metadata."""

_U32 = Struct("<I")
_U64 = Struct("<Q")


class Event(NamedTuple):
    """The event fields of one record; what is empty or 0 is absent."""

    event_type: bytes = b""
    schema_version: int = 0
    aggregate_version: int = 0
    metadata: bytes = b""


NO_EVENT: Final = Event()


def event_headers(event: Event) -> bytes | None:
    """One record's event fields as headers at rest; None where it has none."""
    headers = []
    if event.event_type:
        headers.append(Header(EVENT_TYPE, _kind_of(event.event_type), event.event_type))
    if event.schema_version:
        value = _U32.pack(event.schema_version)
        headers.append(Header(SCHEMA_VERSION, HeaderKind.UINT32, value))
    if event.aggregate_version:
        value = _U64.pack(event.aggregate_version)
        headers.append(Header(AGGREGATE_VERSION, HeaderKind.UINT64, value))
    if event.metadata:
        headers.append(Header(METADATA, _kind_of(event.metadata), event.metadata))
    return encode_headers(headers) if headers else None


def event_of(raw: bytes) -> tuple[Event, bool]:
    """The event fields in one record's headers, and whether the headers hold nothing else."""
    event, exact = NO_EVENT, True
    try:
        for key, kind, value in decode_headers(raw):
            text = kind in (HeaderKind.STRING, HeaderKind.RAW) and len(value) <= FIELD_BYTES_MAX
            if key == EVENT_TYPE and text:
                event = event._replace(event_type=value)
            elif key == METADATA and text:
                event = event._replace(metadata=value)
            elif key == SCHEMA_VERSION and kind is HeaderKind.UINT32 and len(value) == 4:
                event = event._replace(schema_version=_U32.unpack(value)[0])
            elif key == AGGREGATE_VERSION and kind is HeaderKind.UINT64 and len(value) == 8:
                event = event._replace(aggregate_version=_U64.unpack(value)[0])
            else:
                exact = False
    except ValueError:
        return event, False
    return event, exact


def _kind_of(value: bytes) -> HeaderKind:
    try:
        value.decode()
    except UnicodeDecodeError:
        return HeaderKind.RAW
    return HeaderKind.STRING


_VERSION_SIZE = 8
_VERSION = encode_headers([Header(AGGREGATE_VERSION, HeaderKind.UINT64, bytes(_VERSION_SIZE))])
_VERSION_HEAD = _VERSION[:-_VERSION_SIZE]
_VERSION_AT = len(_VERSION_HEAD)


def version_header(version: int) -> bytes:
    """The header at rest of an aggregate version; put first, it is found without a search."""
    return _VERSION_HEAD + _U64.pack(version)


def version_of(raw: bytes) -> int:
    """The aggregate version in one record's headers, as `event_of` has it; 0 for none."""
    at = raw.find(_VERSION_HEAD)
    if at < 0:
        return 0
    if at or len(raw) < len(_VERSION) or raw.find(_VERSION_HEAD, _VERSION_AT) > 0:
        return event_of(raw)[0].aggregate_version
    version: int = _U64.unpack_from(raw, _VERSION_AT)[0]
    return version
