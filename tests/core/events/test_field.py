from __future__ import annotations

import pytest

from dragoman.core.events.field import (
    AGGREGATE_VERSION,
    NO_EVENT,
    Event,
    event_headers,
    event_of,
    version_header,
    version_of,
)
from dragoman.core.header import Header, HeaderKind, encode_headers

LARGEST = (1 << 64) - 1


@pytest.mark.parametrize(
    "event",
    [
        Event(b"Made", 1, 7, b"{}"),
        Event(b"", 0, LARGEST, b""),
        Event(b"\xff", (1 << 32) - 1, 0, b"\xfe"),
    ],
)
def test_fields_come_back_as_they_were(event: Event) -> None:
    raw = event_headers(event)
    assert raw is not None
    assert event_of(raw) == (event, True)
    assert version_of(raw) == event.aggregate_version


def test_no_fields_are_no_headers() -> None:
    assert event_headers(NO_EVENT) is None


def test_a_version_put_first_is_found() -> None:
    assert version_of(version_header(5)) == 5
    assert version_of(version_header(LARGEST) + (event_headers(Event(b"Made")) or b"")) == LARGEST


def test_a_text_that_looks_like_a_version_is_none() -> None:
    assert version_of(event_headers(Event(metadata=version_header(9))) or b"") == 0
    fields = event_headers(Event(b"", 0, 4, version_header(9)))
    assert version_of(fields or b"") == 4


def test_of_several_versions_the_last_counts_as_readers_have_it() -> None:
    raw = version_header(1) + version_header(2)
    assert version_of(raw) == event_of(raw)[0].aggregate_version == 2


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xff\xff\xff\xff",
        version_header(1)[:-1],
        encode_headers([Header(AGGREGATE_VERSION, HeaderKind.UINT32, b"\1\0\0\0")]),
        encode_headers([Header("other", HeaderKind.UINT64, b"\1" + bytes(7))]),
    ],
)
def test_other_headers_are_no_version(raw: bytes) -> None:
    assert version_of(raw) == event_of(raw)[0].aggregate_version == 0
