"""Times as clients written in Go write and read them: RFC 3339, without the calendar that comes
with a clock, which no codec has."""

from __future__ import annotations

import re
from typing import Final

_NEVER: Final = "0001-01-01T00:00:00Z"
_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))"
)
_DAYS_BEFORE_1970: Final = 719_468
"""Since the March in which the year 0 begins when leap days are to be the last of their years."""


def time_of(wall_us: int) -> str:
    """A time in UTC, without zeros at the end of its fraction; 0 is the zero time of Go."""
    if not wall_us:
        return _NEVER
    left_s, fraction_us = divmod(wall_us, 1_000_000)
    days, left_s = divmod(left_s, 86_400)
    minutes, seconds = divmod(left_s, 60)
    date = "{:04}-{:02}-{:02}".format(*_date_of(days))
    fraction = f".{fraction_us:06}".rstrip("0").rstrip(".")
    return f"{date}T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}{fraction}Z"


def _date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day, so many days after 1970 began.

    Years are counted from March, so that the leap day is the last of its year, and in eras of 400
    years, which all have the same days.
    """
    era, day = divmod(days + _DAYS_BEFORE_1970, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    if month >= 10:
        return 400 * era + year + 1, month - 9, day + 1
    return 400 * era + year, month + 3, day + 1


def time_us_of(text: str) -> int:
    """The time that a text is, as stamps have it; 0 for what is none, or lies before 1970."""
    found = _TIME.fullmatch(text)
    if found is None:
        return 0
    year, month, day, hours, minutes, seconds = map(int, found.groups()[:6])
    year, month = divmod(12 * year + month - 3, 12)
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1
    minutes += 60 * hours + 1_440 * (days - _DAYS_BEFORE_1970)
    if found[8]:
        minutes -= int(f"{found[8]}1") * (60 * int(found[9]) + int(found[10]))
    fraction_us = int((found[7] or "").ljust(6, "0")[:6])
    return max(1_000_000 * (60 * minutes + seconds) + fraction_us, 0)
