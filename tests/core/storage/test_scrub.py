"""The scrub: finds damage nobody asked for, names it once, keeps its pace, and fences nothing."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.core import change as ch
from dragoman.core.clock import Now
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.scrub import BATCH_COST_BYTES, PASS_US, PIECE_BYTES, ScrubWork
from dragoman.core.store import StoreDamage
from dragoman.simulation.disk import SimDisk
from support.store import Driven, read_all, small_options

if TYPE_CHECKING:
    from dragoman.core.interface import Work

FAST = 1 << 40
"""Bytes a second: a piece a turn."""


def filled(disk: SimDisk, batches: int = 100, size: int = 300, **options: Any) -> Driven:
    """A log of several segments, of which none was checked yet."""
    driven = Driven(disk, **options)
    driven.topic()
    for n in range(batches):
        driven.produce([b"%d" % n + bytes(size)])
        driven.settle()
    return driven


def pieces(driven: Driven) -> list[ScrubWork]:
    """Runs what is due and gives the scrub's works among it."""
    works: list[Work] = driven.store.take_work(driven.now())
    for work in works:
        work.run()
        driven.store.finished(work, None)
    return [work for work in works if isinstance(work, ScrubWork)]


def taken(driven: Driven) -> ScrubWork:
    """A piece that is under way, while the other works of the same turn have ended."""
    found: list[ScrubWork] = []
    for work in driven.store.take_work(driven.now()):
        if isinstance(work, ScrubWork):
            found.append(work)
        else:
            work.run()
            driven.store.finished(work, None)
    (piece,) = found
    return piece


def scrubbed(driven: Driven) -> int:
    return int(driven.store.statistics()["store_scrubbed_bytes"])


def again(disk: SimDisk, **options: Any) -> Driven:
    """The log after an orderly stop and a start, which hands out the first pass."""
    return Driven(disk, scrub_bytes_per_s=FAST, **options)


def stopped(size: int = 300) -> SimDisk:
    disk = SimDisk()
    filled(disk, size=size, scrub_bytes_per_s=0).stop()
    return disk


def flip(disk: SimDisk, path: str, position: int) -> None:
    def change(data: bytearray) -> None:
        data[position] ^= 1

    disk.damage(path, change)


def test_a_pass_reads_every_byte_of_every_segment_once() -> None:
    driven = again(stopped())
    log = driven.store._logs[1, 0]
    assert len(log.segments) > 5
    driven.settle()
    assert scrubbed(driven) == sum(segment.size for segment in log.segments)
    assert driven.store.damage == []
    driven.mono_us += PASS_US
    driven.settle()
    assert scrubbed(driven) == 2 * sum(segment.size for segment in log.segments)


def test_damage_is_named_once_with_file_and_offsets_and_reads_answer_it() -> None:
    disk = stopped()
    driven = again(disk, tail_bytes_max=1)
    segment = driven.store._logs[1, 0].segments[2]
    flip(disk, segment.path, 200)
    driven.settle()
    driven.mono_us += PASS_US
    driven.settle()
    (sentence,) = driven.store.damage
    assert sentence.startswith(f"topic-1/0 offsets {segment.base} to {segment.base}: ")
    assert f"{segment.path} at byte 0" in sentence
    assert driven.store.statistics()["store_damaged_batches"] == 1
    assert driven.store.failure is None
    with pytest.raises(StoreDamage):
        read_all(driven.store)


def test_damage_is_told_to_whoever_opened_the_store() -> None:
    disk = stopped()
    told: list[Any] = []
    store = DiskStore(
        "data", small_options(scrub_bytes_per_s=FAST), disk=disk, on_damage=told.append
    )
    flip(disk, store._logs[1, 0].segments[0].path, 200)
    for turn in range(1, 30):
        for work in store.take_work(Now(turn, turn)):
            work.run()
            store.finished(work, None)
    (damage,) = told
    assert (damage.topic, damage.partition, damage.first, damage.last) == ("topic-1", 0, 0, 0)


def test_a_cut_and_a_missing_file_are_damage_to_their_last_offset() -> None:
    disk = stopped()
    driven = again(disk)
    cut, missing = driven.store._logs[1, 0].segments[1:3]
    disk.damage(cut.path, lambda data: data.__delitem__(slice(10, None)))
    disk.unlink(missing.path)
    driven.settle()
    assert len(driven.store.damage) == 2
    assert f"offsets {cut.base} to {cut.next_offset - 1}:" in driven.store.damage[0]
    assert f"offsets {missing.base} to {missing.next_offset - 1}:" in driven.store.damage[1]
    assert "missing" in driven.store.damage[1]


