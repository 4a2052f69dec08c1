"""Which descriptors are due a sync in each durability mode."""

from __future__ import annotations

from dragoman.core.clock import Now
from dragoman.core.storage.due_sync import DueSync
from dragoman.core.storage.options import Durability, StorageOptions


def due(durability: Durability) -> DueSync:
    return DueSync(StorageOptions(durability=durability, flush_records=10, flush_ms=100))


def at(ms: int) -> Now:
    return Now(0, 1000 * ms)


def test_every_group_is_synced_with_its_own_write() -> None:
    sync = due(Durability.FSYNC)
    assert sync.with_group(5, 1, at(0)) == [5]
    assert sync.alone(at(1000), hurry=True) == []


def test_the_operating_system_is_left_alone() -> None:
    sync = due(Durability.OS)
    assert sync.with_group(5, 1000, at(0)) == []
    assert sync.alone(at(1000), hurry=True) == []


def test_a_window_ends_by_its_records_or_by_its_time() -> None:
    sync = due(Durability.INTERVAL)
    assert sync.with_group(5, 4, at(0)) == []
    assert sync.with_group(6, 6, at(1)) == [5, 6]
    assert sync.with_group(6, 1, at(2)) == []
    assert sync.with_group(6, 1, at(102)) == [6]


def test_what_nothing_follows_is_synced_alone_after_the_window_or_in_a_hurry() -> None:
    sync = due(Durability.INTERVAL)
    sync.with_group(5, 1, at(0))
    assert sync.alone(at(99), hurry=False) == []
    assert sync.alone(at(100), hurry=False) == [5]
    sync.with_group(5, 1, at(200))
    assert sync.alone(at(201), hurry=True) == [5]
    assert sync.alone(at(202), hurry=True) == []
