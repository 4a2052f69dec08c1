"""What retention asks of a log on disk: exact by age, in whole closed segments by size."""

from __future__ import annotations

import pytest

from dragoman.core import change as ch
from dragoman.core.storage.expiry import ExpiryRead
from dragoman.simulation.disk import SimDisk
from support.store import Driven, read_all


def filled(disk: SimDisk, **options: int) -> Driven:
    """60 batches of two records of about 100 bytes; offset n was stamped 1 s + n ms."""
    driven = Driven(disk, **options)
    driven.topic()
    for number in range(60):
        driven.produce([b"%d" % number * 40] * 2)
        driven.flush()
    driven.settle()
    return driven


def start_of(driven: Driven, before_us: int, bytes_max: int = 0) -> int | None:
    found = driven.store.expired(1, 0, before_us=before_us, bytes_max=bytes_max)
    if not isinstance(found, ExpiryRead):
        return found
    found.run()
    return found.start


@pytest.mark.parametrize("options", [{}, {"tail_bytes_max": 2000}, {"segment_bytes": 1 << 20}])
def test_by_age_the_log_starts_at_the_first_record_that_is_not_older(
    options: dict[str, int],
) -> None:
    disk = SimDisk()
    driven = filled(disk, **options)
    for life in (driven, Driven(disk.crashed(None), **options)):
        for offset in (0, 1, 2, 50, 51, 118, 119):
            stamped_us = 1_000_000 + 1000 * (offset // 2 * 2)
            assert (start_of(life, stamped_us) or 0) == offset // 2 * 2
        assert start_of(life, 1 << 60) == 120


def test_within_a_batch_the_boundary_is_a_record() -> None:
    disk = SimDisk()
    driven = Driven(disk)
    driven.topic()
    for number in range(4):  # one flush: the neighbours become one batch
        driven.produce([b"%d" % number])
    driven.settle()
    for life in (driven, Driven(disk.crashed(None))):
        assert start_of(life, 1_002_000) == 2
        assert start_of(life, 1_001_001) == 2


def test_where_nothing_expires_nothing_is_read_again() -> None:
    driven = Driven(filled(SimDisk()).store._disk.crashed(None), "data")  # type: ignore[attr-defined]
    assert start_of(driven, 1_000_000) == 0
    assert driven.store.expired(1, 0, before_us=999_999, bytes_max=0) is None
    assert isinstance(driven.store.expired(1, 0, before_us=1_050_000, bytes_max=0), ExpiryRead)


def test_the_larger_of_both_limits_counts() -> None:
    driven = filled(SimDisk())
    by_bytes = start_of(driven, 0, 5000)
    assert by_bytes is not None
    assert start_of(driven, 1_004_000, 5000) == by_bytes
    assert start_of(driven, 1_118_000, 5000) == 118


def test_a_last_segment_without_a_live_record_is_closed_and_goes() -> None:
    disk = SimDisk()
    driven = filled(disk, segment_bytes=1 << 20)
    driven.change(ch.Trimmed(1, 0, 120))
    driven.produce([b"new"])
    driven.advance(31)
    (directory,) = disk.list("data/topics/1")
    logs = [name for name in disk.list(f"data/topics/1/{directory}") if name.endswith(".log")]
    assert logs == [f"{120:020d}.log"]
    assert read_all(driven.store) == [b"new"]
    assert read_all(Driven(disk.crashed(None), segment_bytes=1 << 20).store) == [b"new"]


def test_a_file_that_went_away_meanwhile_says_nothing() -> None:
    driven = Driven(filled(SimDisk()).store._disk.crashed(None), "data")  # type: ignore[attr-defined]
    look = driven.store.expired(1, 0, before_us=1_050_000, bytes_max=0)
    assert isinstance(look, ExpiryRead)
    driven.change(ch.TopicDropped(1))
    driven.advance(31)
    look.run()
    assert look.start is None
