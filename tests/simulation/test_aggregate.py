"""Streams of events: what may be answered of their versions and of their snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.simulation.aggregate import Aggregate
from dragoman.simulation.rule import Broken, Rule


def stream() -> Aggregate:
    """Events 1 and 2 are acknowledged, 3 is on its way."""
    known = Aggregate("stream k of t")
    for version in (1, 2, 3):
        known.sends(version, b"%d" % version)
    known.appended(1, b"1", 1, 0)
    known.appended(2, b"2", 2, 1)
    return known


def breaks(rule: Rule = Rule.EVENT) -> Any:
    return pytest.raises(Broken, match=f"^{rule.name}: ")


def test_events_read_as_they_were_acknowledged() -> None:
    known = stream()
    known.read(1, [(1, b"1"), (2, b"2")], 2)
    known.read(2, [(2, b"2"), (3, b"3")], 2)
    known.read(9, [], 3)
    assert known.version == 3


def test_an_event_has_the_version_that_was_asked_for() -> None:
    with breaks():
        stream().appended(3, b"3", 4, 2)


def test_a_version_is_given_once() -> None:
    known = stream()
    known.sends(2, b"other")
    with breaks():
        known.appended(2, b"other", 2, 1)


def test_a_version_that_was_known_is_given_to_nobody() -> None:
    known = stream()
    known.read(1, [(1, b"1"), (2, b"2"), (3, b"3")], 2)
    with breaks():
        known.appended(3, b"3", 3, 3)


@pytest.mark.parametrize(
    "events",
    [
        [(1, b"1")],
        [(2, b"2")],
        [(1, b"1"), (3, b"3")],
        [(1, b"1"), (2, b"2"), (2, b"2")],
        [(1, b"1"), (2, b"3")],
        [(1, b"1"), (2, b"2"), (3, b"z")],
    ],
)
def test_a_stream_is_shown_whole(events: list[tuple[int, bytes]]) -> None:
    with breaks():
        stream().read(1, events, 2)


def test_a_version_does_not_fall_and_is_no_one_that_nobody_asked_for() -> None:
    stream().stands_at(3, 2)
    for version in (1, 4):
        with breaks():
            stream().stands_at(version, 2)


def test_a_conflict_has_a_reason() -> None:
    stream().conflicted(2, 2, 2)
    with breaks():
        stream().conflicted(3, 2, 2)
    with breaks():
        stream().conflicted(3, 1, 2)


def test_a_snapshot_reads_back_until_a_later_one() -> None:
    snapshots = Aggregate("stream k of t").snapshots
    snapshots.asks(7, 1).done = 2
    snapshots.asks(8, 3).done = 4
    snapshots.reads((8,), 5, 6)
    with breaks(Rule.SNAPSHOT):
        snapshots.reads((7,), 5, 6)
