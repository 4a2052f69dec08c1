"""Times are written as Go writes them, and read as it reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.codecs.cursus.rfc3339 import time_of, time_us_of


@pytest.mark.parametrize(
    ("wall_us", "text"),
    [
        (0, "0001-01-01T00:00:00Z"),
        (1, "1970-01-01T00:00:00.000001Z"),
        (1_700_000_000_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000_250_000, "2023-11-14T22:13:20.25Z"),
        (1_700_000_000_000_100, "2023-11-14T22:13:20.0001Z"),
    ],
)
def test_times_are_those_that_go_writes(wall_us: int, text: str) -> None:
    assert time_of(wall_us) == text


@given(st.integers(1, 253_402_300_799_999_999))
def test_every_time_is_read_back_as_itself(wall_us: int) -> None:
    read = datetime.fromisoformat(time_of(wall_us))
    assert (read - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) == wall_us


@pytest.mark.parametrize(
    "time_us",
    [0, 1, 951_782_400_000_000, 951_868_799_999_999, 1_709_164_800_000_000, 4_107_542_400_000_000],
)
def test_a_time_that_is_written_is_read_back(time_us: int) -> None:
    assert time_us_of(time_of(time_us)) == time_us


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T09:00:01+09:00", 1_000_000),
        ("1969-12-31T23:30:01-00:30", 1_000_000),
        ("1970-01-01T00:00:00.123456789Z", 123_456),
        ("1969-12-31T23:59:59Z", 0),
        ("yesterday", 0),
    ],
)
def test_times_of_all_zones_are_read(text: str, time_us: int) -> None:
    assert time_us_of(text) == time_us