def test_what_the_medium_gives_back_no_more_is_damage_and_fences_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = stopped()
    driven = again(disk)

    def read(fd: int, length: int, position: int) -> bytes:
        raise OSError(errno.EIO, "the medium is worn")

    monkeypatch.setattr(disk, "read", read)
    driven.settle()
    assert len(driven.store.damage) == len(driven.store._logs[1, 0].segments)
    assert "the medium is worn" in driven.store.damage[0]
    assert driven.store.failure is None


def test_a_file_that_cannot_be_opened_now_is_left_to_the_next_pass() -> None:
    driven = again(stopped())
    work = taken(driven)
    driven.store.finished(work, OSError(errno.EMFILE, "too many open files"))
    driven.settle()
    segments = driven.store._logs[1, 0].segments
    assert scrubbed(driven) == sum(segment.size for segment in segments[1:])
    assert driven.store.damage == []
    assert driven.store.failure is None


def test_a_segment_that_is_trimmed_or_dropped_under_the_scrub_is_no_damage() -> None:
    for change in (ch.Trimmed(1, 0, 100), ch.TopicDropped(1)):
        driven = again(stopped())
        work = taken(driven)
        driven.change(change)
        for _ in range(5):
            driven.flush()
            driven.work()
            driven.mono_us += 40_000_000
        with pytest.raises(FileNotFoundError):
            driven.store._disk.open(work.path)
        work.run()
        assert work.broken
        driven.store.finished(work, None)
        driven.settle()
        assert driven.store.damage == []


def test_one_piece_is_under_way_at_most_and_the_loop_goes_on_beside_it() -> None:
    driven = again(stopped())
    work = taken(driven)
    driven.produce([b"meanwhile"])
    driven.settle()
    assert driven.revealed[1, 0] == 101
    assert scrubbed(driven) == 0
    work.run()
    driven.store.finished(work, None)
    driven.settle()
    assert scrubbed(driven) > 0


def test_a_piece_is_bounded_and_the_next_waits_as_the_pace_has_it() -> None:
    disk = SimDisk()
    big = {"segment_bytes": 4 << 20, "journal_file_bytes": 4 << 20}
    filled(disk, batches=25, size=100_000, scrub_bytes_per_s=0, **big).stop()
    driven = Driven(disk, scrub_bytes_per_s=PIECE_BYTES, **big)
    (first,) = pieces(driven)
    assert PIECE_BYTES <= first.position < PIECE_BYTES + 110_000
    driven.mono_us += 900_000
    assert pieces(driven) == []
    driven.mono_us += 600_000
    (second,) = pieces(driven)
    assert second.position - first.position >= PIECE_BYTES
    assert (second.offset, first.offset) == (22, 11)


def test_small_batches_count_as_more_than_their_bytes() -> None:
    disk = SimDisk()
    big = {"segment_bytes": 4 << 20}
    filled(disk, batches=300, size=1, scrub_bytes_per_s=0, **big).stop()
    driven = Driven(disk, scrub_bytes_per_s=FAST, **big)
    (first,) = pieces(driven)
    assert first.offset == PIECE_BYTES // BATCH_COST_BYTES


def test_what_is_written_during_a_turn_waits_for_the_next_pass() -> None:
    driven = again(stopped())
    work = taken(driven)
    before = driven.store._logs[1, 0].segments[-1].size
    sizes = sum(segment.size for segment in driven.store._logs[1, 0].segments)
    for _ in range(50):
        driven.produce([bytes(2000)])
        driven.settle()
    work.run()
    driven.store.finished(work, None)
    driven.settle()
    assert sizes - before <= scrubbed(driven) < sizes + 5000
    assert driven.store.damage == []


def test_a_stop_waits_for_no_scrub_and_0_means_never() -> None:
    driven = again(stopped())
    driven.store.begin_close(driven.now())
    assert pieces(driven) == []
    never = Driven(stopped(), scrub_bytes_per_s=0)
    never.advance(2 * PASS_US / 1_000_000)
    assert scrubbed(never) == 0
