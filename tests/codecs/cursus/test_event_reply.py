"""Answers of the event store that no vector shows because they are large."""

from __future__ import annotations

import json

import pytest

from dragoman.codecs.cursus.event_reply import frames
from dragoman.codecs.cursus.translate import Tag
from dragoman.codecs.rendering import RenderingCache
from dragoman.core import calls

LARGE = calls.Snapshot(1, bytes(12 * 1024 * 1024))
"""6 characters of JSON a byte."""


@pytest.mark.parametrize("legacy", [False, True])
def test_a_snapshot_that_fits_in_no_frame_is_refused(legacy: bool) -> None:
    tag = Tag("READ_SNAPSHOT", "t", key=b"k")
    (told,) = frames(tag, calls.SnapshotRead(LARGE), RenderingCache(), legacy=legacy)
    assert bytes(told)[4:].startswith(b"ERROR: record_too_large size=75")


def test_so_is_one_at_the_head_of_a_stream() -> None:
    tag = Tag("READ_STREAM", "t", key=b"k")
    reply = calls.EventsRead(0, [], LARGE)
    (told,) = frames(tag, reply, RenderingCache(), legacy=False)
    assert json.loads(bytes(told)[4:])["error"].startswith("record_too_large size=75")


def test_what_fits_in_a_frame_is_counted_in_bytes() -> None:
    # Three bytes are one character as they are, and one byte is six once it is escaped.
    payload = "\u20ac".encode() * (7 * 1024 * 1024) + bytes(8 * 1024 * 1024)
    tag = Tag("READ_SNAPSHOT", "t", key=b"k")
    reply = calls.SnapshotRead(calls.Snapshot(1, payload))
    (told,) = frames(tag, reply, RenderingCache(), legacy=False)
    assert bytes(told[4:40]).startswith(b"ERROR: record_too_large size=72")
