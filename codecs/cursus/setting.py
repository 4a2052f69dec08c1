"""A topic's settings: as CREATE asks for them, and as answers tell of those that are set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dragoman.core.calls import TopicConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

_BOOLS: Final = {b"true": True, b"1": True, b"false": False, b"0": False}
_UNITS_MS: Final = {
    b"": 1,
    b"ms": 1,
    b"s": 1_000,
    b"m": 60_000,
    b"h": 3_600_000,
    b"d": 86_400_000,
}
_TIME: Final = re.compile(rb"([0-9]{1,19})([a-z]{0,2})")
_MAX: Final = (1 << 63) - 1


class BadSetting(ValueError):
    """A setting that cannot be read; its text is the wording of the refusal."""


def config_of(values: Mapping[str, bytes]) -> TopicConfig:
    """The settings that arguments ask for.

    Raises:
        BadSetting: One of them is none.
    """
    hours = number_of(values, "retention_hours")
    retention_ms = time_ms_of(values, "retention")
    return TopicConfig(
        retention_ms=retention_ms or min(hours * _UNITS_MS[b"h"], _MAX),
        retention_bytes=number_of(values, "retention_bytes"),
        idempotent=flag_of(values, "idempotent"),
        compact=flag_of(values, "compact"),
        tombstone_ms=time_ms_of(values, "tombstone"),
        dedupe_ms=time_ms_of(values, "dedupe"),
        event_sourcing=flag_of(values, "event_sourcing"),
    )


def words_of(config: TopicConfig) -> dict[str, str]:
    """The arguments that ask for these settings; those at their defaults are left out."""
    flags = {
        "idempotent": config.idempotent,
        "event_sourcing": config.event_sourcing,
        "compact": config.compact,
    }
    numbers = {
        "retention": config.retention_ms,
        "retention_bytes": config.retention_bytes,
        "tombstone": config.tombstone_ms,
        "dedupe": config.dedupe_ms,
    }
    words = {name: "true" for name, value in flags.items() if value}
    return words | {name: str(value) for name, value in numbers.items() if value}


def flag_of(values: Mapping[str, bytes], name: str) -> bool:
    """A flag; one that is missing is false.

    Raises:
        BadSetting: It is neither true nor false.
    """
    flag = _BOOLS.get(values.get(name, b"false").lower())
    if flag is None:
        raise BadSetting(f'invalid_{name} reason="must be true or false"')
    return flag


def time_ms_of(values: Mapping[str, bytes], name: str) -> int:
    """A time such as `30m`, `45s` or, in milliseconds, `1500`; 0 where it is missing.

    Raises:
        BadSetting: It is none.
    """
    return time_ms(values.get(name, b"0"), name)


def time_ms(value: bytes, name: str) -> int:
    """The milliseconds of a time.

    Raises:
        BadSetting: It is none.
    """
    found = _TIME.fullmatch(value)
    if found is None or found[2] not in _UNITS_MS:
        raise BadSetting(f'invalid_{name} reason="must be a time such as 30m, 45s or 1h"')
    return min(int(found[1]) * _UNITS_MS[found[2]], _MAX)


def number_of(values: Mapping[str, bytes], name: str) -> int:
    """A number; 0, -1 or one that is missing means none.

    Raises:
        BadSetting: It is none.
    """
    value = values.get(name, b"0")
    if value == b"-1":
        return 0
    if re.fullmatch(rb"[0-9]{1,19}", value) is None:
        raise BadSetting(f'invalid_{name} reason="must be a number"')
    return min(int(value), _MAX)
