"""What outside readers may see."""

from __future__ import annotations

from dragoman.core.change import Trimmed
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.visible import read_visible
from dragoman.simulation.disk import SimDisk
from support.store import Driven

LAYOUT = Layout("data")


def test_the_watermark_follows_what_was_revealed_and_nothing_else() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    driven.produce([b"a", b"b"])
    driven.advance(2)
    assert read_visible(disk, LAYOUT) == {(1, 0): (0, 2)}
    driven.produce([b"c"])
    driven.mono_us += 2_000_000
    driven.work()
    assert read_visible(disk, LAYOUT) == {(1, 0): (0, 2)}
    driven.advance(2)
    assert read_visible(disk, LAYOUT) == {(1, 0): (0, 3)}


def test_it_is_replaced_at_most_once_a_second() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    driven.settle()
    before = disk.log.count("rename data/visible")
    for _ in range(100):
        driven.produce([b"a"])
        driven.settle()
    assert driven.mono_us < 1_000_000
    assert disk.log.count("rename data/visible") == before


def test_a_trim_and_a_lost_partition_are_seen() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic(partitions=2)
    driven.produce([b"a", b"b"])
    driven.change(Trimmed(1, 0, 1))
    driven.topic(partitions=1)
    driven.advance(2)
    assert read_visible(disk, LAYOUT) == {(1, 0): (1, 2)}


def test_a_damaged_file_shows_nothing() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    driven.settle()
    disk.file("data/visible")[3] ^= 1
    assert read_visible(disk, LAYOUT) == {}
    assert read_visible(SimDisk(), LAYOUT) == {}


def test_what_replicas_hold_back_is_not_seen_until_they_let_go_or_more_is_flushed() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    driven.produce([b"a", b"b", b"c"])
    driven.flush()
    driven.store.limit_visible(1, 0, 1)
    driven.advance(2)
    assert read_visible(disk, LAYOUT) == {(1, 0): (0, 1)}
    driven.store.limit_visible(1, 0, 2)
    driven.advance(2)
    assert read_visible(disk, LAYOUT) == {(1, 0): (0, 2)}
    driven.produce([b"d"])
    driven.advance(2)
    assert read_visible(disk, LAYOUT) == {(1, 0): (0, 4)}


def test_a_partition_that_is_gone_has_nothing_to_hold_back() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    driven.store.limit_visible(7, 0, 1)
    driven.advance(2)
    assert read_visible(disk, LAYOUT) == {(1, 0): (0, 0)}
