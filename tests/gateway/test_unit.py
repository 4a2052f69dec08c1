from __future__ import annotations

import pytest

from dragoman.gateway.unit import parse_size, parse_time_us


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64MiB", 64 << 20),
        ("64 mib", 64 << 20),
        ("1.5GiB", 3 << 29),
        ("10MB", 10_000_000),
        ("512k", 512 << 10),
        ("77", 77),
        (1024, 1024),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("5m", 300_000_000),
        ("250ms", 250_000),
        ("1.5h", 5_400_000_000),
        ("7d", 604_800_000_000),
        ("30", 30_000_000),
        (2.5, 2_500_000),
        ("100us", 100),
    ],
)
def test_times_are_read_as_people_write_them(text: str | float, time_us: int) -> None:
    assert parse_time_us(text, 1_000_000) == time_us


@pytest.mark.parametrize("text", ["", "MiB", "64 furlongs", "-1", "1e3", "٣"])
def test_what_is_no_quantity_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write for example"):
        parse_size(text)
    with pytest.raises(ValueError, match="write for example"):
        parse_time_us(text, 1)
