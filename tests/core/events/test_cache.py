"""How many indexes are in memory, and which make room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import DeleteTopic, Produce, ReadVersion, VersionRead
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.events import load
from dragoman.core.events.index import EVENT_BYTES, STREAM_BYTES
from support.streams import TOPIC, Streams, published

if TYPE_CHECKING:
    import pytest

    from dragoman.core.outcome import Outcome

STREAM = STREAM_BYTES + 1
A, B, C = b"c", b"a", b"g"
"""Keys of the partitions 0, 1 and 2 of 3."""


def filled(**options: int) -> Streams:
    """A stream of one event in each of three partitions, after a restart."""
    log = Streams(3)
    assert [log.add(key, 1).partition for key in (A, B, C)] == [0, 1, 2]
    return log.restarted(**options)


def test_the_bytes_of_indexes_are_counted() -> None:
    log = filled()
    assert log.statistics["event_index_bytes"] == 0
    log.version(A)
    assert log.statistics["event_index_bytes"] == STREAM
    log.add(A, 2)
    assert log.statistics["event_index_bytes"] == STREAM + EVENT_BYTES


def test_the_index_unused_longest_makes_room() -> None:
    log = filled(event_index_bytes_max=2 * STREAM)
    log.version(A)
    log.version(B)
    log.version(A)
    log.version(C)
    assert (log.statistics["event_indexes"], log.statistics["event_indexes_evicted"]) == (2, 1)
    log.version(A)
    assert log.statistics["event_indexes_built"] == 3
    log.version(B)
    assert log.statistics["event_indexes_built"] == 4
    assert log.statistics["event_index_bytes"] <= 2 * STREAM


def test_an_index_that_made_room_is_built_again_with_what_came_meanwhile() -> None:
    log = filled(event_index_bytes_max=STREAM + EVENT_BYTES)
    log.version(A)
    log.version(B)
    log.ask(Produce(TOPIC, published((A, 2)), 0))
    assert log.version(A) == 2


def test_one_that_grows_too_large_goes_and_is_then_refused() -> None:
    log = Streams(event_index_bytes_max=2 * STREAM)
    log.add(A, 1)
    log.ask(Produce(TOPIC, published((B, 1), (C, 1)), 0))
    assert log.statistics["event_indexes"] == 0
    assert log.statistics["event_index_bytes"] == 0
    assert log.add(A, 2).code is ErrorCode.LIMIT_REACHED


def building(monkeypatch: pytest.MonkeyPatch, *keys: bytes) -> tuple[Streams, list[Outcome]]:
    """Readers of streams after a restart, when one of the two events of each has been read; the
    index of A is in use."""
    monkeypatch.setattr(load, "CHUNK_BYTES", 1)
    log = filled()
    for key in keys:
        log.add(key, 2)
    log = log.restarted(event_index_bytes_max=2 * STREAM + EVENT_BYTES - 1)
    log.version(A)
    log.store.blocking_reads = True
    begun = [log.hand(log.request(ReadVersion, key)) for key in keys]
    assert log.work() == len(keys)
    return log, begun


def test_those_in_use_make_room_for_those_that_are_being_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, (begun,) = building(monkeypatch, B)
    assert log.statistics["event_indexes_evicted"] == 0
    log.work()
    assert begun.reply == VersionRead(2)
    assert (log.statistics["event_indexes"], log.statistics["event_indexes_evicted"]) == (1, 1)


def test_one_that_is_too_large_with_others_that_are_being_built_is_refused_for_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, (first, second) = building(monkeypatch, B, C)
    log.work()
    assert isinstance(first.reply, Failure)
    assert first.reply.code is ErrorCode.OVERLOADED
    assert second.reply == VersionRead(2)
    assert log.version(B) == 2


def test_the_index_of_a_deleted_topic_goes_with_it() -> None:
    log = filled()
    log.version(A)
    log.ask(DeleteTopic(TOPIC))
    assert log.statistics["event_indexes"] == log.statistics["event_index_bytes"] == 0
