"""Turns tables of a configuration file into option classes, by the fields that these declare.

The name of a field says its unit: `..._bytes` and `..._bytes_max` are sizes, `..._us`, `..._ms` and
`..._s` are times, whose unit a key may leave out; other fields are taken by their type. What is
unknown or of the wrong kind is refused with a sentence that names the place.
"""

from __future__ import annotations

import difflib
import types
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from dragoman.gateway.unit import parse_size, parse_time_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from _typeshed import DataclassInstance

    Options = TypeVar("Options", bound=DataclassInstance)

_TIME_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
NUMBER_MAX = 1 << 62
"""Numbers are below it; infinity and what is no number are not."""


class ConfigError(ValueError):
    """The configuration cannot be served; the message is one sentence for people."""


def refuse_unknown(keys: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuses the first key that is not known, with the nearest one that is.

    Raises:
        ConfigError: There is one.
    """
    names = list(known)
    for key in keys:
        if key not in names:
            near = difflib.get_close_matches(key, names, 1, 0.5)
            hint = f'; did you mean "{near[0]}"?' if near else f"; known are {', '.join(names)}"
            raise ConfigError(f'unknown key "{key}" in {where}{hint}')


def read_options(kind: type[Options], table: Mapping[str, Any], where: str) -> Options:
    """Makes an option class of a table; fields that the table leaves out keep their defaults.

    Raises:
        ConfigError: A key is unknown, or a value is not of its field's kind.
    """
    names = [field.name for field in fields(kind)]
    table = {full_name(key, names): value for key, value in table.items()}
    refuse_unknown(table, names, where)
    hints = get_type_hints(kind)
    given = {
        name: read_value(name, hints[name], value, f"{where}.{name}")
        for name, value in table.items()
    }
    try:
        return kind(**given)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None


def full_name(key: str, names: Iterable[str]) -> str:
    """The field that a key means: `idle_timeout = "5m"` needs no unit in its name."""
    for unit in _TIME_UNITS_US:
        if (name := f"{key}_{unit}") in names:
            return name
    return key


def read_value(name: str, hint: Any, value: Any, where: str) -> Any:
    """Reads one value as its field has it; text is taken where a file or variable gave text.

    Raises:
        ConfigError: It is not of that kind.
    """
    if get_origin(hint) in (Union, types.UnionType):
        choices = [choice for choice in get_args(hint) if choice is not type(None)]
        if value is None or (value == "" and len(choices) < len(get_args(hint))):
            return None
        hint = choices[0]
    try:
        return _read(name, hint, value)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{where}: {error}") from None


def _read_path(value: Any) -> Path:
    if not isinstance(value, (str, Path)) or not str(value).strip() or "\0" in str(value):
        raise ValueError(f"{value!r} is not a path")
    return Path(value)


def _read(name: str, hint: Any, value: Any) -> Any:
    if hint is bool:
        return _read_bool(value)
    if hint in (int, float):
        return _read_number(name, hint, value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(value)
        except ValueError:
            choices = ", ".join(str(choice.value) for choice in hint)
            raise ValueError(f"{value!r} is none of {choices}") from None
    if hint is Path:
        return _read_path(value)
    if hint is str:
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is not text")
        return value
    return value


def _read_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "yes", "on", "1"):
        return True
    if isinstance(value, str) and value.lower() in ("false", "no", "off", "0"):
        return False
    raise ValueError(f"{value!r} is neither true nor false")


def _read_number(name: str, hint: Any, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{value!r} is not a number")
    if isinstance(value, float) and not abs(value) < NUMBER_MAX:
        raise ValueError(f"{value!r} is not a number that can be counted to")
    number = _read_quantity(name, value)
    if number < 0:
        raise ValueError(f"{value!r} is below zero")
    if not number < NUMBER_MAX:
        raise ValueError(f"{value!r} is not a number that can be counted to")
    if hint is int:
        if number != int(number):
            raise ValueError(f"{value!r} is not a whole number")
        return int(number)
    return number


def _read_quantity(name: str, value: float | str) -> int | float:
    """The value in the unit that the field's name says."""
    unit_us = _TIME_UNITS_US.get(name.removesuffix("_max").rpartition("_")[2])
    try:
        if "bytes" in name.split("_"):
            return parse_size(value if isinstance(value, str) else int(value))
        if unit_us is not None:
            return parse_time_us(value, unit_us) / unit_us
    except OverflowError:
        return NUMBER_MAX
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a number") from None
